"""The document for programs: versioned, finite numbers only, keys in a fixed order."""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import asdict

from reports.document import Document

_UNUSUAL = re.compile(r"[^\x20-\x7e\n]")
_ESCAPED = frozenset({"Cc", "Cf", "Co", "Cn", "Zl", "Zp"})


def render_json(document: Document) -> str:
    """The whole document as indented JSON, schema and verdict first.

    What could act on a terminal is escaped; a lone surrogate, which most readers refuse, is U+FFFD. Raises ValueError for
    a number that is not finite.
    """
    data = asdict(document)
    text = json.dumps({"schema": data.pop("schema")} | data, indent=2, ensure_ascii=False, allow_nan=False)
    return _UNUSUAL.sub(_escaped, text) + "\n"


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
