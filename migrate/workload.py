"""What a benchmark sends: prompts of a file, of a captured run or of the demo, over and over, each time as a new request."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from migrate.demo.traffic import prompts as demo_prompts
from migrate.errors import ConfigError
from migrate.prompts import Prompts
from migrate.store import Store
from replay.exchange import JSON, Request

_USAGE: JSON = {"stream": True, "stream_options": {"include_usage": True}}
_STREAMED = {
    "/v1/chat/completions": _USAGE,
    "/v1/completions": _USAGE,
    "/v1/responses": {"stream": True},
    "/v1/messages": {"stream": True},
}
"""What is asked for so that there are times and token counts to measure, by path."""
_ASIDE = 5
"""At most one prompt in so many is the warm-up's own."""
_DEMO_TOKENS = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Requests to measure with, and others to warm up with."""

    name: str
    """Where they are from."""
    measured: tuple[Request, ...]
    aside: tuple[Request, ...]

    def requests(self, mark: str) -> Iterator[Request]:
        """The measured ones in order, over and over without end; ``mark`` makes their ids new."""
        return _again(self.measured, mark)

    def warmup(self, mark: str, count: int) -> list[Request]:
        """So many to warm up with, none of which is measured."""
        return list(itertools.islice(_again(self.aside, f"{mark}-warm"), count))

    def probes(self, mark: str) -> Iterator[Request]:
        """The warm-up's, over and over; the measured ones where there are no others."""
        return _again(self.aside or self.measured, f"{mark}-probe")


def _again(prompts: Iterable[Request], mark: str) -> Iterator[Request]:
    for number, prompt in enumerate(itertools.cycle(prompts)):
        yield replace(prompt, id=f"{mark}-{number:08d}", at=float(number))


def workload(
    name: str, prompts: Iterable[Request], fields: Mapping[str, Any], *, most: int, warmup: int, nonce: bool
) -> Workload:
    """At most ``most`` prompts, streamed and with usage unless ``fields`` of every body say otherwise.

    Raises ConfigError without prompts, and where none can be set aside to warm up with.
    """
    found = [_asked(prompt, fields) for prompt in itertools.islice(prompts, most)]
    if not found:
        raise ConfigError(f"{name}: holds no requests")
    if not warmup:
        return Workload(name=name, measured=tuple(found), aside=())
    if len(found) == 1:
        if not nonce:
            raise ConfigError(f"{name}: one prompt cannot be warm-up and measured; give two, or --warmup 0")
        return Workload(name=name, measured=tuple(found), aside=tuple(found))
    aside = min(warmup, max(1, len(found) // _ASIDE))
    return Workload(name=name, measured=tuple(found[:-aside]), aside=tuple(found[-aside:]))


def _asked(request: Request, fields: Mapping[str, Any]) -> Request:
    """The request with what has to be asked for. One that cannot be sent stays as it is; sending counts it."""
    try:
        body = orjson.loads(request.body)
    except orjson.JSONDecodeError:
        return request
    if not isinstance(body, dict):
        return request
    streamed = _STREAMED.get(request.path, {}) if fields.get("stream", True) else {}
    if not streamed:
        body = {name: value for name, value in body.items() if name != "stream_options"}
    return replace(request, body=orjson.dumps({**body, **streamed, **fields}))


def from_demo(model: str) -> Iterator[Request]:
    """The free texts of the packaged prompts."""
    for row in demo_prompts():
        if row["kind"] == "chat":
            messages = [{"role": "user", "content": row["prompt"]}]
            body = {"model": model, "messages": messages, "temperature": 0, "max_tokens": _DEMO_TOKENS}
            yield _request("/v1/chat/completions", body)


def from_file(path: Path, model: str | None) -> Iterator[Request]:
    """Each request of a file once, as import reads it. Raises ConfigError for a line that is none."""
    prompts = Prompts(path, model)
    for record in prompts:
        if prompts.count:
            return  # the second time round
        call = record.request
        if call is not None:
            yield _request(call.path, {**({"model": model} if model else {}), **call.body})


def from_run(store: Store, run: str) -> Iterator[Request]:
    """The requests of a captured run."""
    return (request for request, _ in store.captured(run))


def _request(path: str, body: JSON) -> Request:
    return Request(
        id="", at=0.0, method="POST", path=path, headers=(), body=orjson.dumps(body), conversation=""
    )
