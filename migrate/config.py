"""The configuration file: typed, immutable, and strict about words it does not know.

Errors name the file, the line, the key, the value and the nearest valid word, before anything listens: a line for each mistake,
and ten at most.
"""

from __future__ import annotations

import datetime as dt
import difflib
import ipaddress
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args
from urllib.parse import urlsplit

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails

from migrate.canary.section import CanarySection
from migrate.errors import ConfigError
from migrate.launching.section import Launch
from migrate.notifying.section import Notify
from migrate.percent import Percent
from migrate.presets import presets
from migrate.prices import listed
from migrate.tracing import Traces
from migrate.variables import Variable
from replay.units import parse_count, parse_size
from reports.costing import GpuPrice, Quote, TokenPrice
from reports.policy import WRITTEN, Duration, Policy, Section, Share

Size = Annotated[int, BeforeValidator(parse_size)]
Count = Annotated[int, BeforeValidator(parse_count)]
Kind = Literal["vllm", "tensorrt-llm", "relay"]


def _http_url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{value!r} is not an http:// or https:// address of a server")
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port == 0:
        raise ValueError(f"{value!r} has no valid port: 1 to 65535")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError(
            "a backend's url holds no user, password, query or fragment; name keys with api_key_env"
        )
    return value.rstrip("/").removesuffix("/v1")


def _listen(value: str) -> str:
    host, _, port = value.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"{value!r} is not HOST:PORT, such as 127.0.0.1:8080")
    return value


HttpUrl = Annotated[str, AfterValidator(_http_url)]
Listen = Annotated[str, AfterValidator(_listen)]


class Timeouts(Section):
    """Limits on one call of a backend."""

    connect: Duration = 5.0
    """Until there is a connection."""
    first_byte: Duration = 60.0
    """Until the answer begins, and between two of its pieces."""
    total: Duration = 600.0
    """Of the whole call."""


class Limits(Section):
    """How much validation may ask of a backend; ``None`` is no limit."""

    in_flight: int = Field(default=64, ge=1)
    """Copies that wait for an answer at once; more are not sent, and counted."""
    requests_per_minute: int | None = Field(default=None, ge=1)
    """Also of answers that failed."""
    tokens_per_minute: Count | None = None
    """Prompt and answer; only a replay is held to it, by waiting."""
    tokens_per_day: Count | None = None
    """Prompt and answer, by UTC days."""
    usd_per_day: float | None = Field(default=None, gt=0)
    """Needs ``price``."""


Usd = Annotated[float, Field(ge=0, le=100_000, allow_inf_nan=False)]


class Price(Section):
    """What a backend takes: USD for a million tokens, or for its GPUs by the hour (docs/cost.md)."""

    listed: str | None = Field(default=None, exclude=True)
    """An entry of ``configs/prices.yaml``, whose fields stand for those that are not given. A run keeps the fields."""
    input: Usd | None = None
    """USD for a million tokens of prompts."""
    cached_input: Usd | None = None
    """Of a prompt's tokens that came from the server's cache; ``None``: as ``input``."""
    output: Usd | None = None
    """USD for a million tokens of answers."""
    gpu_per_hour: Usd | None = None
    """USD for one GPU."""
    gpus: int | None = Field(default=None, ge=1, le=100_000)
    """Of one replica of the server."""
    throughput: float | None = Field(default=None, gt=0, le=1_000_000)
    """Requests a second within the limits of goodput that one replica serves, as measured (``migrate bench --goodput``)."""
    source: str | None = None
    """Where it was read."""
    date: dt.date | None = None
    """When the price was read."""

    @model_validator(mode="before")
    @classmethod
    def _from_list(cls, data: Any) -> Any:
        name = data.get("listed") if isinstance(data, dict) else None
        return _completed(listed(name), data) if isinstance(name, str) else data

    @model_validator(mode="after")
    def _one_kind(self) -> Price:
        tokens, gpus = (
            (self.input, self.output, self.cached_input),
            (self.gpu_per_hour, self.gpus, self.throughput),
        )
        if any(one is not None for one in tokens) == any(one is not None for one in gpus):
            raise ValueError(f"price is either for tokens or for GPUs: {_PRICES}")
        if None in (tokens[:2] if self.gpu_per_hour is None and self.gpus is None else gpus[:2]):
            raise ValueError(f"price is not complete: {_PRICES}")
        if self.cached_input is not None and self.cached_input > (self.input or 0):
            raise ValueError("price.cached_input is above price.input; no cache makes tokens dearer")
        return self

    @property
    def tokens(self) -> TokenPrice | None:
        """``None`` for GPUs."""
        if self.input is None or self.output is None:
            return None
        return TokenPrice(input=self.input, cached_input=self.cached_input, output=self.output)

    @property
    def quote(self) -> Quote:
        """The price with where it is from."""
        paid = self.tokens or GpuPrice(per_hour=self.gpu_per_hour or 0.0, gpus=self.gpus or 1)
        day = None if self.date is None else self.date.isoformat()
        return Quote(price=paid, throughput=self.throughput, source=self.source, date=day)


