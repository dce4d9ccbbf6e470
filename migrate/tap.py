"""The tap beside the client's answer: decides what is mirrored, hands it over without waiting, and counts each request once.

Nothing here can fail, delay or change an answer. The decision is made while the baseline works on the request; a message
that the channel does not take at once is dropped and counted by its reason.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from typing import Any

import orjson

from migrate.channel import Admitted, Answered, Message
from migrate.config import Shadow
from migrate.headers import RawHeaders, decoded, for_mirror, without_credentials
from migrate.sampling import body_key, digest, header_key, position, stateful_reason
from replay.exchange import JSON, Arm, Ending, Headers, Recording, Request
from replay.recorder import Recorder
from replay.values import too_deep

COPY = "X-LLM-Migrate-Copy"
"""Marks copies: a copy that comes back to a gateway is never copied again."""

_COPY = COPY.lower().encode()
_SMALL = 64 * 1024
_MOST_CONTAINERS = 20_000
_MOST_ITEMS = 300_000

log = logging.getLogger("migrate")

OUTCOMES = (
    "mirrored",
    "not_eligible",
    "not_sampled",
    "not_json",
    "too_large",
    "incomplete",
    "stateful",
    "paused",
    "queue_full",
    "mirror_down",
    "tap_failed",
)
"""What becomes of a passed request, each request exactly once; together they sum to ``passed``.

