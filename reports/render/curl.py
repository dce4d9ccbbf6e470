"""A request as a command that asks it again: no secret in it, and nothing that a terminal obeys. Pure."""

from __future__ import annotations

import json
import re
from shlex import quote

from reports.document import Target
from reports.render.json import escaped
from reports.render.text import plain
from reports.shown import Asked

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,100}")


def curl(asked: Asked, target: Target, *, key: str | None) -> str:
    """The command that asks ``target``; the body is left to a file where it is not at hand. ``key``: the variable that holds
    the key where the configuration names none; ``None``: then it takes no key."""
    variable = target.key_env or key
    authorized = variable is not None and _VARIABLE.fullmatch(variable)
    lines = [
        f"curl -sS -X {quote(plain(asked.method, 20))} {quote(plain(target.url + asked.path, 2_000))}",
        "-H 'content-type: application/json'",
        *([f'-H "authorization: Bearer ${variable}"'] if authorized else []),
        f"--data-raw {quote(_body(asked.body, target))}" if asked.body else "--data-binary @request.json",
    ]
    return " \\\n  ".join(lines)


def _body(body: str, target: Target) -> str:
    """With the name by which the target knows the model."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return plain(body, len(body), lines=True)
    if isinstance(data, dict) and isinstance(data.get("model"), str):
        data["model"] = target.models.get(data["model"], data["model"])
    return escaped(json.dumps(data, ensure_ascii=False))