def _completed(entry: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """An entry with what goes before it. Its source and date say nothing of a figure that was given."""
    own = given.keys() & {"input", "cached_input", "output", "gpu_per_hour"}
    return {key: value for key, value in entry.items() if not own or key not in ("source", "date")} | given


_PRICES = "{input: 0.15, output: 0.60}, {gpu_per_hour: 2.50, gpus: 4}, or {listed: NAME} with gpus: 4 where NAME is of a GPU"


class Backend(Section):
    """One server: what it is, where it is, how its models are called there and which key it takes."""

    kind: Kind
    """``vllm``, ``tensorrt-llm``, or ``relay``: any OpenAI-compatible address."""
    preset: str | None = None
    """A relay that ``configs/backends.yaml`` knows, which gives ``kind`` and ``url``; ``None``: any backend."""
    url: HttpUrl
    """Of the server, with or without ``/v1``."""
    model: str | None = None
    """What clients ask for; ``None``: the first that the server lists, in checks only."""
    models: dict[str, str] = Field(default_factory=dict)
    """What clients ask for, by what it is called here: ``{harbor-7b: harbor-7b-fp8}``."""
    api_key_env: Variable | None = None
    """The environment variable with the key that goes there as a bearer token."""
    third_party: bool | None = None
    """Outside of our trust: copies that redaction would change are not sent. Default: true for a relay."""
    timeouts: Timeouts = Timeouts()
    """Of a copy or a replayed request; a client of the gateway waits as long as it likes."""
    limits: Limits = Limits()
    """Of what validation sends."""
    price: Price | None = None
    """What it takes, for costs and for ``limits.usd_per_day``."""
    drain_metrics: bool = False
    """TensorRT-LLM gives the statistics at its JSON ``/metrics`` once: a run may read them, and nobody else does."""
    launch: Launch | None = None
    """How ``migrate launch`` starts it; ``None``: somebody else does."""

    @model_validator(mode="before")
    @classmethod
    def _preset(cls, data: Any) -> Any:
        return _filled(data) if isinstance(data, dict) and data.get("preset") is not None else data

    @model_validator(mode="after")
    def _priced(self) -> Backend:
        if self.limits.usd_per_day is not None and (self.price is None or self.price.tokens is None):
            raise ValueError("limits.usd_per_day needs a price, such as price: {input: 0.15, output: 0.60}")
        return self

    @model_validator(mode="after")
    def _launched(self) -> Backend:
        if self.launch is not None and self.kind == "relay":
            raise ValueError("launch: is for kind: vllm or tensorrt-llm; a relay is somebody else's")
        return self

    @property
    def outside(self) -> bool:
        """Whether requests leave our trust when they are sent there."""
        return self.kind == "relay" if self.third_party is None else self.third_party

    def api_key(self) -> str | None:
        """The backend's own key from the environment. Raises ConfigError when it is named but not set."""
        return _key(self.api_key_env, self.url)


def _filled(data: dict[str, Any]) -> dict[str, Any]:
    """A backend's fields, with what its preset gives where they say nothing."""
    named = str(data["preset"])
    known = presets().get(named)
    if known is None:
        raise ValueError(f"preset {named!r} is not known{_nearest(named, list(presets()))}")
    if data.get("kind", "relay") != "relay":
        raise ValueError("a preset is one of kind: relay")
    if "url" not in data and "RESOURCE" in known.url:
        raise ValueError(f"preset {named} needs url: {known.url} with the name of your resource")
    inside: dict[str, Any] = {} if known.third_party else {"third_party": False}
    return {"kind": "relay", "url": known.url} | inside | data


def _key(name: str | None, url: str) -> str | None:
    if name is None:
        return None
    key = os.environ.get(name, "").strip()
    if not key:
        raise ConfigError(f"environment variable {name} is empty; export the key of {url} there")
    return key


class GatewaySection(Section):
    """The two listeners and what they allow."""

    listen: Listen = "127.0.0.1:8080"
    """Where clients come in."""
    admin: Listen = "127.0.0.1:8081"
    """Health, status and the kill switch. Beyond this machine it needs ``admin_token_env``."""
    admin_token_env: Variable | None = None
    """The environment variable with the token that people and tools show there; ``/healthz`` and ``/readyz`` ask for none."""
    grace: Duration = 30.0
    """What streams get to finish when the gateway stops."""
    max_body: Size = 64 * 2**20
    """Of a request; a larger one passes in pieces and is not mirrored."""

    @model_validator(mode="after")
    def _guarded(self) -> GatewaySection:
        if self.admin_token_env is None and not _loopback(self.admin.rpartition(":")[0]):
            raise ValueError(
                f"admin: {self.admin} can be reached from other machines; name a token with admin_token_env, or listen at "
                "127.0.0.1"
            )
        return self

    def token(self) -> str | None:
        """The token from the environment; ``None`` without one. Raises ConfigError when it is named and not there, or short."""
        if self.admin_token_env is None:
            return None
        value = os.environ.get(self.admin_token_env, "").strip()
        if len(value) < _SHORTEST_TOKEN:
            raise ConfigError(
                f"environment variable {self.admin_token_env} is empty or shorter than {_SHORTEST_TOKEN} characters; make a "
                "token with: openssl rand -hex 16"
            )
        return value


def _loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


_SHORTEST_TOKEN = 16


class Retry(Section):
    """Retries of a copy, off the client's path, only before its first byte."""

    attempts: int = Field(default=2, ge=1, le=10)
    """In all."""
    longest_wait: Duration = 30.0
    """A ``Retry-After`` beyond it is not waited for."""


class Shadow(Section):
    """What is mirrored."""

    percent: Percent = 0.10
    """Of the conversations that pass; 10 means 10 %."""
    sample_by: str = Field(
        default="conversation", pattern=r"^(conversation|user|request|header:[A-Za-z0-9-]+)$"
    )
    """What stays together: ``conversation``, ``user``, ``request`` or ``header:NAME``."""
    repeat_baseline: Share = 0.10
    """Of the mirrored requests, sent to the baseline once more: the noise floor."""
    paths: tuple[str, ...] = Field(("/v1/chat/completions", "/v1/completions"), min_length=1)
    """Which are mirrored; everything passes."""
    queue: Size = 16 * 2**20
    """Bytes that may wait for the mirror; what does not fit is dropped and counted."""
    max_request: Size = 4 * 2**20
    """A larger one passes and is not mirrored."""
    max_answer: Size = 16 * 2**20
    """A longer one passes and is not compared."""
    send_redacted: bool = False
    """Send a redacted copy to a third party; its answers are then not comparable."""
    retry: Retry = Retry()


class Redact(Section):
    """What is replaced by placeholders before anything is stored."""

    keys: bool = True
    """Keys and tokens of any known shape."""
    emails: bool = True
    """Addresses."""
    cards: bool = True
    """Numbers of payment cards."""
    phones: bool = True
    """Telephone numbers."""
    patterns: tuple[str, ...] = ()
    """Regular expressions of RE2 of your own."""
    fields: tuple[str, ...] = ()
    """Fields of the body, dotted: ``metadata.customer``."""


class Embeddings(Section):
    """Which sentence-transformers model scores similarity."""

    model: str = "all-MiniLM-L6-v2"
    """A name or folder that sentence-transformers loads; the default is the packaged all-MiniLM-L6-v2."""


class JudgeSection(Section):
    """A model that is asked about pairs which similarity alone decided, where its cosine is no clear case."""

    url: HttpUrl
    """Of any OpenAI-compatible server."""
    model: str = Field(min_length=1)
    """What it is called there."""
    api_key_env: Variable | None = None
    """The environment variable with its key."""
    third_party: bool = False
    """The texts of prompts and answers, redacted, may leave our machines for ``url``."""
    between: tuple[float, float] = (0.6, 0.95)
    """Bounds of the cosine: below, a pair counts as different without a question, and above as reworded."""
    max_requests: int = Field(default=500, ge=2)
    """Of one report or comparison; a pair takes two. What is known already counts too, so that a report made again agrees."""
    max_tokens: Count = 1_000_000
    """Of one report or comparison, prompts and replies."""

    @model_validator(mode="after")
    def _allowed(self) -> JudgeSection:
        host = urlsplit(self.url).hostname or ""
        if not self.third_party and not private(host):
            raise ValueError(
                f"{host} is neither this machine nor in a private network, and the texts of answers are sent there: say "
                "third_party: true if they may be"
            )
        if not 0 <= self.between[0] < self.between[1] <= 1:
            raise ValueError("between is two cosines from 0 to 1, the lower one first, such as [0.6, 0.95]")
        return self

    def api_key(self) -> str | None:
        """The key from the environment; ``None`` when none is named. Raises ConfigError when it is named but not set."""
        return _key(self.api_key_env, self.url)


def private(host: str) -> bool:
    """Whether a host is this machine, in a private network, or has a name that only those know."""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return host[:1].isalpha() and ("." not in host or host.rstrip(".").endswith(_PRIVATE))


_PRIVATE = (".local", ".localhost", ".internal", ".lan", ".home.arpa")


class StoreSection(Section):
    """Where observations are kept."""

    url: str = "sqlite:///migrate.db"
    """``sqlite:///FILE``, or a PostgreSQL URL."""
    keep_bodies: Duration = 30 * 86_400.0
    """Texts of prompts and answers; figures stay. Looked at when a run begins."""


class Config(Section):
    """The whole file."""

    baseline: Backend
    candidate: Backend | None = None
    gateway: GatewaySection = GatewaySection()
    shadow: Shadow = Shadow()
    redact: Redact = Redact()
    store: StoreSection = StoreSection()
    embeddings: Embeddings = Embeddings()
    judge: JudgeSection | None = None
    """``None``: nothing but rules and similarity decides."""
    traces: Traces | None = None
    """Where spans of copies and repeats go; ``None``: nowhere."""
    notify: Notify | None = None
    """Who is told of verdicts; ``None``: a run is judged when somebody asks. ``{}``: while it goes on, too, telling nobody."""
    canary: CanarySection = CanarySection()
    policy: Policy = Policy()

    @model_validator(mode="after")
    def _apart(self) -> Config:
        if self.candidate and _place(self.candidate.url) == _place(self.baseline.url):
            raise ValueError(
                "candidate.url is the baseline's own address; a backend compared with itself proves nothing"
            )
        for name, backend in (("baseline", self.baseline), ("candidate", self.candidate)):
            if backend is not None and _ours(backend.url, self.gateway.listen):
                raise ValueError(f"{name}.url is gateway.listen: the gateway would ask itself, over and over")
        if self.gateway.listen == self.gateway.admin:
            raise ValueError("gateway.listen and gateway.admin are the same address")
        return self


_HERE = ("127.0.0.1", "localhost", "::1", "0.0.0.0", "::")  # noqa: S104 - compared, not bound


def _place(url: str) -> tuple[str, str, int, str]:
    """Equal for addresses of one place, as far as spelling tells."""
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return parts.scheme, "localhost" if host in _HERE else host, port, parts.path.rstrip("/")


def _ours(url: str, listen: str) -> bool:
    host, _, port = listen.rpartition(":")
    _, place, at, _ = _place(url)
    own = host.strip("[]")
    return port == str(at) and port != "0" and (place == own or (place == "localhost" and own in _HERE))


def load(path: str | Path) -> Config:
    """Reads a configuration file.

    Raises ConfigError with a line for each mistake: what is wrong, and where.
    """
    return parse(_text(path, f"; write one with: migrate init {path}"), name=str(path))


def _text(path: str | Path, instead: str = "") -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}){instead}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: is not UTF-8 text") from None


