"""What a backend's pages say: health, version, models. Each function asks one thing and gives one line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from migrate.config import Backend
from migrate.preflight.asking import Asking, Told
from migrate.preflight.lines import Line, clean, failed, ok, unknown
from migrate.preflight.naming import closest, some
from migrate.preflight.reach import place, speaks_tls
from replay.backends import BACKENDS, Facts
from replay.decoding import parse_object
from replay.exchange import JSON

MODELS = "/v1/models"
_PREFIXES = ("", "/api", "/openai", "/openai/v1", "/inference")
"""Where the API may begin on a host, when it does not where the configuration says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """The model list: its line, and the cards in it; empty when it could not be read."""

    line: Line
    cards: tuple[JSON, ...] = ()

    @property
    def names(self) -> list[str]:
        """Ids, in the server's order."""
        return [card["id"] for card in self.cards]


async def health(asking: Asking, facts: Facts) -> Line:
    """Whether the server says that it is up."""
    route = facts.health
    if route is None:
        return unknown("health", f"{facts.name} has no route for it")
    told = await asking.get(route)
    if told.status == 200:
        return ok("health", f"{route} is green{await _version(asking, facts)}")
    if told.status in (401, 403, 404, 405):
        return unknown("health", f"{route} answered {told.status}; is the address that of a gateway?")
    return _unhealthy(route, told, facts)


async def _version(asking: Asking, facts: Facts) -> str:
    told = await asking.get(facts.version) if facts.version else None
    version = (told.json or {}).get("version") if told and told.status == 200 else None
    return f", {facts.name} {clean(version, most=30)}" if isinstance(version, str) else ""


def _unhealthy(route: str, told: Told, facts: Facts) -> Line:
    if told.status == 503:
        change = f"wait until it has started (--watch), or {facts.changes['engine']}"
        return failed(
            "health", f"{route} answered 503: it starts, or its engine is dead", change, passing=True
        )
    return wordless("health", told, route, facts)


def wordless(check: str, told: Told, route: str, facts: Facts) -> Line:
    """The line for an answer that is none of the expected ones."""
    if told.late:
        began = f"{route} began an answer and did not end it" if told.status else f"{route} did not answer"
        return failed(check, f"{began} in time", facts.changes["engine"], passing=True)
    if told.status is not None and 300 <= told.status < 400:
        target = clean(told.location or "nowhere").removesuffix(route)
        return failed(check, f"{route} answered {told.status}: it leads to {target}", f"url: {target}")
    if told.status is None:
        words = "the connection broke, or what came is not HTTP"
        return failed(check, f"{route}: {words} ({told.words})", "is this the server's port?", passing=True)
    change = facts.changes["engine"] if told.status >= 500 else "is kind: right, and url that of its API?"
    return failed(check, f"{route} answered {told.words or told.status}", change, passing=told.status >= 500)


async def plain_on_tls(asking: Asking, url: str) -> Line | None:
    """The line on a port that wants TLS and was spoken to without."""
    at = place(url)
    told = await asking.get("/")
    words = told.words.lower()
    asked = told.status is None or (told.status == 400 and "https" in words)
    if at.secure or not asked or told.late or not await speaks_tls(at.host, at.port):
        return None
    secure = url.replace("http://", "https://", 1)
    return failed("tls", "the port speaks TLS, and url says http", f"url: {clean(secure)}")


async def models(asking: Asking, facts: Facts, backend: Backend, *, keyed: bool) -> Listed:
    """The model list. ``keyed``: a key was sent along."""
    told = await asking.get(MODELS, within=3.0)
    if told.status in (401, 403):
        return Listed(line=refused_key(told, backend, keyed=keyed))
    if told.status == 404:
        return Listed(line=await _elsewhere(asking, told, backend))
    if told.status == 429:
        return Listed(line=unknown("models", f"{MODELS} answered {told.words}"))
    if told.status != 200 or told.failure is not None:
        return Listed(line=wordless("models", told, MODELS, facts))
    entries = _entries(told)
    if entries is None:
        page = "a web page" if told.body.lstrip()[:1] == b"<" else "no list of models"
        change = "is url that of an API? A login page or another program may be there"
        return Listed(line=failed("models", f"{MODELS} answered {page}", change))
    cards = tuple(one for one in entries if isinstance(one, dict) and isinstance(one.get("id"), str))
    return Listed(line=_kind(cards, facts) or ok("models", f"{len(cards)} listed"), cards=cards)


