"""Questions to a judge model over HTTP: a few at once, again where that helps, never more than was allowed."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Callable, Mapping

import orjson

from migrate.config import JudgeSection, Retry
from migrate.errors import ConfigError
from migrate.mirror.retry import send_with_retries
from replay.client import Call, Client
from replay.decoding import observe
from replay.exchange import Arm, Observation, Recording
from reports.compare.judge_model import REPLY_TOKENS, Opinion, Question, fits, messages, read_reply
from reports.render.text import plain

_PATH = "/v1/chat/completions"
_AT_ONCE = 4
_WITHIN_S = 60.0
_RETRY = Retry(attempts=3, longest_wait=10.0)
_GIVE_UP = 3
"""Failures in a row after which nothing more is asked."""
_MOST = 2**20
"""Bytes of a reply."""

Progress = Callable[[int, int], None]
"""(questions answered, questions in all)."""


class Asker:
    """Asks what ``section`` names, for as long as its limits last. Never raises for what goes wrong with the model."""

    def __init__(self, section: JudgeSection) -> None:
        self._section = section
        self._key, self.problem = _key(section)
        """Why nothing can be asked; ``None`` when it can."""
        self.sent = self.tokens = self._streak = 0
        """Requests, failed ones too; tokens as the server states them, else estimated."""
        self.failures: Counter[str] = Counter()
        """By what went wrong."""

    def __call__(
        self, questions: Mapping[str, Question], into: dict[str, Opinion], progress: Progress | None = None
    ) -> None:
        """Puts the opinion on each question into ``into`` under the question's name, as they come; what got no answer is
        left out."""
        if questions and self.problem is None:
            asyncio.run(self._all(questions, into, progress or (lambda done, total: None)))

    async def _all(
        self, questions: Mapping[str, Question], into: dict[str, Opinion], progress: Progress
    ) -> None:
        gate = asyncio.Semaphore(_AT_ONCE)
        async with Client() as client, asyncio.TaskGroup() as tasks:

            async def one(name: str, asked: Question) -> None:
                async with gate:
                    opinion = await self._opinion(client, asked)
                if opinion is not None:
                    into[name] = opinion
                progress(len(into), len(questions))

            for name, asked in questions.items():
                tasks.create_task(one(name, asked))

    async def _opinion(self, client: Client, asked: Question) -> Opinion | None:
        """``None``: it was not asked, or there was no answer."""
        if self._streak >= _GIVE_UP or self.tokens + asked.tokens > self._section.max_tokens:
            return None

        async def send() -> Recording:
            if self.sent >= self._section.max_requests:
                raise _Spent
            self.sent += 1
            return await client.send(self._call(asked))

        try:
            recording, _ = await send_with_retries(send, _RETRY)
        except _Spent:
            return None
        seen = observe(recording, request_id="", arm=Arm.BASELINE, at=time.time(), path=_PATH)
        return self._read(asked, seen)

    def _read(self, asked: Question, seen: Observation) -> Opinion | None:
        if seen.failure is not None or seen.answer is None:
            self._streak += 1
            why = f"{seen.failure.error_class.value}: {seen.failure.message}" if seen.failure else seen.reason
            self.failures[plain(why, 160)] += 1
            return None
        self._streak = 0
        usage = seen.answer.usage
        self.tokens += usage.total_tokens if usage and usage.total_tokens else asked.tokens
        return read_reply(seen.answer.first.text)

    def _call(self, asked: Question) -> Call:
        fence = secrets.token_hex(8)
        while not fits(fence, asked):
            fence = secrets.token_hex(8)
        body = {
            "model": self._section.model,
            "messages": messages(asked, fence),
            "temperature": 0,
            "max_tokens": REPLY_TOKENS,
        }
        key = (("Authorization", f"Bearer {self._key}"),) if self._key else ()
        return Call(
            url=self._section.url + _PATH,
            headers=(("Content-Type", "application/json"), *key),
            body=orjson.dumps(body),
            first_byte=_WITHIN_S,
            total=_WITHIN_S,
            max_answer=_MOST,
        )


class _Spent(Exception):
    """As many requests were sent as there may be."""


def _key(section: JudgeSection) -> tuple[str | None, str | None]:
    """The key, and why there is none: a report does not fail for it."""
    try:
        return section.api_key(), None
    except ConfigError as error:
        return None, str(error)
