"""The gateway of a canary: the candidate answers a share of the conversations, and the baseline whatever it fails on.

A side is drawn before the request leaves, by a hash of its conversation, so that a conversation stays where it is while the
share only grows. Before the first byte has reached the client, an answer that failed is replaced by the baseline's, within a
budget; afterwards the client sees what happened. Either way it counts against the candidate, here and in the verdict.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any

import aiohttp
import orjson
from aiohttp.http import RawResponseMessage
from aiohttp.streams import StreamReader

from migrate.canary.guard import Doubling, Guard
from migrate.canary.section import CanarySection
from migrate.gateway import BROKEN, Answer, Gateway, joined
from migrate.headers import for_another, origin_form, request_head, without_credentials
from migrate.relay import ClientLeft, Exchange
from migrate.sampling import rollout, stateful_reason
from migrate.tap import Tap, Ticket, intricate, parsed
from migrate.upstream import Call, Upstream, UpstreamFailed
from replay.exchange import JSON, Arm, Ending

COUNTED = ("drawn", "to_candidate", "candidate_failed", "failed_over", "not_failed_over")
"""Beside the tap's counters: requests that the draw was made for, those that the candidate was asked, those it failed, and
whether the baseline answered these instead or the budget for asking twice was spent."""

_REFUSALS = frozenset({401, 403, 429})
"""Statuses below 500 that are the candidate's own failure, whatever was asked. Of any other the baseline's answer tells."""

_LONG_S = 5.0
"""A client that leaves after so long, without a byte, has waited for nothing."""
_STOPPED = "the gateway stopped the candidate"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """A request as the candidate gets it."""

    parts: tuple[bytes, ...]
    streamed: bool
    """Its first byte is its first token; of any other answer it comes with the last one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failed:
    """What the candidate did instead of answering. ``error``: no answer came; else ``answer`` is one that refuses."""

    ending: Ending
    detail: str
    answer: Answer | None = None
    error: UpstreamFailed | None = None
    own: bool = False
    """We stopped it: that says nothing about the candidate."""

    @property
    def certain(self) -> bool:
        """Whether the candidate failed, whatever the baseline makes of the same request."""
        if self.answer is None:
            return not self.own
        status = self.answer[1].code
        return status >= 500 or status in _REFUSALS

    @property
    def cost(self) -> bool:
        """Whether the candidate has had work with the request."""
        return self.ending is not Ending.CONNECT_FAILED


