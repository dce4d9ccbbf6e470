"""Redaction: what must not be stored is replaced by a placeholder before anything is.

One value gives one placeholder within a run, so that equal stays equal. The placeholder is a keyed hash whose key never leaves
this process: a store cannot be searched for a known number. Redacting twice changes nothing more.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson

from migrate.config import Redact
from migrate.errors import ConfigError
from replay.exchange import Answer, Choice, Failure, Headers, Observation, Request

_KEYS = re.compile(
    r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[\s\S]{0,20000}?-----END [A-Z ]{0,30}PRIVATE KEY-----"
    r"|\beyJ[\w-]{8,4000}\.[\w-]{8,8000}\.[\w-]{8,2000}"
    r"|\b(?:sk|pk|rk|hs|gsk|xai|nvapi|hf|r8|key|ghp|gho|ghu|ghs|ghr|github_pat|glpat|xox[abprs])[-_][\w-]{16,500}"
    r"|\bAKIA[0-9A-Z]{16}\b|\bAIza[\w-]{35}\b"
    r"|(?<=[Bb]earer )(?!\[)[\w.~+/-]{12,4000}=*"
)
_ASSIGNED = re.compile(
    r"(\b(?:api[_-]?key|access[_-]?token|client[_-]?secret|passw(?:or)?d|secret[_-]?key)\b[\"']?\s{0,3}[=:]\s{0,3}[\"']?)"
    r"(?!\[)([^\s\"'\\,;&]{8,500})",
    re.IGNORECASE,
)
_EMAILS = re.compile(r"(?<![\w.%+-])[\w.%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}")
_CARDS = re.compile(
    r"(?<![\d.,-])(?:[3-6]\d{12,18}|[3-6]\d{3}([ -])\d{4}\1\d{4}\1\d{1,7}|3\d{3}([ -])\d{6}\2\d{4,5})(?!-?\d)"
)
"""Without separators, or in the groups that are printed on cards; any other row of digits is a list of numbers."""
_PHONES = re.compile(
    r"(?<![\w+])\+\d{1,3}(?:[ .-]?\(?\d{1,5}\)?){2,5}(?!\w)"
    r"|(?<![\w.+-])\(\d{3,5}\) ?\d{3,4}[ .-]\d{3,4}(?!\w)"
    r"|(?<![\w.+-])\d{3}([ .-])\d{3}\1\d{4}(?![\w-])"
    r"|(?<![\w.+-])0\d{2,4}[ /-]\d{3,4}[ -]?\d{3,4}(?![\w-])"
)
_DIGITS = re.compile(r"\d[\d ()./-]{5}")
_SECRET_HEADERS = frozenset(
    {"authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key", "api-key", "x-goog-api-key"}
)


class Redactor:
    """Replaces secrets in texts, requests and observations.

    ``salt``: random bytes of this run. Raises ConfigError when an own pattern is no regular expression.
    """

    def __init__(self, rules: Redact, salt: bytes) -> None:
        self._salt = salt
        self._fields = tuple(path.split(".") for path in rules.fields)
        self._own = tuple(_compiled(pattern) for pattern in rules.patterns)
        self._steps = tuple(step for wanted, step in self._known(rules) if wanted)

    def _known(self, rules: Redact) -> tuple[tuple[bool, Callable[[str], str]], ...]:
        return (
            (rules.keys, self._hide_keys),
            (rules.emails, self._hide_emails),
            (rules.cards or rules.phones, self._digits(rules)),
        )

    def text(self, text: str) -> str:
        """The text with placeholders for what must not be stored."""
        for pattern in self._own:
            text = pattern.sub(lambda m: self.placeholder("own", m[0]), text)
        for step in self._steps:
            text = step(text)
        return text

    def placeholder(self, kind: str, value: str) -> str:
        """``[kind:hash]`` of one value; the hash has no digits, so that no pattern of ours takes it for a number."""
        data = value.encode("utf-8", "surrogatepass")
        short = hashlib.blake2b(data, digest_size=6, key=self._salt).hexdigest()
        return f"[{kind}:{short.translate(_LETTERS)}]"

    def request(self, request: Request) -> tuple[Request, bool]:
        """The request as it may be stored, and whether its body is another one than the client sent."""
        body = self._body(request.body)
        return replace(
            request,
            body=body,
            path=self.text(request.path),
            headers=self._headers(request.headers),
            conversation=self.placeholder("conversation", request.conversation),
        ), body is not request.body

    def observation(self, seen: Observation) -> Observation:
        """The observation as it may be stored. Its raw body stays only when nothing had to be redacted anywhere."""
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

    def _body(self, body: bytes) -> bytes:
        try:
            value = orjson.loads(body)
        except orjson.JSONDecodeError:
            text = body.decode("utf-8", "surrogateescape")
            redacted = self.text(text)
            return body if redacted == text else redacted.encode("utf-8", "surrogateescape")
        walked = self._value(value)
        for path in self._fields:
            walked = self._field(walked, path)
        return body if walked == value else orjson.dumps(walked)

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._value(item) for item in value]
        if isinstance(value, dict):
            return {self.text(key): self._value(item) for key, item in value.items()}
        if isinstance(value, int) and not isinstance(value, bool) and value > 10**11:
            text = str(value)
            hidden = self.text(text)
            return value if hidden == text else hidden
        return value

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
        return tuple(
            (name, self.text(value)) for name, value in headers if name.lower() not in _SECRET_HEADERS
        )

    def _answer(self, answer: Answer) -> Answer:
        return replace(
            answer,
            choices=tuple(self._choice(choice) for choice in answer.choices),
            error=None if answer.error is None else self._failure(answer.error),
        )

    def _choice(self, choice: Choice) -> Choice:
        return replace(
            choice,
            text=self.text(choice.text),
            reasoning=self.text(choice.reasoning),
            refusal=self.text(choice.refusal),
            tool_calls=tuple(
                replace(c, name=self.text(c.name), arguments=self.text(c.arguments))
                for c in choice.tool_calls
            ),
        )

    def _failure(self, failure: Failure) -> Failure:
        return replace(failure, message=self.text(failure.message))

    def _hide_keys(self, text: str) -> str:
        text = _ASSIGNED.sub(lambda m: m[1] + self.placeholder("key", m[2]), text)
        return _KEYS.sub(lambda m: self.placeholder("key", m[0]), text)

    def _hide_emails(self, text: str) -> str:
        return _EMAILS.sub(lambda m: self.placeholder("email", m[0]), text) if "@" in text else text

    def _digits(self, rules: Redact) -> Callable[[str], str]:
        def hide(text: str) -> str:
            if not _DIGITS.search(text):
                return text
            if rules.cards:
                text = _CARDS.sub(self._card, text)
            return _PHONES.sub(self._phone, text) if rules.phones else text

        return hide

    def _card(self, match: re.Match[str]) -> str:
        digits = re.sub(r"\D", "", match[0])
        return self.placeholder("card", digits) if _luhn(digits) else match[0]

    def _phone(self, match: re.Match[str]) -> str:
        digits = re.sub(r"\D", "", match[0])
        return self.placeholder("phone", digits) if 8 <= len(digits) <= 15 else match[0]


_LETTERS = str.maketrans("0123456789", "ghijklmnop")


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"redact.patterns: {pattern!r} is no regular expression: {error}") from None


def _luhn(digits: str) -> bool:
    """The check digit of card numbers (ISO/IEC 7812-1): doubled every second digit from the right, the sum ends in 0."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + place % 2)
        total += value - 9 * (value > 9)
    return total % 10 == 0
