"""Redaction: what must not be stored is replaced by a placeholder before anything is.

One value gives one placeholder within a run, so that equal stays equal. The placeholder is a keyed hash whose key is never
stored beside it: a store cannot be searched for a known number. Redacting twice changes nothing more.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from dataclasses import replace
from typing import Any

import orjson

from migrate.config import Redact
from migrate.errors import ConfigError
from migrate.sensitive import (
    PLACEHOLDER,
    hide_cards,
    hide_emails,
    hide_keys,
    hide_phones,
    names_secret,
    suspicious,
)
from replay.exchange import Answer, Choice, Failure, Headers, Observation, Request
from replay.values import may_be_deep, too_deep

_SECRET_WORDS = frozenset(
    {
        "apikey",
        "auth",
        "authorization",
        "cookie",
        "cookie2",
        "credential",
        "credentials",
        "jwt",
        "key",
        "password",
        "secret",
        "signature",
        "token",
    }
)
"""Parts of the names of headers that hold a secret: ``X-Session-Token`` does, ``X-RateLimit-Remaining-Tokens`` does not."""


class Redactor:
    """Replaces secrets in texts, requests and observations.

    ``salt``: random bytes of this run. Raises ConfigError when an own pattern is no regular expression.
    """

    def __init__(self, rules: Redact, salt: bytes) -> None:
        self._salt = salt
        self._fields = tuple(path.split(".") for path in rules.fields)
        self._own = tuple(_compiled(pattern) for pattern in rules.patterns)
        self._steps = tuple(
            step
            for wanted, step in (
                (rules.keys, hide_keys),
                (rules.emails, hide_emails),
                (rules.cards, hide_cards),
                (rules.phones, hide_phones),
            )
            if wanted
        )
        self._keys = rules.keys

    def text(self, text: str) -> str:
        """The text with placeholders for what must not be stored."""
        for pattern in self._own:
            text = self._hide_own(pattern, text)
        if not suspicious(text.encode("utf-8", "replace")):
            return text
        for step in self._steps:
            text = step(text, self.placeholder)
        return text

    def _hide_own(self, pattern: re.Pattern[str], text: str) -> str:
        """Own patterns see what stands between placeholders only: a pattern such as ``[a-z]{8}`` would eat them."""
        parts: list[str] = []
        done = 0
        for known in PLACEHOLDER.finditer(text):
            parts += (self._sub_own(pattern, text[done : known.start()]), known[0])
            done = known.end()
        return "".join((*parts, self._sub_own(pattern, text[done:])))

    def _sub_own(self, pattern: re.Pattern[str], text: str) -> str:
        return pattern.sub(lambda match: self.placeholder("own", match[0]) if match[0] else "", text)

    def placeholder(self, kind: str, value: str) -> str:
        """``[kind:hash]`` of one value; the hash has no digits, so that no pattern of ours takes it for a number."""
        data = value.encode("utf-8", "surrogatepass")
        short = hashlib.blake2b(data, digest_size=6, key=self._salt).hexdigest()
        return f"[{kind}:{short.translate(_LETTERS)}]"

    def request(self, request: Request) -> tuple[Request, bool]:
        """The request as it may be stored, and whether its body is another one than the client sent."""
        body = self._body(request.body)
        kept = Request(
            id=request.id,
            at=request.at,
            method=request.method,
            path=self.text(request.path),
            headers=self._headers(request.headers),
            body=body,
            conversation=self._conversation(request.conversation),
            side=request.side,
        )
        return kept, body is not request.body

    def _conversation(self, name: str) -> str:
        """A conversation's hash can be guessed from its text by whoever has the store; the placeholder cannot."""
        return name if PLACEHOLDER.fullmatch(name) else self.placeholder("conversation", name)

    def observation(self, seen: Observation) -> Observation:
        """The observation as it may be stored. Its raw body stays only when nothing had to be redacted anywhere."""
        said = (seen.headers, seen.answer, seen.failure, seen.earlier)
        if (
            seen.raw is None
            and self._plain(_dumped(said))
            and not any(_secret(name) for name, _ in seen.headers)
        ):
            return seen
        answer = None if seen.answer is None else self._answer(seen.answer)
        failure = None if seen.failure is None else self._failure(seen.failure)
        clean = answer == seen.answer and failure == seen.failure and seen.raw is not None
        clean = clean and self._untouched(seen.raw or b"")
        return replace(
            seen,
            headers=self._headers(seen.headers),
            answer=answer,
            failure=failure,
            earlier=tuple(self._failure(one) for one in seen.earlier),
            raw=seen.raw if clean else None,
        )

    def _untouched(self, raw: bytes) -> bool:
        text = raw.decode("latin-1")
        return self.text(text) == text

    def _plain(self, data: bytes | None) -> bool:
        """Whether it is plain to see that nothing is to be replaced in a JSON text; False says nothing."""
        if data is None or self._own or suspicious(data):
            return False
        try:
            data.decode()
        except UnicodeDecodeError:
            return False
        return not may_be_deep(data)

    def _body(self, body: bytes) -> bytes:
        if not self._fields and self._plain(body):
            return body
        try:
            value = orjson.loads(body)
        except orjson.JSONDecodeError:
            text = body.decode("utf-8", "surrogateescape")
            redacted = self.text(text)
            return body if redacted == text else redacted.encode("utf-8", "surrogateescape")
        if may_be_deep(body) and too_deep(value):
            return orjson.dumps(self.placeholder("nested", body.decode("utf-8", "replace")))
        walked = self._value(value)
        for path in self._fields:
            walked = self._field(walked, path)
        return body if walked == value else orjson.dumps(walked)

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._string(value)
        if isinstance(value, list):
            return [self._value(item) for item in value]
        if isinstance(value, dict):
            return {self.text(name): self._named(name, item) for name, item in value.items()}
        if isinstance(value, int) and not isinstance(value, bool) and value > 10**11:
            text = str(value)
            hidden = self.text(text)
            return value if hidden == text else hidden
        return value

    def _named(self, name: str, value: Any) -> Any:
        if self._keys and _is_word(value) and names_secret(name, str(value)):
            return self.placeholder("key", str(value))
        return self._value(value)

    def _string(self, text: str) -> str:
        """A string that holds JSON itself, such as the arguments of a tool call, stays JSON: its values are redacted.

        What is nested too deeply to be looked through is hidden whole.
        """
        if text.lstrip()[:1] in ("{", "["):
            with contextlib.suppress(orjson.JSONDecodeError):
                value = orjson.loads(text)
                if may_be_deep(text) and too_deep(value):
                    return self.placeholder("nested", text)
                try:
                    walked = self._value(value)
                except RecursionError:  # strings within strings, each below the bound
                    return self.placeholder("nested", text)
                return text if walked == value else orjson.dumps(walked).decode()
        return self.text(text)

    def _field(self, value: Any, path: list[str]) -> Any:
        head, *rest = path
        if isinstance(value, list):
            return [self._field(item, path) for item in value]
        if not isinstance(value, dict) or head not in value:
            return value
        if rest:
            return value | {head: self._field(value[head], rest)}
        shown = value[head]
        hidden = isinstance(shown, str) and shown.startswith("[field:")
        return value if hidden else value | {head: self.placeholder("field", repr(shown))}

    def _headers(self, headers: Headers) -> Headers:
        return tuple((name, self.text(value)) for name, value in headers if not _secret(name))

    def _answer(self, answer: Answer) -> Answer:
        return replace(
            answer,
            choices=tuple(self._choice(choice) for choice in answer.choices),
            model=self._word(answer.model),
            fingerprint=self._word(answer.fingerprint),
            error=None if answer.error is None else self._failure(answer.error),
            oddities=tuple(replace(odd, evidence=self.text(odd.evidence)) for odd in answer.oddities),
            extra=tuple((self.text(path), self._string(text)) for path, text in answer.extra),
        )

    def _choice(self, choice: Choice) -> Choice:
        return replace(
            choice,
            text=self.text(choice.text),
            reasoning=self.text(choice.reasoning),
            refusal=self.text(choice.refusal),
            tool_calls=tuple(
                replace(c, name=self.text(c.name), arguments=self._string(c.arguments), id=self._word(c.id))
                for c in choice.tool_calls
            ),
            finish_reason=self._word(choice.finish_reason),
            role=self.text(choice.role),
        )

    def _word(self, text: str | None) -> str | None:
        """A server may say anything anywhere."""
        return None if text is None else self.text(text)

    def _failure(self, failure: Failure) -> Failure:
        return replace(failure, message=self.text(failure.message))


def _is_word(value: Any) -> bool:
    """A text, or a number, as a PIN may be; ``true`` says nothing."""
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _secret(header: str) -> bool:
    return not _SECRET_WORDS.isdisjoint(re.split("[-_]", header.lower()))


def _dumped(value: Any) -> bytes | None:
    """JSON with every text of a value; ``None`` when one holds lone surrogates."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return None


_LETTERS = str.maketrans("0123456789", "ghijklmnop")


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"redact.patterns: {pattern!r} is no regular expression: {error}") from None
    if compiled.fullmatch(""):
        raise ConfigError(f"redact.patterns: {pattern!r} matches nothing at all; use + where it has *")
    return compiled