``incomplete``: its body never arrived whole. ``tap_failed``: a defect of ours, logged.
"""

EVENTS = (
    "passed",
    "gateway_errors",
    "retried",
    "client_left",
    "cut_short",
    "answers_dropped",
    "answers_oversize",
)
"""Counted beside the outcomes: requests, answers the gateway had to give itself, retries of stale connections, clients
that left, answers that ended early, and answers whose recording was lost."""

Sink = Callable[[Message], str | None]
"""Takes a message at once and returns ``None``, or does not take it and returns why (``queue_full``, ``mirror_down``)."""


class Tap:
    """Sampling and counting for one gateway.

    ``sink`` never blocks. ``counters`` holds every outcome and event from the start, at 0.
    """

    def __init__(self, shadow: Shadow, sink: Sink) -> None:
        self.shadow = shadow
        self.sink = sink
        self.mirroring = True
        self.counters: dict[str, int] = dict.fromkeys((*EVENTS, *OUTCOMES), 0)
        self._paths = frozenset(shadow.paths)
        self._by_header = shadow.sample_by.startswith("header:")
        self._header = shadow.sample_by.removeprefix("header:").lower() if self._by_header else ""
        self._held = 0

    def admit(self, method: str, target: str, raw: RawHeaders) -> Ticket | None:
        """Called when a head has been read. ``None`` when the request is already counted as not mirrored."""
        self.counters["passed"] += 1
        outcome = self._refusal(method, target) or ("not_eligible" if _is_copy(raw) else None)
        if outcome:
            self.counters[outcome] += 1
            return None
        return Ticket(self, target, raw)

    def _refusal(self, method: str, target: str) -> str | None:
        if method != "POST" or target.partition("?")[0] not in self._paths:
            return "not_eligible"
        if not self.mirroring:
            return "paused"
        return None if self.shadow.percent else "not_sampled"

    def hold(self, size: int) -> bool:
        """Reserves memory for unfinished recordings, all together bounded by ``shadow.queue``. False when it is full."""
        if self._held + size > self.shadow.queue:
            return False
        self._held += size
        return True

    def let_go(self, size: int) -> None:
        """Gives reserved memory back."""
        self._held -= size

    def key(self, raw: RawHeaders, body: JSON, request_id: str) -> str:
        """The sampling key of a request."""
        by = self.shadow.sample_by
        found = header_key(by, {k.lower(): v for k, v in decoded(raw)}) if self._by_header else None
        return found or body_key(by, body, request_id)

    def request(self, ticket: Ticket, request_id: str, conversation: str, *, at: float) -> Request:
        """What the mirror gets to see of a request: no credentials."""
        return Request(
            id=request_id,
            at=at,
            method="POST",
            path=without_credentials(ticket.target),
            headers=for_mirror(ticket.raw, also=self._header),
            body=ticket.body,
            conversation=conversation,
            side=ticket.side,
        )


class Ticket:
    """One eligible request on its way: recorded until it is decided, and from then on when it is mirrored."""

    __slots__ = (
        "_asked_at",
        "_head",
        "_recorder",
        "_reserved",
        "_size",
        "_tap",
        "_wanted",
        "arm",
        "at_desk",
        "body",
        "conversation",
        "decided",
        "over",
        "raw",
        "request_id",
        "sent_at",
        "side",
        "target",
    )

    def __init__(self, tap: Tap, target: str, raw: RawHeaders) -> None:
        self._tap = tap
        self.target = target
        self.raw = raw
        self.body = b""
        self.decided = False
        self._wanted = True
        self._reserved = 0
        self.sent_at: float | None = None
        """Reading of the monotonic clock when the request last went to the baseline; ``None`` before."""
        self.at_desk = False
        self.over: tuple[float, Ending, str] | None = None
        """When and how the exchange ended; ``None`` while it goes on."""
        self._asked_at: float | None = None
        self.request_id = ""
        self.conversation = ""
        """The digest of its key; empty until somebody needed it."""
        self.side: Arm | None = None
        """See ``Request.side``."""
        self.arm = Arm.BASELINE
        """Who is asked, and recorded."""
        self._head: tuple[float, int, RawHeaders] | None = None
        self._recorder: Recorder | None = None
        self._size = 0

    @property
    def recording(self) -> bool:
        """Whether the answer is, or may yet be, wanted."""
        return self._wanted

    def reserve(self, size: int) -> bool:
        """Reserves memory for the request's body until it is decided. False when there is none."""
        if not self._tap.hold(size):
            return False
        self._reserved += size
        return True

    def refuse(self, outcome: str) -> None:
        """Not mirrored, for a reason that the gateway saw. Nothing happens once it is decided."""
        if not self.decided:
            self._count(outcome)
            self._drop()

    def offer(self) -> None:
        """Decides once, and hands the request over when it is to be mirrored. Never raises."""
        if self.decided:
            return
        try:
            outcome = self._decide()
        except Exception:
            log.exception("the tap failed on a request; it is not mirrored")
            outcome = "tap_failed"
        self._count(outcome)
        if outcome != "mirrored":
            self._drop()

    def _count(self, outcome: str) -> None:
        self.decided = True
        self.body = b""
        self._tap.let_go(self._reserved)
        self._reserved = 0
        self._tap.counters[outcome] += 1

    def _drop(self) -> None:
        self._wanted = False
        self._recorder = None
        if self._size:
            self._tap.let_go(self._size)
            self._size = 0

    def _decide(self) -> str:
        tap = self._tap
        if not tap.mirroring:
            return "paused"
        if intricate(self.body):
            return "too_large"
        body = parsed(self.body)
        if body is None:
            return "not_json"
        self.belongs(body)
        if position(self.conversation) >= tap.shadow.percent:
            return "not_sampled"
        if stateful_reason(body):
            return "stateful"
        at = self._asked_at = _epoch(self.sent_at)
        request = tap.request(self, self.request_id, self.conversation, at=at)
        return tap.sink(Admitted(request=request)) or "mirrored"

    def belongs(self, body: JSON) -> str:
        """Names the request and finds its conversation, once. Returns the conversation's digest."""
        if not self.conversation:
            self.request_id = os.urandom(16).hex()
            self.conversation = digest(self._tap.key(self.raw, body, self.request_id))
        return self.conversation

    def head(self, at: float, status: int, raw: RawHeaders) -> None:
        """The baseline's head arrived. Never raises."""
        self._head = (at, status, raw)

    def feed(self, at: float, data: bytes) -> None:
        """A piece of the baseline's body arrived. Beyond a bound the recording is given up and its memory freed.

        Never raises.
        """
        if not self._wanted:
            return
        try:
            self._feed(at, data)
        except Exception:
            log.exception("the tap failed on an answer; its recording is lost")
            self._tap.counters["answers_dropped"] += 1
            self._drop()

    def _feed(self, at: float, data: bytes) -> None:
        recorder = self._recorder or self._begin(self._tap.shadow.max_answer)
        if self._tap.hold(len(data)):
            self._size += len(data)
            if recorder.feed(at, data):
                return
        self._drop()
        self._wanted = True
        self._begin(-1)

    def _begin(self, limit: int) -> Recorder:
        """A recorder; one with a negative limit keeps nothing and ends as OVERSIZE."""
        self._recorder = Recorder(self.sent_at or 0.0, limit=limit)
        return self._recorder

    def end(self, at: float, ending: Ending, detail: str = "") -> None:
        """The exchange is over: hands over what was recorded. Never raises."""
        self._over(at, ending, detail, last=True)

    def turn(self, at: float, ending: Ending, detail: str) -> None:
        """The candidate's answer ended like this before the client got any of it: hands over what was recorded, and records the
        baseline's from now on. Never raises."""
        self.offer()  # the request before its answers
        self._over(at, ending, detail, last=False)
        self.arm, self._asked_at, self._head = Arm.BASELINE, None, None

    def _over(self, at: float, ending: Ending, detail: str, *, last: bool) -> None:
        if not self._wanted:
            return
        recorder = self._recorder or self._begin(self._tap.shadow.max_answer)
        self._drop()
        self._wanted = not last
        try:
            if self._head is not None:
                recorder.head(self._head[0], self._head[1], _answer_headers(self._head[2]))
            self._report(recorder.end(at, ending, detail), last=last)
        except Exception:
            log.exception("the tap failed on an answer; its recording is lost")
            self._tap.counters["answers_dropped"] += 1

    def _report(self, recording: Recording, *, last: bool) -> None:
        """The recording, or, when it does not fit, the mere fact that there was an answer."""
        tap = self._tap
        if recording.ending is Ending.OVERSIZE:
            tap.counters["answers_oversize"] += 1
        if tap.sink(self._answered(recording, last=last)) is not None:
            tap.counters["answers_dropped"] += 1
            tap.sink(self._answered(_bare(recording), last=last))

    def _answered(self, recording: Recording, *, last: bool) -> Answered:
        at = _epoch(self.sent_at) if self._asked_at is None else self._asked_at
        return Answered(request_id=self.request_id, at=at, recording=recording, arm=self.arm, last=last)


