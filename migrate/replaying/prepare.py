"""From a captured request to what is sent to each arm. Pure.

Both arms get the same body but for the model's name: overrides, the nonce and redaction are applied before it parts.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson

from migrate.config import Config
from migrate.mirror.adapt import call_for, model_names
from migrate.redact import Redactor
from migrate.replaying.plan import Plan
from migrate.sampling import digest, position, stateful_reason
from replay.client import Call
from replay.exchange import JSON, Arm, Request

_OUTPUT = 4096
"""Tokens of an answer whose request sets no bound, when its cost has to be known beforehand."""
_BYTES_A_TOKEN = 3
"""On the safe side: English text has four."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A request that can leave: one call for each arm that has not answered it yet."""

    request: Request
    calls: Mapping[Arm, Call]
    tokens: tuple[int, int]
    """Prompt and answer, the most that they can be expected to be."""
    think_s: float | None = None
    """How long after the answer to the previous turn of its conversation it came; ``None``: the first, or unknown."""


class Prepare:
    """Makes requests ready. ``known``: what was answered before, by arm. Raises ConfigError for a key that is not there."""

    def __init__(
        self,
        config: Config,
        plan: Plan,
        redactor: Redactor,
        *,
        known: Mapping[Arm, set[str]],
    ) -> None:
        self._config, self._plan, self._redactor, self._known = config, plan, redactor, known
        self._names = model_names(config.baseline, config.candidate) if config.candidate else {}
        both = {Arm.BASELINE: config.baseline, Arm.CANDIDATE: config.candidate}
        self._backends = {arm: one for arm in plan.arms if (one := both[arm]) is not None}
        self._keys = {arm: one.api_key() for arm, one in self._backends.items()}
        self._outside = any(one.outside for one in self._backends.values())
        self._ends: dict[str, float | None] = {}
        self.unusable: dict[str, int] = {}
        """Requests that cannot be sent, by reason."""
        self.answered = 0
        """Requests that had been answered by every arm before."""

    def scheduled(self, captured: Iterable[tuple[Request, float | None]]) -> Iterator[tuple[float, Ready]]:
        """What is left to send, with seconds from the start. A resumed replay starts at the first moment that is left."""
        requests, timed = itertools.tee(captured) if self._plan.as_recorded else (captured, iter(()))
        moments = self._plan.times(request.at for request, _ in timed)
        start: float | None = None
        for at, (request, took) in zip(moments, requests, strict=False):
            ready = self.ready(request, self._think(request, took))
            if ready is not None:
                start = at if start is None else start
                yield at - start, ready

    def ready(self, request: Request, think_s: float | None = None) -> Ready | None:
        """One request, ready; ``None`` when it was answered before or cannot be sent."""
        arms = [arm for arm in self._wanted(request) if request.id not in self._known.get(arm, ())]
        if not arms:
            self.answered += 1
            return None
        asked, body, reason = self._asked(request)
        if reason:
            self.unusable[reason] = self.unusable.get(reason, 0) + 1
            return None
        calls = {arm: self._call(self._nonced(asked, body, arm), arm) for arm in arms}
        tokens = len(asked.body) // _BYTES_A_TOKEN, _output(body)
        return Ready(request=asked, calls=calls, tokens=tokens, think_s=think_s)

    def _asked(self, request: Request) -> tuple[Request, JSON, str]:
        """The request as it is sent, its body as a value, and why it cannot be sent."""
        if not request.body:
            return request, {}, "no_body"
        try:
            body = orjson.loads(request.body)
        except orjson.JSONDecodeError:
            return request, {}, "not_json"
        if not isinstance(body, dict):
            return request, {}, "not_json"
        if stateful_reason(body):
            return request, {}, "stateful"
        if self._plan.overrides:
            body = body | self._plan.overrides
            request = replace(request, body=orjson.dumps(body))
        if self._outside:
            request = self._redactor.request(request)[0]
        return request, body, ""

    def _call(self, request: Request, arm: Arm) -> Call:
        names = self._names if arm is Arm.CANDIDATE else {}
        side = Arm.CANDIDATE if arm is Arm.CANDIDATE else Arm.BASELINE
        key, backend = self._keys[side], self._backends[side]
        return call_for(request, backend, names=names, key=key, shadow=self._config.shadow)

    def _wanted(self, request: Request) -> tuple[Arm, ...]:
        """Whom this request is for; a repeat is drawn by its id, so that a resumed replay draws the same."""
        repeated = (
            Arm.BASELINE in self._plan.arms and position(digest(f"repeat:{request.id}")) < self._plan.repeat
        )
        return (*self._plan.arms, Arm.BASELINE_REPEAT) if repeated else self._plan.arms

    def _nonced(self, request: Request, body: JSON, arm: Arm) -> Request:
        """With a few letters before the prompt, so that no server has seen its beginning; both arms get the same."""
        if not self._plan.nonce:
            return request
        name = f"{self._plan.source} {self._plan.seed} {request.id} {arm is Arm.BASELINE_REPEAT}"
        nonce = hashlib.blake2b(name.encode(), digest_size=6).hexdigest()
        return replace(request, body=orjson.dumps(with_nonce(body, f"[{nonce}] ")))

    def _think(self, request: Request, took: float | None) -> float | None:
        if self._plan.think_time is None:
            return None
        ended = self._ends.get(request.conversation)
        self._ends[request.conversation] = None if took is None else request.at + took
        if self._plan.think_time == "recorded":
            return None if ended is None else max(0.0, request.at - ended) / self._plan.speed
        return self._plan.think_time


def with_nonce(body: JSON, nonce: str) -> JSON:
    """The body with a text before the first that the model reads. Unchanged where no text is found."""
    for name in ("messages", "input"):
        messages = body.get(name)
        if isinstance(messages, list) and messages and isinstance(messages[0], dict):
            return body | {name: [_before(messages[0], nonce), *messages[1:]]}
    for name in ("instructions", "prompt", "input"):
        if isinstance(text := body.get(name), str):
            return body | {name: nonce + text}
    return body


def _before(message: JSON, nonce: str) -> JSON:
    content = message.get("content")
    if isinstance(content, str):
        return message | {"content": nonce + content}
    if isinstance(content, list):
        return message | {"content": [{"type": _text_type(content), "text": nonce}, *content]}
    return message


def _text_type(parts: list[Any]) -> str:
    kinds = [part.get("type") for part in parts if isinstance(part, dict)]
    return "input_text" if any(str(kind).startswith("input_") for kind in kinds) else "text"


def _output(body: JSON) -> int:
    bounds = [body.get(name) for name in ("max_completion_tokens", "max_tokens", "max_output_tokens")]
    most = next((bound for bound in bounds if isinstance(bound, int) and bound > 0), _OUTPUT)
    alternatives = body.get("n")
    return most * (alternatives if isinstance(alternatives, int) and alternatives > 0 else 1)