class Shifting(Gateway):
    """A gateway with two backends. ``share`` of the conversations go to the candidate; it begins at 0.

    ``first_byte``: seconds that a stream may take to begin there. ``names``: what clients' models are called there. ``key``: the
    candidate's own; what a client shows to get in stays with the baseline. ``halted`` is told once why the candidate was stopped,
    when its share is 0 already.
    """

    def __init__(
        self,
        baseline: Upstream,
        candidate: Upstream,
        tap: Tap,
        *,
        section: CanarySection,
        names: dict[str, str],
        key: str | None,
        max_body: int,
        first_byte: float,
        halted: Callable[[str], None],
    ) -> None:
        super().__init__(baseline, tap, max_body=max_body)
        self.candidate = candidate
        self.share = 0.0
        self._section, self._names, self._halted = section, names, halted
        self._first_byte = first_byte
        self._key = [(b"Authorization", b"Bearer " + key.encode())] if key else []
        self._guard = Guard(section.halt)
        self._doubling = Doubling(section.failover)
        self._waiting: set[Exchange] = set()
        self._streaming: set[Exchange] = set()
        self._stopped: set[Exchange] = set()
        self.tap.counters.update(dict.fromkeys(COUNTED, 0))

    def move(self, share: float) -> None:
        """From the next request on. A candidate that comes back after it was stopped is looked at afresh."""
        if share > 0 and self.share == 0:
            self._guard = Guard(self._section.halt)
        if share == 0 and self.share > 0 and self._section.in_flight == "cut":
            self._break_off(self._waiting | self._streaming)
        self.share = share

    def halt(self, why: str, *, failing: bool = True) -> None:
        """A safety stop: the share is 0 when this returns. Does nothing when it is 0 already.

        ``failing``: the candidate fails, so that requests which have no byte of an answer are answered by the baseline. Answers
        under way finish, unless ``canary.in_flight`` cuts them.
        """
        if self.share > 0:
            self.move(0.0)
            if failing:
                self._break_off(self._waiting)
            self._halted(why)

    def health(self, problem: str | None) -> None:
        """A health check of the candidate found this problem, or none."""
        self._act(self._guard.health(problem))

    @property
    def at_candidate(self) -> int:
        """Requests that the candidate has in hand."""
        return len(self._waiting) + len(self._streaming)

    def _act(self, why: str | None) -> None:
        if why is not None:
            self.halt(why)

    def _break_off(self, exchanges: set[Exchange]) -> None:
        for exchange in exchanges:
            self._stopped.add(exchange)
            if exchange.call is not None:
                exchange.call.break_off()

    async def _answer(self, exchange: Exchange) -> Answer:
        question = self._drawn(exchange)
        if question is None:
            return await super()._answer(exchange)
        found = await self._candidates(exchange, question)
        if not isinstance(found, _Failed):
            return found
        answer = await super()._answer(exchange)
        if not found.certain and not found.own and answer[1].code < 400:
            self._failed(timed_out=False)
        return answer

    def _drawn(self, exchange: Exchange) -> _Question | None:
        """The question for the candidate; ``None``: the baseline answers. Never raises: a defect of ours is no client's."""
        ticket = exchange.ticket
        if self.share <= 0 or ticket is None or ticket.decided or exchange.rest:
            return None
        try:
            return self._draw(exchange, ticket)
        except Exception:
            log.exception("no side could be drawn for a request; the baseline answers it")
            ticket.side = None
            return None

    def _draw(self, exchange: Exchange, ticket: Ticket) -> _Question | None:
        body = None if intricate(exchange.body) else parsed(exchange.body)
        if body is None or body.get("store") or stateful_reason(body):
            return None  # it leans on what the baseline holds, or is to be held there
        self.tap.counters["drawn"] += 1
        self._doubling.passed(monotonic())
        if rollout(ticket.belongs(body)) >= self.share:
            ticket.side = Arm.BASELINE
            return None
        question = self._for_candidate(exchange, body)
        ticket.side = ticket.arm = Arm.CANDIDATE
        self.tap.counters["to_candidate"] += 1
        return question

    def _for_candidate(self, exchange: Exchange, body: JSON) -> _Question:
        """The request with the candidate's model, key and host."""
        model, request = body.get("model"), exchange.request
        named = isinstance(model, str) and model in self._names
        data = orjson.dumps(body | {"model": self._names[str(model)]}) if named else exchange.body
        target = without_credentials(request.raw_path).encode("utf-8", "surrogateescape")
        head = request_head(
            request.method.encode(),
            self.candidate.prefix + origin_form(target),
            [*for_another(exchange.raw), *self._key],
            host=self.candidate.host,
            length=len(data),
        )
        return _Question(parts=joined(head, data), streamed=body.get("stream") is True)

    async def _candidates(self, exchange: Exchange, question: _Question) -> Answer | _Failed:
        """The candidate's answer once its body has begun; what it failed with when the baseline is to answer instead.

        Raises UpstreamFailed when it gave no answer and nobody may be asked twice any more.
        """
        self._waiting.add(exchange)
        since = monotonic()
        try:
            found = await self._begun(exchange, question)
        except (asyncio.CancelledError, ClientLeft):
            if monotonic() - since >= _LONG_S:
                self._act(self._guard.left())
            raise
        finally:
            self._waiting.discard(exchange)
            self._stopped.discard(exchange)
        if not isinstance(found, _Failed):
            self._streaming.add(exchange)
            return found
        if found.certain:
            self._failed(timed_out=found.ending is Ending.TIMEOUT)
        if found.cost and not found.own and not self._doubling.allow(monotonic()):
            return self._unreplaced(exchange, found)
        self._turn(exchange, found)
        return found

    async def _begun(self, exchange: Exchange, question: _Question) -> Answer | _Failed:
        try:
            async with asyncio.timeout(self._first_byte if question.streamed else None):
                answer = await self._ask(exchange, self.candidate, question.parts)
                await _first_byte(answer[2])
        except UpstreamFailed as error:
            return self._broken(exchange, error)
        except BROKEN as error:
            ours = type(error) is TimeoutError
            return self._broken(exchange, self._late() if ours else self.candidate.explain(error))
        if answer[1].code < 400:
            return answer
        return _Failed(ending=Ending.COMPLETE, detail="", answer=answer)

    def _late(self) -> UpstreamFailed:
        said = f"{self.candidate.said} sent nothing for {self._first_byte:g} s"
        return UpstreamFailed(504, Ending.TIMEOUT, said)

    def _broken(self, exchange: Exchange, error: UpstreamFailed) -> _Failed:
        """No answer came. Where we broke it off ourselves, nothing is known of what would have come."""
        if exchange in self._stopped:
            return _Failed(ending=Ending.CLIENT_LEFT, detail=_STOPPED, error=error, own=True)
        return _Failed(ending=error.ending, detail=error.message, error=error)

    def _unreplaced(self, exchange: Exchange, found: _Failed) -> Answer:
        self.tap.counters["not_failed_over"] += 1
        if found.answer is None:
            raise found.error or UpstreamFailed(502, found.ending, found.detail)
        self._streaming.add(exchange)
        return found.answer

    def _turn(self, exchange: Exchange, found: _Failed) -> None:
        """From the candidate to the baseline: what came of the one is recorded as its failure."""
        self.tap.counters["failed_over"] += 1
        if exchange.call is not None:
            exchange.call.close()
        if exchange.ticket is not None:
            if found.answer is not None and (data := _at_hand(found.answer[2])):
                exchange.ticket.feed(monotonic(), data)
            exchange.ticket.turn(monotonic(), found.ending, found.detail)

    async def _relay(
        self,
        exchange: Exchange,
        call: Call,
        message: RawResponseMessage,
        payload: StreamReader,
        *,
        keep: bool,
    ) -> tuple[Ending, str]:
        if exchange not in self._streaming:
            return await super()._relay(exchange, call, message, payload, keep=keep)
        try:
            ending, detail = await super()._relay(exchange, call, message, payload, keep=keep)
        finally:
            self._streaming.discard(exchange)
            own = exchange in self._stopped
            self._stopped.discard(exchange)
        if own:
            return Ending.CLIENT_LEFT, _STOPPED
        if ending is not Ending.COMPLETE:
            self._failed(timed_out=ending is Ending.TIMEOUT)
        elif message.code < 400:
            self._act(self._guard.saw(monotonic(), failed=False))
        return ending, detail

    def _failed(self, *, timed_out: bool) -> None:
        self.tap.counters["candidate_failed"] += 1
        self._act(self._guard.saw(monotonic(), failed=True, timed_out=timed_out))


async def _first_byte(payload: StreamReader) -> None:
    """Waits until a body has begun, or is known to be empty. Raises what it broke off with, while nobody has read of it."""
    try:
        while not (payload.total_bytes or payload.is_eof() or payload.exception()):
            await payload._wait("the first byte")  # noqa: SLF001 - there is no public way that takes nothing
    except RuntimeError as error:  # the connection is gone, and nothing else was said of it
        raise aiohttp.ClientPayloadError(str(error)) from error
    broken: Any = payload.exception()
    if broken is not None:
        raise broken if isinstance(broken, BROKEN) else aiohttp.ClientPayloadError(str(broken))


def _at_hand(payload: StreamReader) -> bytes:
    """What has come of a body without waiting for more of it."""
    return b"" if payload.exception() else payload.read_nowait()
