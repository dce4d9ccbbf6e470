"""The dialects a simulator speaks: a value for each, with its envelopes, routes, metric names and habits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from replay.exchange import JSON, Headers
from replay.simulator import metrics, openai_api, tensorrt_llm, vllm
from replay.simulator.ask import Ask, RefusalError, Wrong, parse
from replay.simulator.metrics import Meter
from replay.simulator.settings import DialectName, Lack, Settings
from replay.simulator.speech import Spoken
from replay.simulator.wire import Counts, Head

Body = Callable[[Ask, Head, tuple[Spoken, ...], Counts], JSON]
Stream = Callable[[Ask, Head, tuple[Spoken, ...], Counts], Iterator[tuple[int | None, bytes]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One backend's way of speaking."""

    name: DialectName
    version: str | None
    """Answer of ``/version``; ``None``: no such route."""
    server: str
    """The Server header."""
    error: Callable[[RefusalError], JSON]
    models: Callable[[tuple[str, ...], int, int], list[JSON]]
    body: Body
    stream: Stream
    health: tuple[str, ...] = ("/health",)
    prometheus: str | None = None
    """Path of the metrics in Prometheus text."""
    statistics: str | None = None
    """Path of iteration statistics in JSON, each delivered once."""
    metrics: Callable[[Meter, str], str] = metrics.vllm
    """Prometheus text for a meter and a model's name."""
    no_route: str = "Not Found"
    checks_model: bool = True
    strict: bool = False
    """Unknown request fields are refused."""
    usage_default: bool = False
    limit_default: int | None = 16
    """Tokens of a completion that names no limit."""
    overflow: str = ""
    overflow_param: str | None = None
    headers: Headers = field(default=())
    """Sent with every answer of a generation."""


VLLM = Dialect(
    name="vllm",
    version="0.33.0",
    server="uvicorn",
    error=vllm.error,
    models=vllm.models,
    body=vllm.body,
    stream=vllm.stream,
    health=("/health", "/ping"),
    prometheus="/metrics",
    overflow="This model's maximum context length is {context} tokens. However, your prompt contains "
    "{tokens} input tokens, which exceeds this limit even without any output tokens. Please reduce the "
    "length of the input prompt.",
    overflow_param="input_tokens",
)
TENSORRT_LLM = Dialect(
    name="tensorrt-llm",
    version="1.2.1",
    server="uvicorn",
    error=tensorrt_llm.error,
    models=tensorrt_llm.models,
    body=tensorrt_llm.body,
    stream=tensorrt_llm.stream,
    health=("/health", "/health_generate"),
    prometheus="/prometheus/metrics",
    statistics="/metrics",
    metrics=metrics.tensorrt_llm,
    checks_model=False,
    strict=True,
    usage_default=True,
    limit_default=None,
    overflow="The input ({tokens} tokens) is longer than this model allows ({context}).",
)
OPENAI = Dialect(
    name="openai",
    version=None,
    server="cloudflare",
    no_route="Invalid URL ({method} {path})",
    error=openai_api.error,
    models=openai_api.models,
    body=openai_api.body,
    stream=openai_api.stream,
    overflow="This model's maximum context length is {context} tokens. However, your messages resulted in "
    "{tokens} tokens. Please reduce the length of the messages.",
    overflow_param="messages",
    headers=(
        ("openai-organization", "simulated"),
        ("openai-processing-ms", "1"),
        ("openai-version", "2020-10-01"),
    ),
)
_BY_NAME = {dialect.name: dialect for dialect in (VLLM, TENSORRT_LLM, OPENAI)}


def named(name: DialectName) -> Dialect:
    """The dialect of that name."""
    return _BY_NAME[name]


def understood(dialect: Dialect, settings: Settings, data: JSON, *, chat: bool) -> Ask:
    """The request in ``data``, held against what this dialect and this server accept. Raises RefusalError."""
    if "engine" in settings.lacks:
        raise RefusalError(Wrong.SERVER, "EngineCore encountered an issue.", status=500)
    if dialect.strict:
        tensorrt_llm.refuse_extras(data, chat=chat)
    ask = parse(data, chat=chat, usage_default=dialect.usage_default, limit_default=dialect.limit_default)
    if settings.models and dialect.checks_model and ask.model not in settings.models:
        message = f"The model `{ask.model}` does not exist."
        raise RefusalError(Wrong.MODEL, message, status=404, param="model")
    ask = _without(ask, settings.lacks)
    if ask.prompt_tokens >= settings.context:
        message = dialect.overflow.format(context=settings.context, tokens=ask.prompt_tokens)
        raise RefusalError(Wrong.OVERFLOW, message, param=dialect.overflow_param)
    return ask


def _without(ask: Ask, lacks: frozenset[Lack]) -> Ask:
    """What is left of a request where the server lacks something. Raises RefusalError."""
    refusals = {
        "chat-template": ask.chat and _NO_TEMPLATE,
        "tool-choice": ask.tool_choice == "auto" and _NO_CHOICE,
        "schema": ask.schema is not None and _NO_SCHEMA,
    }
    for lack, message in refusals.items():
        if message and lack in lacks:
            raise RefusalError(Wrong.UNSUPPORTED, message)
    return replace(
        ask,
        stream=ask.stream and "streaming" not in lacks,
        include_usage=ask.include_usage and "usage" not in lacks,
        markup="tool-parser" in lacks,
    )


_NO_TEMPLATE = (
    "As of transformers v4.44, default chat template is no longer allowed, so you must provide a chat template if the "
    "tokenizer does not define one."
)
_NO_CHOICE = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
_NO_SCHEMA = "Guided decoding is not enabled on this server."


def unauthorized(header: str) -> RefusalError:
    """The refusal of a request whose Authorization header is not the required one."""
    key = header.removeprefix("Bearer ")
    shown = f"{key[:3]}***{key[-2:]}" if len(key) > 8 else "***"
    return RefusalError(Wrong.AUTH, f"Incorrect API key provided: {shown}.", status=401)
