"""Questions to one backend, each within what is left of the time; what comes back is a value, whatever it was."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

from migrate.preflight.lines import clean
from replay.client import Call, Client
from replay.coding import joined, plain
from replay.decoding import header, observe, parse_object
from replay.exchange import JSON, Answer, Arm, Ending, ErrorClass, Failure, Recording
from replay.failures import rejected_parameter, transport_failure
from replay.recorder import Recorder
from replay.values import compact

CHAT = "/v1/chat/completions"
_LARGEST = 8 * 2**20
_LEAST_S = 0.05
_PATIENT = 3
"""Sends of one question while the answer is 429."""
_LONGEST_WAIT_S = 1.0
_CAPS = ("max_tokens", "max_completion_tokens")
_FEW = "Say yes."


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a backend answered."""

    status: int | None
    """``None``: no answer began."""
    body: bytes
    answer: Answer | None
    failure: Failure | None
    took_s: float
    location: str | None = None
    """Where a redirect leads."""
    sends: int = 1
    words: str = ""
    """The failure in a few clean words; empty without one."""

    @property
    def json(self) -> JSON | None:
        """The JSON object in the body; ``None`` when it is something else."""
        return parse_object(self.body)

    @property
    def late(self) -> bool:
        """It did not come, or not to its end, in time."""
        return (
            self.failure is not None
            and self.failure.error_class is ErrorClass.TIMEOUT
            and self.status in (None, 200)
        )


class Asking:
    """The questions to one backend; ``until`` is a reading of the monotonic clock."""

    def __init__(self, client: Client, *, url: str, key: str | None, model: str | None, until: float) -> None:
        self._client, self._url, self._key, self._until = client, url, key, until
        self.model = model
        """What to ask for; ``None`` until one was found."""
        self.cap = _CAPS[0]
        """The field by which this backend takes the most tokens of an answer."""

    def beside(self, url: str) -> Asking:
        """The same questions to another address, in the same time."""
        return Asking(self._client, url=url, key=self._key, model=self.model, until=self._until)

    @property
    def left(self) -> float:
        """Seconds left."""
        return self._until - monotonic()

    async def get(self, path: str, *, within: float = 2.0) -> Told:
        """A page."""
        return await self._send("GET", path, b"", within)

    async def chat(
        self,
        *,
        within: float,
        tokens: int = 1,
        content: str = _FEW,
        more: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> Told:
        """A chat completion of at most ``tokens`` tokens; the limit goes by its other name where the backend knows only that."""
        fields |= more or {}
        told = await self._patiently(self._chat(tokens, content, fields), within)
        if (
            told.failure is None
            or rejected_parameter(told.failure.error_class, told.failure.message) != self.cap
        ):
            return told
        self.cap = _CAPS[1 - _CAPS.index(self.cap)]
        return await self._patiently(self._chat(tokens, content, fields), within)

    def _chat(self, tokens: int, content: str, fields: dict[str, Any]) -> bytes:
        messages = [{"role": "user", "content": content}]
        body = {"model": self.model or "", "messages": messages, self.cap: tokens} | fields
        return compact(body).encode()

    async def _patiently(self, body: bytes, within: float) -> Told:
        """Asks again where the server is only busy for a moment."""
        for sends in range(1, _PATIENT + 1):
            told = await self._send("POST", CHAT, body, within)
            if told.status != 429 or sends == _PATIENT or self.left < 2 * _LONGEST_WAIT_S:
                return replace(told, sends=sends)
            told_wait = told.failure.retry_after_s if told.failure else None
            await asyncio.sleep(min(_LONGEST_WAIT_S if told_wait is None else told_wait, _LONGEST_WAIT_S))
        raise AssertionError  # the last round returns

    async def _send(self, method: str, path: str, body: bytes, within: float) -> Told:
        limit = min(within, self.left)
        if limit < _LEAST_S:
            failure = transport_failure(
                Recorder(0.0, limit=0).end(0.0, Ending.TIMEOUT, "no time was left to ask")
            )
            return Told(
                status=None, body=b"", answer=None, failure=failure, took_s=0.0, words=failure.message
            )
        headers = [("Content-Type", "application/json")] if body else []
        if self._key:
            headers.append(("Authorization", f"Bearer {self._key}"))
        call = Call(
            url=self._url + path,
            method=method,
            headers=tuple(headers),
            body=body,
            connect=limit,
            first_byte=limit,
            total=limit,
            max_answer=_LARGEST,
        )
        return self._read(await self._client.send(call), path)

    def _read(self, recording: Recording, path: str) -> Told:
        seen = observe(recording, request_id="", arm=Arm.CANDIDATE, at=time.time(), path=path)
        chunks, _ = plain(recording.chunks, header(recording, "content-encoding"))
        message = clean(seen.failure.message, self._key) if seen.failure else ""
        status = f"{seen.status}: " if seen.status is not None and seen.status >= 400 else ""
        return Told(
            status=seen.status,
            body=joined(chunks),
            answer=seen.answer,
            failure=seen.failure,
            took_s=recording.ended_at - recording.sent_at,
            location=next((value for name, value in recording.headers if name.lower() == "location"), None),
            words=status + message if seen.failure else "",
        )