def load_any(path: Path | None) -> Config | None:
    """The file at ``path``; without one, ``migrate.yaml`` when it is there. Raises ConfigError as ``load`` does."""
    if path is None and not Path("migrate.yaml").exists():
        return None
    return load(path or "migrate.yaml")


def load_policy(path: Path) -> Policy:
    """The policy in a YAML file: its fields at the top level, or those of ``policy:`` in a configuration.

    Raises ConfigError as ``load`` does.
    """
    return parse_policy(_text(path), name=str(path))


def parse(text: str, *, name: str = "configuration") -> Config:
    """The configuration in ``text``; ``name`` stands before each error."""
    node, data = _mapping(text, name, "it needs at least baseline: and candidate:")
    return _valid(Config, node, data, name)


def parse_policy(text: str, *, name: str = "policy") -> Policy:
    """The policy in ``text``; ``name`` stands before each error."""
    node, data = _mapping(text, name, "it needs a field of a policy, such as minimum_span: 24h")
    if "baseline" in data:
        return _valid(Config, node, data, name).policy
    if "policy" in data:
        return _valid(_Alone, node, data, name).policy
    return _valid(Policy, node, data, name)


class _Alone(Section):
    """A policy under its name, and nothing else."""

    policy: Policy


_Valid = TypeVar("_Valid", bound=Section)


