"""The document for programs: versioned, finite numbers only, keys in a fixed order."""

from __future__ import annotations

import json
from dataclasses import asdict

import orjson

from reports.document import Document


def render_json(document: Document) -> str:
    """The whole document as indented JSON. The schema and verdict come first."""
    data = asdict(document)
    ordered = {"schema": data.pop("schema")} | data
    try:
        return orjson.dumps(ordered, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode()
    except TypeError:  # a lone surrogate in a text; JSON has an escape for it
        return json.dumps(ordered, indent=2, allow_nan=False)
