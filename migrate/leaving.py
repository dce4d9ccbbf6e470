"""What leaves our trust, said before the first byte does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import orjson

from migrate.config import Backend, Config, Redact
from migrate.mirror.adapt import FORWARDED
from migrate.sensitive import PLACEHOLDER

LOOKED_AT = 1_000
"""Captured requests from which the fields of a replay are known before it."""
_NAMED = 12


def mirrored(config: Config) -> Iterator[str]:
    """Of a mirror: lines on what its candidate will get, if that is a third party."""
    if config.candidate is None or not config.candidate.outside:
        return
    yield f"{_whom(config.candidate)}: the path of each mirrored request, {_headers()}, and its body"
    found = ", ".join(_rules(config.redact)) or "nothing"
    if config.shadow.send_redacted:
        yield f"  with placeholders in place of what redaction finds ({found}); those answers are not compared"
    else:
        yield f"  but no request in which redaction finds something ({found}); those are counted as not_comparable.redaction"


def replayed(config: Config, backends: Iterable[Backend], bodies: Iterable[bytes]) -> Iterator[str]:
    """Of a replay: lines on what each backend that is a third party will get. ``bodies``: of the first captured requests."""
    outside = [one for one in backends if one.outside]
    if not outside:
        return
    fields: Counter[str] = Counter()
    looked = hidden = 0
    for body in bodies:
        looked += 1
        hidden += PLACEHOLDER.search(body.decode("utf-8", "replace")) is not None
        fields.update(_fields(body))
    for one in outside:
        yield f"{_whom(one)}: the path of each captured request, {_headers()}, and its body"
    names = [f"{name} {count:,}" for name, count in fields.most_common(_NAMED)]
    more = [f"{len(fields) - _NAMED} more"] if len(fields) > _NAMED else []
    yield f"  with these fields, among the first {looked:,}: {', '.join([*names, *more]) or 'none'}"
    found = ", ".join(_rules(config.redact)) or "nothing"
    yield f"  redacted ({found}): {hidden:,} of them hold placeholders"


def _whom(backend: Backend) -> str:
    key = f" with the key in {backend.api_key_env}" if backend.api_key_env else ""
    return f"to the third party {backend.url}{key} will be sent"


def _headers() -> str:
    *first, last = sorted(FORWARDED)
    return f"its headers {', '.join(first)} and {last}"


def _rules(redact: Redact) -> Iterator[str]:
    """What redaction looks for."""
    yield from (name for name in ("keys", "emails", "cards", "phones") if getattr(redact, name))
    for name, own in (("own pattern", redact.patterns), ("own field", redact.fields)):
        if own:
            yield f"{len(own)} {name}{'s' if len(own) > 1 else ''}"


def _fields(body: bytes) -> list[str]:
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError:
        return []
    return list(data) if isinstance(data, dict) else []