def _mapping(text: str, name: str, needs: str) -> tuple[yaml.Node, dict[str, Any]]:
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except RecursionError:
        raise ConfigError(f"{name}: is nested without end") from None
    except ValueError as error:  # a day that no calendar has
        raise ConfigError(f"{name}: is not valid YAML: {error}") from None
    except yaml.YAMLError as error:
        raise ConfigError(
            f"{name}{_mark(error)}: is not valid YAML: {getattr(error, 'problem', error)}"
        ) from None
    if node is None or not isinstance(data, dict):
        raise ConfigError(f"{name}: is empty or not a mapping; {needs}")
    return node, data


def _valid(model: type[_Valid], node: yaml.Node, data: dict[str, Any], name: str) -> _Valid:
    try:
        wrong = [*_duplicates(node)]
        valid = model.model_validate(data, context=WRITTEN)
    except RecursionError:
        raise ConfigError(f"{name}: is nested without end") from None
    except ValidationError as error:
        wrong += _mistakes(error, model, node)
    if not wrong:
        return valid
    told = [f"{name}, line {line}: {what}" for line, what in sorted(wrong, key=lambda one: one[0])]
    more = [f"{name}: and {len(told) - _TOLD:,} more mistakes"] if len(told) > _TOLD else []
    raise ConfigError("\n".join([*told[:_TOLD], *more]))


