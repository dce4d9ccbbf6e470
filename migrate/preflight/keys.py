"""A key before it is sent anywhere: whether it is there, and whether it looks like one. Pure; never repeats it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from migrate.preflight.lines import Line, failed, ok, unknown
from migrate.presets import Preset

_QUOTES = "\"'`\u2018\u2019\u201c\u201d"
_PLACEHOLDER = re.compile(
    r"<.*>|\$\{?\w+\}?|(?:your|my)?[-_ ]?(?:api)?[-_ ]?key(?:[-_ ]?here)?|changeme|todo|x{3,}|sk-(?:x+|\.+|…)",
    re.IGNORECASE,
)


def key_line(name: str | None, value: str | None, preset: str | None, known: Mapping[str, Preset]) -> Line:
    """The line on the key in the environment variable ``name``.

    ``name``: ``None`` when the configuration names no key. ``value``: as the environment has it, ``None`` when it is not set.
    """
    if name is None:
        return unknown("key", "no api_key_env: asked without a key")
    if not (value or "").strip():
        state = "is not set" if value is None else "is empty"
        return failed("key", f"environment variable {name} {state}", f"export {name}=… where migrate runs")
    assert value is not None  # noqa: S101 - it has a character
    wrong = _misshapen(value)
    if wrong is not None:
        what, change = wrong
        return failed("key", f"the key in {name} {what}", change.format(name=name))
    return _prefixed(name, value, preset, known) or ok("key", f"{name} is set")


def _misshapen(value: str) -> tuple[str, str] | None:
    """What is wrong with a key's characters, and what to do; ``None`` when it could be one."""
    bare = value.strip()
    if bare != value:
        place = "begins" if value[:1].isspace() else "ends"
        edge = value[: len(value) - len(value.lstrip())] or value[len(value.rstrip()) :]
        what = "a line break" if "\n" in edge or "\r" in edge else "a blank"
        return f"{place} with {what}", "write it without: export {name}=\"$(tr -d '[:space:]' < FILE)\""
    if bare[0] in _QUOTES or bare[-1] in _QUOTES:
        return "has quotes around it", "export {name} without quotes in the value (a .env file keeps them)"
    if bare.lower().startswith(("bearer ", "authorization:")):
        return "begins with Bearer", "give the key alone: the header's word is added"
    if _PLACEHOLDER.fullmatch(bare):
        return "is a placeholder", "export the key itself in {name}"
    if any(one.isspace() for one in bare):
        return "has a blank or line break in it", "export one key, on one line, in {name}"
    if not bare.isascii() or not bare.isprintable():
        return "has characters that no key has", "copy it again; a word processor may have changed a dash"
    return None


def _prefixed(name: str, value: str, preset: str | None, known: Mapping[str, Preset]) -> Line | None:
    """A key of one provider must not be sent to another."""
    if preset is None or not (own := known[preset].key_prefix) or value.startswith(own):
        return None
    others = [one for one in known.values() if one.key_prefix and value.startswith(one.key_prefix)]
    looks = max(others, key=lambda one: len(one.key_prefix), default=None)
    seems = f"; it looks like one of {looks.name}" if looks else ""
    return failed(
        "key",
        f"the key in {name} does not begin with {own}, as those of {known[preset].name} do{seems}",
        f"export a key of {known[preset].name} in {name}; it was not sent",
    )
