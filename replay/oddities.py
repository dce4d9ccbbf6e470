"""What is not quite as it should be in an answer, collected while it is read."""

from __future__ import annotations

from replay.exchange import Oddity
from replay.values import compact

_SHOWN = 160
_MAX_FIELDS = 64


class Oddities:
    """Codes in order of first sight, each with the bytes that showed it first, and fields that nobody knows."""

    __slots__ = ("_fields", "_found", "event")

    def __init__(self) -> None:
        self._found: dict[str, str] = {}
        self._fields: dict[str, str] = {}
        self.event = b""
        """The bytes that are read right now: the evidence, unless something more exact is at hand."""

    def add(self, code: str, evidence: bytes | str | None = None) -> None:
        """Notes an oddity, once."""
        if code not in self._found:
            self._found[code] = shown(self.event if evidence is None else evidence)

    def field(self, path: str, value: object) -> None:
        """Keeps the last value of a field that the interface does not know."""
        if path in self._fields or len(self._fields) < _MAX_FIELDS:
            self.add("envelope.unknown_field", path)
            self._fields[path] = _cut(compact(value), 400)

    def __contains__(self, code: str) -> bool:
        return code in self._found

    def all(self) -> tuple[Oddity, ...]:
        """Everything found so far."""
        return tuple(Oddity(code=code, evidence=evidence) for code, evidence in self._found.items())

    def fields(self) -> tuple[tuple[str, str], ...]:
        """Unknown fields: path and JSON text."""
        return tuple(self._fields.items())


def shown(data: bytes | str) -> str:
    """Bytes as one printable line, cut."""
    text = (
        data[: 4 * _SHOWN].decode("utf-8", "backslashreplace")
        if isinstance(data, bytes)
        else data[: 4 * _SHOWN]
    )
    line = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
    return _cut(line, _SHOWN)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
