"""The document for programs: versioned, finite numbers only, keys in a fixed order."""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import asdict

from replay.exchange import JSON
from reports.document import Document

_UNUSUAL = re.compile(r"[^\x20-\x7e\n]")
_ESCAPED = frozenset({"Cc", "Cf", "Co", "Cn", "Zl", "Zp"})


def render_json(document: Document) -> str:
    """The whole document, schema and verdict first; see ``indented``."""
    data = asdict(document)
    return indented({"schema": data.pop("schema")} | data)


def indented(data: JSON) -> str:
    """Indented JSON in which what could act on a terminal is escaped, and a lone surrogate, which most readers refuse, is
    U+FFFD. Raises ValueError for a number that is not finite."""
    return escaped(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)) + "\n"


def escaped(text: str) -> str:
    """JSON text in which what could act on a terminal is escaped, and a lone surrogate is U+FFFD."""
    return _UNUSUAL.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    char = match[0]
    category = unicodedata.category(char)
    if category == "Cs":
        return "\ufffd"
    return _unit(char) if category in _ESCAPED else char


def _unit(char: str) -> str:
    """The character as UTF-16 escapes, as JSON wants it."""
    units = char.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
