"""What a check found: lines, and the words of a server as they may be shown. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from migrate.sensitive import hide_keys


class Result(StrEnum):
    """The four things that a line can say."""

    OK = "OK"
    DIFFERS = "DIFFERS"
    """It works, but not as the other side does, or as the interface is documented."""
    FAIL = "FAIL"
    """A run with it would fail."""
    NOT_CHECKED = "not checked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One check of one backend."""

    check: str
    result: Result
    detail: str
    """What was seen, on one line, without a secret."""
    change: str = ""
    """What to change; empty when there is nothing to."""
    value: str | int | None = None
    """What the other side is compared with; ``None``: nothing to compare."""
    passing: bool = False
    """A failure that time alone may heal: a server that starts, or is too busy."""

    @property
    def passed(self) -> bool:
        """A run may start with it."""
        return self.result is not Result.FAIL


def ok(check: str, detail: str, value: str | int | None = None) -> Line:
    """A line of what is as it should be."""
    return Line(check=check, result=Result.OK, detail=detail, value=value)


def failed(check: str, detail: str, change: str, *, passing: bool = False) -> Line:
    """A line of what a run would fail with."""
    return Line(check=check, result=Result.FAIL, detail=detail, change=change, passing=passing)


def unlike(check: str, detail: str, change: str = "", value: str | int | None = None) -> Line:
    """A line of what works differently."""
    return Line(check=check, result=Result.DIFFERS, detail=detail, change=change, value=value)


def unknown(check: str, detail: str) -> Line:
    """A line of what could not be found out."""
    return Line(check=check, result=Result.NOT_CHECKED, detail=detail)


def clean(text: str, secret: str | None = None, most: int = 160) -> str:
    """A server's words on one line: no control or invisible characters, nothing that is or looks like a key, and not long."""
    words = text[: 20 * most]
    if secret:
        words = words.replace(secret, "***")
    words = hide_keys(words, lambda *_: "***")
    words = "".join(one if one.isprintable() else " " for one in words)
    words = " ".join(words.split())
    return words if len(words) <= most else words[: most - 1] + "…"