def _entries(told: Told) -> list[Any] | None:
    """The entries of a model list, also of one that is a bare list, as Together's is; ``None`` when it is none."""
    wrapped = parse_object(b'{"data":' + told.body + b"}") if told.body.lstrip()[:1] == b"[" else told.json
    entries = (wrapped or {}).get("data")
    return entries if isinstance(entries, list) else None


def refused_key(told: Told, backend: Backend, *, keyed: bool) -> Line:
    """The line for a 401 or 403."""
    if not keyed:
        return failed(
            "key", f"the server wants one ({told.words})", "name its environment variable: api_key_env: NAME"
        )
    change = f"is the key in {backend.api_key_env} this server's own, in force and not expired or revoked?"
    return failed("key", f"the server refuses it ({told.words})", change)


async def _elsewhere(asking: Asking, told: Told, backend: Backend) -> Line:
    """The line for an address where no API is; looks where else on the host it may be."""
    path = urlsplit(backend.url).path
    detail = f"{clean(path)}{MODELS} answered {told.words or 404}"
    root = backend.url.removesuffix(path) if path else backend.url
    there = asking.beside(root)
    for prefix in _PREFIXES:
        if prefix == path:
            continue
        page = await there.get(prefix + MODELS, within=1.0)
        if page.status in (401, 403) or (page.status == 200 and _entries(page) is not None):
            return failed(
                "models", detail, f"the API begins elsewhere on this host; url: {clean(root + prefix)}/v1"
            )
    change = "url ends where the server's /v1 begins, without /chat/completions; is the host that of an API?"
    return failed("models", detail, change)


def _kind(cards: Sequence[JSON], facts: Facts) -> Line | None:
    """The line for a server that says to be of another kind than the configuration says."""
    owners = {card.get("owned_by") for card in cards if isinstance(card.get("owned_by"), str)}
    for other in BACKENDS.values():
        if facts.kind != "relay" and other.owner in owners and facts.owner not in owners and other.owner:
            return failed(
                "models",
                f"configured as kind: {facts.kind}, but the server is {other.name}",
                f"kind: {other.kind}",
            )
    return None


def named(model: str | None, listed: Listed, facts: Facts, backend: Backend) -> Line:
    """Whether the backend has the model."""
    names = listed.names
    if model is None:
        return unknown("model", f"no model: in the configuration; the server lists {some(names)}")
    if not names or not facts.lists_models:
        return unknown("model", f"the list does not tell whether {clean(model)} is there")
    if model in names:
        return ok("model", clean(model))
    near = closest(model, names)
    instead = f"models: {{{_asked(model, backend)}: {clean(near[0])}}}" if near else "set model: or models:"
    hint = f"; {facts.changes['model']}" if "model" in facts.changes else ""
    return failed("model", f"no model {clean(model)!r}; closest: {some(near or names)}", instead + hint)


def _asked(model: str, backend: Backend) -> str:
    """What clients call the model that is looked for at this backend."""
    return clean(next((ours for ours, theirs in backend.models.items() if theirs == model), model))


def context(model: str | None, listed: Listed, facts: Facts) -> Line:
    """The longest context that the model's card states."""
    card = next((one for one in listed.cards if one["id"] == model), {})
    meta = card.get("meta")
    stated = [card.get(name) for name in facts.context] + [
        meta.get("n_ctx") if isinstance(meta, dict) else None
    ]
    found = next(
        (one for one in stated if isinstance(one, int) and not isinstance(one, bool) and one > 0), None
    )
    if found is None:
        return unknown("context", f"{facts.name} does not state it")
    return replace(ok("context", f"{found:,} tokens", found), change=facts.changes["context"])