def _epoch(at: float | None) -> float:
    """The epoch time of a reading of the monotonic clock; now when there is none."""
    return time.time() - (time.monotonic() - at if at is not None else 0.0)


def _is_copy(raw: RawHeaders) -> bool:
    return any(name.lower() == _COPY for name, _ in raw)


def intricate(body: bytes) -> bool:
    """Whether looking through a body could take the event loop tens of milliseconds; every other takes few."""
    if len(body) <= _SMALL:
        return False
    return body.count(b"{") + body.count(b"[") > _MOST_CONTAINERS or body.count(b",") > _MOST_ITEMS


def parsed(body: bytes) -> JSON | None:
    """The JSON object in ``body``; ``None`` when it is none (not JSON, nested too deeply, or in a content coding)."""
    try:
        value: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) and not too_deep(value) else None


def _answer_headers(raw: RawHeaders) -> Headers:
    return tuple(pair for pair in decoded(raw) if pair[0].lower() not in ("set-cookie", "set-cookie2"))


def _bare(recording: Recording) -> Recording:
    return Recording(
        sent_at=recording.sent_at,
        head_at=recording.head_at,
        status=recording.status,
        ended_at=recording.ended_at,
        ending=Ending.OVERSIZE,
        detail="dropped: the queue to the mirror was full",
    )
