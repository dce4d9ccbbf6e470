"""What happens to a sampled request: a copy to the candidate, perhaps a repeat to the baseline, and what came of both.

Intent to treat: every admitted request ends with exactly one observation of the candidate, also when its copy was never
sent, was cancelled or fell to a limit.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from migrate.channel import Admitted, Answered, Control, Counted, Message
from migrate.config import Backend, Config
from migrate.mirror.adapt import call_for, model_names
from migrate.mirror.breaker import Breaker, speaks_against
from migrate.mirror.limits import Budget, RepeatGuard
from migrate.mirror.retry import send_with_retries
from migrate.redact import Redactor
from migrate.sampling import digest, position
from migrate.store import Writer
from migrate.tracing import NoSpans, Spans
from replay.client import Call, Client
from replay.decoding import observe
from replay.exchange import Arm, Failure, Observation, Outcome, Recording, Request

_REMEMBERED = 20_000
"""Requests whose baseline answer is still awaited."""
_HELD = 256 * 2**20
"""Bytes of requests that may wait: for the decoder, and again for their baseline answer."""
_UNDECODED = 128 * 2**20
"""Bytes of recordings that may wait for the decoder."""
_REPEATS_IN_FLIGHT = 4


_COUNTED = frozenset(
    {
        "admitted",
        "answers_without_request",
        "copies",
        "copies_back",
        "copies_back_skipped",
        "decoder_full",
        "mirror_failed",
        "mirror_full",
        "micro_usd",
        "not_sent",
        "repeats",
        "repeats_skipped",
        "store_refused",
        "tokens",
    }
)
"""What is counted here, up to the first dot; everything else in a store is the gateway's."""

log = logging.getLogger(__name__)