_TOLD = 10
"""Mistakes that are told at once."""
Mistake = tuple[int, str]
"""The line it is in, and what is wrong there."""


def _mark(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    return f", line {mark.line + 1}" if mark else ""


def _duplicates(node: yaml.Node) -> Iterator[Mistake]:
    """YAML lets the last of two equal keys win silently; a reader would see the first."""
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if key.value in seen:
                yield key.start_mark.line + 1, f"{key.value} is given twice"
            seen.add(key.value)
            yield from _duplicates(value)


def _mistakes(error: ValidationError, root: type[Section], node: yaml.Node) -> list[Mistake]:
    """Each mistake once, by its key. A misspelt key also leaves its right spelling missing: that is no mistake of its own."""
    found = [(_path(one), one) for one in error.errors()]
    meant = {
        (*path[:-1], *_close(str(path[-1]), _valid_words(root, path[:-1])))
        for path, one in found
        if one["type"] == "extra_forbidden"
    }
    told: dict[tuple[Any, ...], Mistake] = {}
    for path, one in found:
        if one["type"] != "missing" or path not in meant:
            what = f"{'.'.join(map(str, path)) or 'the file'}: {_said(one, root, path)}"
            told.setdefault(path, (_line(node, path), what))
    return [*told.values()]


def _path(error: ErrorDetails) -> tuple[Any, ...]:
    """The keys that lead to the mistake."""
    path = tuple(
        part for part in error["loc"] if not (isinstance(part, str) and part.startswith("function-"))
    )
    return (
        path[:-2] if path[-1:] == ("[key]",) else path
    )  # a key of a mapping that is refused may be a secret


def _said(error: ErrorDetails, root: type[Section], path: tuple[Any, ...]) -> str:
    if error["type"] == "extra_forbidden":
        return f"no such key{_nearest(str(path[-1]), _valid_words(root, path[:-1]))}"
    if error["type"] == "missing":
        return "is required and missing"
    message = error["msg"].removeprefix("Value error, ")
    value = error["input"]
    if error["type"] == "literal_error":
        return f"{value!r} is not valid{_nearest(str(value), _QUOTED.findall(error['ctx']['expected']))}"
    if error["type"] == "tuple_type":
        return "is a list; begin each entry with a dash"
    # Our own parsers name the value where it may be shown; an address with a password in it may not.
    named = error["type"] == "value_error" or isinstance(value, dict | list | BaseModel)
    shown = "" if named else f" (got {value!r})"
    start = message[0] if named else message[0].lower()  # ours may begin with a name, which stays as it is
    return f"{start}{message[1:]}{shown}"


_QUOTED = re.compile(r"'([^']*)'")


def _nearest(word: str, words: list[str]) -> str:
    close = _close(word, words)
    return f"; did you mean {close[0]}?" if close else f"; valid: {', '.join(words)}"


def _close(word: str, words: list[str]) -> list[str]:
    return difflib.get_close_matches(word, words, n=1, cutoff=0.5)


def _valid_words(root: type[Section], path: tuple[Any, ...]) -> list[str]:
    model: Any = root
    for part in path:
        if isinstance(part, int):  # an entry of a list: its model is known already
            continue
        field = model.model_fields.get(part) or next(
            f for f in model.model_fields.values() if f.alias == part
        )
        candidates = [field.annotation, *get_args(field.annotation)]
        model = next((c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)), None)
        if model is None:
            return []
    return [field.alias or key for key, field in model.model_fields.items()]


def _line(node: yaml.Node, path: tuple[Any, ...]) -> int:
    line = node.start_mark.line + 1
    for part in path:
        if isinstance(node, yaml.MappingNode):
            match = next(((k, v) for k, v in node.value if k.value == str(part)), None)
            if match is None:
                return line
            line, node = match[0].start_mark.line + 1, match[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
    return line
