"""One running simulator: receives a request, asks the pure modules what to say, and keeps the time."""

from __future__ import annotations

import asyncio
import http.client
import time
from collections.abc import Callable
from dataclasses import dataclass

import orjson
from aiohttp import web

from replay.exchange import JSON
from replay.simulator import chance, connection, dialects, embeddings, faults, metrics, pacing, speech, wire
from replay.simulator.ask import Ask, RefusalError, Wrong, decode
from replay.simulator.faults import Breakage, Plan
from replay.simulator.journal import Journal, Trace
from replay.simulator.settings import Settings
from replay.simulator.speech import Spoken

_GENERATION = {"/v1/chat/completions": True, "/v1/completions": False}
"""Path, and whether it is chat."""
_REMEMBERED = 200_000
"""Prompts whose occurrences are counted; beyond it counting starts anew, so that memory stays bounded."""
_SSE = "text/event-stream; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """Everything decided about one answer before its first byte."""

    ask: Ask
    plan: Plan
    head: wire.Head
    spoken: tuple[Spoken, ...]
    due: tuple[float, ...]
    """Seconds after arrival at which each token is due."""


class Service:
    """The state of a running simulator: counters, prompts seen, files."""

    def __init__(self, settings: Settings, *, exit_process: Callable[[int], object]) -> None:
        self._settings = settings
        self._dialect = dialects.named(settings.dialect)
        self._meter = metrics.Meter()
        self._journal = Journal(log_requests=settings.log_requests, truth=settings.truth)
        self._started = time.time()
        self._received = 0
        self._seen: dict[int, int] = {}
        self._exit = exit_process
        default = chance.number(settings.seed, settings.dialect)
        self._fault_seed = default if settings.fault_seed is None else settings.fault_seed

    async def close(self, _app: web.Application) -> None:
        """Closes the files."""
        self._journal.close()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answers any request."""
        try:
            self._check_started()
            self._check_key(request)
            chat = _GENERATION.get(_path(request))
            if chat is not None:
                return await self._generate(request, chat=chat)
            if _path(request) == "/v1/embeddings":
                _require(request, "POST")
                data = decode(await request.read())
                return self._json(embeddings.answer(data, seed=self._settings.seed))
            return self._page(request)
        except RefusalError as refusal:
            return self._refused(refusal)

    def _check_started(self) -> None:
        if time.time() < self._started + self._settings.faults.starting:
            raise RefusalError(Wrong.SERVER, "Loading model", status=503)

    def _check_key(self, request: web.Request) -> None:
        key = self._settings.api_key
        given = request.headers.get("Authorization", "")
        if key is not None and _path(request).startswith("/v1/") and given != f"Bearer {key}":
            raise dialects.unauthorized(given)

    def _page(self, request: web.Request) -> web.Response:
        """Health, version, models and metrics."""
        dialect, path = self._dialect, _path(request)
        if path in dialect.health:
            if "engine" in self._settings.lacks:
                return web.Response(status=503, headers=self._headers())
            return web.Response(headers=self._headers())
        if path == "/version" and dialect.version:
            return self._json({"version": dialect.version})
        if path == "/v1/models":
            cards = dialect.models(self._settings.served, int(self._started), self._settings.context)
            return self._json({"object": "list", "data": cards})
        if path == dialect.prometheus:
            text = dialect.metrics(self._meter, self._settings.served[0])
            return web.Response(text=text, headers=self._headers("text/plain; version=0.0.4; charset=utf-8"))
        if path == dialect.statistics:
            return self._json(self._meter.drained())
        raise RefusalError(Wrong.ROUTE, dialect.no_route.format(method=request.method, path=path), status=404)

    async def _generate(self, request: web.Request, *, chat: bool) -> web.StreamResponse:
        _require(request, "POST")
        body = await request.read()
        trace = Trace(
            path=_path(request), request_id=request.headers.get("X-Request-Id"), arrived=time.monotonic()
        )
        self._note(request, trace.arrived, body)
        self._count_down()
        self._meter.running += 1
        try:
            ask = dialects.understood(self._dialect, self._settings, decode(body), chat=chat)
            return await self._act(request, self._decided(ask, trace), trace)
        except RefusalError as refusal:
            return await self._send(request, self._refused(refusal), trace)
        except (ConnectionError, asyncio.CancelledError):
            trace.ended = "client_left"
            self._meter.finished["abort"] += 1
            raise
        finally:
            self._meter.running -= 1
            trace.ended_at = time.monotonic()
            self._journal.exchange(trace)

    def _note(self, request: web.Request, arrived: float, body: bytes) -> None:
        headers = tuple(
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in request.raw_headers
        )
        path = request.path_qs
        self._journal.request(
            at=time.time(), monotonic=arrived, method=request.method, path=path, headers=headers, body=body
        )

    def _count_down(self) -> None:
        self._received += 1
        limit = self._settings.faults.crash_after
        if limit is not None and self._received > limit:
            self._exit(1)

    def _decided(self, ask: Ask, trace: Trace) -> _Answer:
        settings, key = self._settings, speech.key(ask)
        occurrence = self._occurrence(key)
        plan = faults.plan(settings.faults, key=key, seed=self._fault_seed, occurrence=occurrence)
        room = settings.context - ask.prompt_tokens
        spoken = speech.speak(ask, seed=settings.seed, plan=plan, room=room, tokens=settings.tokens)
        drawn = chance.number(key, self._fault_seed, occurrence, "pace")
        due = pacing.schedule(settings.pacing, max(1, *(len(item.pieces) for item in spoken), 1), drawn)
        cold = settings.faults.cold if self._received == 1 else 0.0
        due = pacing.stalled(pacing.delayed(due, plan.delay + cold), plan.at, plan.stall)
        created = int(time.time())
        head = wire.Head(id=chance.hexes(32, drawn), created=created, model=ask.model or settings.served[0])
        trace.id, trace.fault = head.id, plan.breakage
        return _Answer(ask=ask, plan=plan, head=head, spoken=spoken, due=due)

    def _occurrence(self, key: int) -> int:
        if len(self._seen) >= _REMEMBERED:
            self._seen.clear()
        seen = self._seen.get(key, 0)
        self._seen[key] = seen + 1
        return seen

    async def _act(self, request: web.Request, answer: _Answer, trace: Trace) -> web.StreamResponse:
        breakage = answer.plan.breakage
        if breakage is None:
            if answer.ask.stream:
                return await self._stream(request, answer, trace)
            return await self._whole(request, answer, trace)
        self._meter.errors += 1
        if breakage in (Breakage.RATE_LIMIT, Breakage.ERROR):
            await connection.sleep_until(trace.arrived + answer.plan.delay)
            return await self._send(request, self._failed(breakage), trace)
        return await self._break(request, answer, trace, breakage)

    def _failed(self, breakage: Breakage) -> web.Response:
        told = self._settings.faults
        if breakage is Breakage.ERROR:
            phrase = http.client.responses.get(told.error_status, "Error")
            return self._refused(RefusalError(Wrong.SERVER, phrase, status=told.error_status))
        response = self._refused(RefusalError(Wrong.RATE_LIMIT, "Rate limit reached", status=429))
        response.headers["Retry-After"] = f"{told.retry_after:g}"
        return response

    async def _break(
        self, request: web.Request, answer: _Answer, trace: Trace, breakage: Breakage
    ) -> web.StreamResponse:
        if breakage is Breakage.HANG:
            await connection.hang(request)
        if breakage is Breakage.FLOOD:
            return await self._flood(request, answer, trace)
        if breakage is Breakage.GARBAGE:
            body = faults.garbage(streamed=answer.ask.stream, at=answer.plan.at)
            kind = _SSE if answer.ask.stream else "application/json"
            await connection.sleep_until(trace.arrived + answer.due[0])
            return await self._send(request, web.Response(body=body, headers=self._headers(kind)), trace)
        await self._reset(request, answer, trace, amid=breakage is Breakage.RESET_AMID)
        return web.Response()

    async def _flood(self, request: web.Request, answer: _Answer, trace: Trace) -> web.StreamResponse:
        kind = _SSE if answer.ask.stream else "application/json"
        response = web.StreamResponse(headers=self._headers(kind))
        await response.prepare(request)
        trace.status = 200
        await connection.flood(response)
        return response

    async def _reset(self, request: web.Request, answer: _Answer, trace: Trace, *, amid: bool) -> None:
        """Ends the connection with a reset, before the first byte or in the middle of the answer."""
        if amid and answer.ask.stream:
            await self._stream(request, answer, trace, until=int(answer.plan.at * len(answer.due)))
        elif amid:
            await connection.sleep_until(trace.arrived + answer.due[-1])
            body = orjson.dumps(self._body(answer))
            response = web.StreamResponse(
                headers=self._headers("application/json") | {"Content-Length": str(len(body))}
            )
            await response.prepare(request)
            await response.write(body[: len(body) // 2])
        else:
            await connection.sleep_until(trace.arrived + answer.due[0])
        trace.ended = "reset"
        await connection.reset(request)

    async def _whole(self, request: web.Request, answer: _Answer, trace: Trace) -> web.StreamResponse:
        await connection.sleep_until(trace.arrived + answer.due[-1])
        response = self._json(self._body(answer), generated=answer.head.id)
        sent = await self._send(request, response, trace)
        self._measure(answer, answer.due[0], answer.due[-1])
        return sent

    def _body(self, answer: _Answer) -> JSON:
        used = wire.counts(answer.ask, answer.spoken)
        return self._dialect.body(answer.ask, answer.head, answer.spoken, used)

    async def _stream(
        self, request: web.Request, answer: _Answer, trace: Trace, *, until: int | None = None
    ) -> web.StreamResponse:
        """Writes one event a token, each at its time, up to the token ``until``; ``None``: to the end."""
        response = web.StreamResponse(headers=self._headers(_SSE, generated=answer.head.id))
        used = wire.counts(answer.ask, answer.spoken)
        await response.prepare(request)
        trace.status = 200
        for token, data in self._dialect.stream(answer.ask, answer.head, answer.spoken, used):
            if until is not None and (token is None or token > until):
                return response
            if token is not None:
                await connection.sleep_until(trace.arrived + answer.due[token])
            await response.write(data)
            if self._journal.timed:
                trace.chunks.append((time.monotonic(), len(data), token))
        await response.write_eof()
        self._measure(answer, answer.due[0], time.monotonic() - trace.arrived)
        return response

    def _measure(self, answer: _Answer, first: float, last: float) -> None:
        for item in answer.spoken:
            prompt = answer.ask.prompt_tokens if item.index == 0 else 0
            tokens = len(item.pieces)
            self._meter.done(
                finish=item.finish, prompt=prompt, tokens=tokens, first=first, last=max(first, last)
            )

    async def _send(self, request: web.Request, response: web.Response, trace: Trace) -> web.StreamResponse:
        """Sends a whole answer here rather than after the handler, when its time has to be known."""
        trace.status = response.status
        if self._journal.timed:
            await response.prepare(request)
            await response.write_eof()
            size = len(response.body) if isinstance(response.body, bytes) else 0
            trace.chunks.append((time.monotonic(), size, None))
        return response

    def _refused(self, refusal: RefusalError) -> web.Response:
        return self._json(self._dialect.error(refusal), status=refusal.status)

    def _json(self, data: object, *, status: int = 200, generated: str | None = None) -> web.Response:
        headers = self._headers("application/json", generated=generated)
        return web.Response(body=orjson.dumps(data), status=status, headers=headers)

    def _headers(self, kind: str | None = None, *, generated: str | None = None) -> dict[str, str]:
        headers = {"Server": self._dialect.server}
        if kind is not None:
            headers["Content-Type"] = kind
        if generated is not None and self._dialect.headers:
            headers |= dict(self._dialect.headers) | {"x-request-id": f"req_{generated}"}
        return headers


def _path(request: web.Request) -> str:
    """The path below the server's root."""
    return "/" + request.match_info["path"]


def _require(request: web.Request, method: str) -> None:
    if request.method != method:
        raise RefusalError(Wrong.METHOD, "Method Not Allowed", status=405)