class Mirror:
    """The state of one run. ``take`` never blocks; the work happens in tasks and in one decoding thread.

    ``counted``: the run's counters so far, for a mirror that goes on with a run after a restart. ``shifting``: the candidate
    answers clients, and copies go the other way, of these requests to the baseline.
    """

    def __init__(
        self,
        config: Config,
        *,
        client: Client,
        redactor: Redactor,
        writer: Writer,
        counted: Mapping[str, int] | None = None,
        spans: Spans | None = None,
        shifting: bool = False,
    ) -> None:
        self._spans = spans or NoSpans()
        self._shifting = shifting
        self._config, self._client, self._redactor, self._writer = config, client, redactor, writer
        breaker = config.policy.circuit_breaker
        self._breaker = Breaker(failures=breaker.failures, recovery=breaker.recovery)
        self._guard = RepeatGuard()
        self._overloaded = RepeatGuard()
        self._budget = _budget(config.candidate, counted or {}) if config.candidate else None
        self._candidate_key = config.candidate.api_key() if config.candidate else None
        self._baseline_key = config.baseline.api_key()
        self._names = model_names(config.baseline, config.candidate) if config.candidate else {}
        self._requests: OrderedDict[str, Request] = OrderedDict()
        self._copies: set[asyncio.Task[None]] = set()
        self._answers: set[asyncio.Task[None]] = set()
        self._repeats: set[asyncio.Task[None]] = set()
        self._decoder = ThreadPoolExecutor(1, thread_name_prefix="decoder")
        self._undecoded = self._held = self._remembered = 0
        self._repeats_refused = False
        self._mirroring = True
        self._stop_reason = "shutdown"
        self.counters: Counter[str] = Counter(
            {name: n for name, n in (counted or {}).items() if name.split(".")[0] in _COUNTED}
        )

    def take(self, message: Message) -> None:
        """One message of the gateway. Never raises: one request that we cannot handle must not end the others' copies."""
        try:
            self._take(message)
        except Exception:
            log.exception("the mirror failed on a message")
            self.counters["mirror_failed"] += 1

    def _take(self, message: Message) -> None:
        if isinstance(message, Admitted):
            self._admitted(message.request)
        elif isinstance(message, Answered):
            self._answered(message)
        elif isinstance(message, Counted):
            self._writer.counters(message.counters)
        elif isinstance(message, Control):
            self._control(message)

    def status(self) -> dict[str, Any]:
        """For ``/status``: what the mirror does right now."""
        self._writer.counters(self.counters)
        return {
            "counters": dict(self.counters),
            "in_flight": len(self._copies),
            "repeats_in_flight": len(self._repeats),
            "breaker": self._breaker.state(time.monotonic()).value,
            "probes": self._breaker.probes,
            "repeats_paused": self._guard.reason if self._guard.paused(time.time()) else None,
            "idle_resets": self._client.idle_resets,
            "store": self._writer.status(),
        }

    async def drain(self, grace: float) -> None:
        """Lets copies in flight finish for ``grace`` seconds, cancels the rest, and decodes what is left."""
        if self._copies:
            await asyncio.wait(self._copies, timeout=grace)
        await asyncio.gather(*self._answers, return_exceptions=True)
        self._cancel("shutdown")
        await asyncio.gather(*self._copies, *self._repeats, return_exceptions=True)
        await asyncio.gather(*self._answers, return_exceptions=True)
        await asyncio.to_thread(self._decoder.shutdown)
        self._writer.counters(self.counters)

    def _control(self, message: Control) -> None:
        self._mirroring = message.mirroring
        if not message.mirroring:
            self._cancel("paused")

    def _cancel(self, reason: str) -> None:
        self._stop_reason = reason
        for task in (*self._copies, *self._repeats):
            task.cancel()

    def _admitted(self, request: Request) -> None:
        self.counters["admitted"] += 1
        if self._held + len(request.body) > _HELD:
            self.counters["mirror_full"] += 1
            return
        self._remember(request)
        if self._shifting:
            self._keep_later(request)
            if request.side is Arm.CANDIDATE:
                self._copy_back(request)
            return
        candidate, budget = self._config.candidate, self._budget
        redacts_first = candidate is not None and candidate.outside
        if not redacts_first:
            self._keep_later(request)
        if candidate is not None and budget is not None:
            _spawn(self._copies, self._copy(request, candidate, budget))

    def _remember(self, request: Request) -> None:
        """Keeps the request until its baseline answer comes; old ones are forgotten, should it never come."""
        self._requests[request.id] = request
        self._remembered += len(request.body)
        while len(self._requests) > _REMEMBERED or self._remembered > _HELD:
            self._remembered -= len(self._requests.popitem(last=False)[1].body)

    def _keep_later(self, request: Request) -> None:
        size = len(request.body)
        self._held += size
        loop = asyncio.get_running_loop()
        done = loop.run_in_executor(self._decoder, self._keep_request, request)
        done.add_done_callback(lambda _: self._let_go(size))

    def _let_go(self, size: int) -> None:
        self._held -= size

    def _keep_request(self, request: Request) -> Request:
        """Stores a request as it may be stored, and returns it so. Runs in the decoding thread: it may take its time."""
        redacted, _ = self._redactor.request(request)
        if not self._writer.offer(redacted):
            self.counters["store_refused"] += 1
        return redacted

    def _refusal(self, candidate: Backend, budget: Budget, changed: bool) -> str | None:
        """Why no copy of a request may leave now, breaker aside: asking it may use up its one probe."""
        if not self._mirroring:
            return "paused"
        if changed and candidate.outside and not self._config.shadow.send_redacted:
            return "not_comparable.redaction"
        return budget.refusal(time.time())

    def _not_sent(self, request: Request, reason: str) -> None:
        self.counters[f"not_sent.{reason}"] += 1
        self._store(
            Observation(
                request_id=request.id,
                arm=Arm.CANDIDATE,
                at=time.time(),
                outcome=Outcome.NOT_SENT,
                reason=reason,
            )
        )

    async def _copy(self, request: Request, candidate: Backend, budget: Budget) -> None:
        """Everything about one copy. Whatever happens, it ends with one observation of the candidate."""
        entry: int | None = None
        try:
            asked = await self._redacted(request) if candidate.outside else request
            changed = asked.body is not request.body
            reason = self._refusal(candidate, budget, changed)
            if reason is None and (entry := self._breaker.allow(time.monotonic())) is None:
                reason = "breaker_open"
            if reason is not None or entry is None:
                self._not_sent(request, reason or "breaker_open")
                return
            call = call_for(
                asked, candidate, names=self._names, key=self._candidate_key, shadow=self._config.shadow
            )
            at = time.time()
            recording, earlier = await self._sent(call, budget)
        except (asyncio.CancelledError, Exception) as error:
            if entry is not None:
                self._breaker.forget(entry)
            if isinstance(error, asyncio.CancelledError):
                self._not_sent(request, self._stop_reason)
            else:
                log.exception("a copy could not be made")
                self.counters["mirror_failed"] += 1
                self._not_sent(request, "mirror_failed")
            return
        self.counters["copies"] += 1
        note = "not_comparable.redacted_copy" if changed else ""
        # From here on nothing cancels it: there is an answer.
        _spawn(self._answers, self._judged(request, recording, call, budget, entry, (at, earlier, note)))

    async def _redacted(self, request: Request) -> Request:
        size = len(request.body)
        self._held += size
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._decoder, self._keep_request, request
            )
        finally:
            self._held -= size

    async def _sent(self, call: Call, budget: Budget) -> tuple[Recording, tuple[Failure, ...]]:
        async def send() -> Recording:
            budget.sent(time.time())
            return await self._client.send(call)

        budget.in_flight += 1
        try:
            return await send_with_retries(send, self._config.shadow.retry)
        finally:
            budget.in_flight -= 1

    async def _judged(
        self,
        request: Request,
        recording: Recording,
        call: Call,
        budget: Budget,
        entry: int,
        about: tuple[float, tuple[Failure, ...], str],
    ) -> None:
        """Decodes the candidate's answer and tells breaker and budget what came of it."""
        seen = await self._decoded(recording, request, Arm.CANDIDATE, *about)
        if seen.outcome.missing:
            self._breaker.forget(entry)
        else:
            self._breaker.record(entry, failed=speaks_against(seen), now=time.monotonic())
        now = time.time()
        budget.spend(*tokens(seen, len(call.body)), now)
        for name, value in budget.spent(now).items():
            self.counters[f"{name}.{budget.day}"] = value

    def _copy_back(self, request: Request) -> None:
        """The baseline gets what it gave up, as a copy: answers can be compared, and its load stays what it was."""
        refused = self._busy(self._overloaded)
        if refused is None and len(self._copies) >= self._config.baseline.limits.in_flight:
            refused = "in_flight_limit"
        if refused is None:
            _spawn(self._copies, self._again(request, Arm.BASELINE))
        else:
            self.counters[f"copies_back_skipped.{refused}"] += 1

    def _saw(self, recording: Recording) -> None:
        """The baseline answered somebody. A refusal ends copies, too; a slower answer only what it was never asked before."""
        head_s = None if recording.head_at is None else recording.head_at - recording.sent_at
        self._guard.saw(status=recording.status, head_s=head_s, now=time.time())
        self._overloaded.saw(status=recording.status, head_s=None, now=time.time())

    def _busy(self, guard: RepeatGuard) -> str | None:
        """Why the baseline is asked nothing beside its clients right now."""
        if not self._mirroring:
            return "paused"
        if self._repeats_refused:
            return "no_key"
        return "baseline_busy" if guard.paused(time.time()) else None

    def _answered(self, message: Answered) -> None:
        request = self._requests.get(message.request_id)
        if request is None:
            self.counters["answers_without_request"] += 1
            return
        if message.last:
            del self._requests[message.request_id]
            self._remembered -= len(request.body)
        if message.arm is Arm.CANDIDATE:
            _spawn(self._answers, self._candidates(message, request))
            return
        self._saw(message.recording)
        _spawn(self._answers, self._baseline(message, request))

    async def _candidates(self, message: Answered, request: Request) -> None:
        """What the candidate answered a client."""
        seen = await self._decoded(message.recording, request, Arm.CANDIDATE, message.at, (), "")
        if not seen.outcome.missing and (budget := self._budget) is not None:
            budget.spend(*tokens(seen, len(request.body)), time.time())

    async def _baseline(self, message: Answered, request: Request) -> None:
        seen = await self._decoded(message.recording, request, Arm.BASELINE, message.at, (), "")
        reason = self._repeat_refusal(request, seen)
        if reason is None:
            _spawn(self._repeats, self._again(request))
        elif reason != "not_drawn":
            self.counters[f"repeats_skipped.{reason}"] += 1

    def _repeat_refusal(self, request: Request, seen: Observation) -> str | None:
        drawn = position(digest(f"repeat:{request.id}")) < self._config.shadow.repeat_baseline
        compared = self._config.candidate is not None
        if not drawn or not compared or (self._shifting and request.side is not Arm.CANDIDATE):
            return "not_drawn"
        if seen.outcome is not Outcome.OK:
            return "baseline_failed"
        if (busy := self._busy(self._guard)) is not None:
            return busy
        return "in_flight_limit" if len(self._repeats) >= _REPEATS_IN_FLIGHT else None

    async def _again(self, request: Request, arm: Arm = Arm.BASELINE_REPEAT) -> None:
        """Asks the baseline beside its clients: once more, or in a canary for the first time."""
        backend, at = self._config.baseline, time.time()
        call = call_for(request, backend, names={}, key=self._baseline_key, shadow=self._config.shadow)
        recording = await self._client.send(call)
        repeat = arm is Arm.BASELINE_REPEAT
        if recording.status in (401, 403):
            self._repeats_refused = True
            self.counters["repeats_skipped.no_key" if repeat else "copies_back_skipped.no_key"] += 1
            return
        self._saw(recording)
        self.counters["repeats" if repeat else "copies_back"] += 1
        seen = await self._decoded(recording, request, arm, at, (), "")
        if not repeat and self._repeat_refusal(request, seen) is None:
            _spawn(self._repeats, self._again(request))

    async def _decoded(
        self,
        recording: Recording,
        request: Request,
        arm: Arm,
        at: float,
        earlier: tuple[Failure, ...],
        note: str,
    ) -> Observation:
        """Decodes, redacts and stores in the decoding thread. Beyond its bound only the fact of an answer is kept."""
        size = sum(len(data) for _, data in recording.chunks)
        if self._undecoded + size > _UNDECODED:
            self.counters["decoder_full"] += 1
            return self._dropped(request, arm, at, "decoder_full")
        self._undecoded += size
        try:
            loop = asyncio.get_running_loop()
            work = (recording, request, arm, at, earlier, note)
            return await loop.run_in_executor(self._decoder, self._observed, *work)
        finally:
            self._undecoded -= size

    def _dropped(self, request: Request, arm: Arm, at: float, reason: str) -> Observation:
        dropped = Outcome.MIRROR_DROPPED
        seen = Observation(request_id=request.id, arm=arm, at=at, outcome=dropped, reason=reason)
        self._store(seen)
        return seen

    def _observed(
        self,
        recording: Recording,
        request: Request,
        arm: Arm,
        at: float,
        earlier: tuple[Failure, ...],
        note: str,
    ) -> Observation:
        try:
            seen = observe(
                recording, request_id=request.id, arm=arm, at=at, path=request.path, earlier=earlier
            )
            seen = replace(seen, reason=note or seen.reason)
            kept = self._redactor.observation(seen)
        except Exception:
            log.exception("an answer could not be decoded; the pair counts as dropped")
            self.counters["mirror_failed"] += 1
            return self._dropped(request, arm, at, "mirror_failed")
        self._store(kept)
        self._spans.observed(request, kept)
        return seen

    def _store(self, seen: Observation) -> None:
        if not self._writer.offer(seen):
            self.counters["store_refused"] += 1


def _budget(candidate: Backend, counted: Mapping[str, int]) -> Budget:
    """With what this run has spent already on the last day of its counters."""
    days = [int(name.partition(".")[2]) for name in counted if name.startswith("tokens.")]
    day = max(days, default=0)
    spent = {name: counted.get(f"{name}.{day}", 0) for name in ("tokens", "micro_usd")}
    return Budget(candidate.limits, candidate.price, day=day, **spent)


def _spawn(tasks: set[asyncio.Task[None]], work: Coroutine[Any, Any, None]) -> None:
    """Starts a task that cannot be collected while it runs."""
    task = asyncio.create_task(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)


def tokens(seen: Observation, asked: int) -> tuple[int, int]:
    """Tokens that a request of ``asked`` bytes cost, prompt and answer: as the server says, else estimated at four bytes
    of text each."""
    usage = seen.answer.usage if seen.answer else None
    if usage and usage.prompt_tokens is not None and usage.completion_tokens is not None:
        return usage.prompt_tokens, usage.completion_tokens
    choices = seen.answer.choices if seen.answer else ()
    said = sum(
        len(one.text) + len(one.reasoning) + sum(len(call.arguments) for call in one.tool_calls)
        for one in choices
    )
    return asked // 4, said // 4
