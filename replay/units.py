"""Durations, shares, sizes and counts as people write them: ``50ms``, ``10 %``, ``32 MiB``, ``20M``.

Each parser takes text or a number and raises ValueError with one line: the value, and how to write it. In text, where a reader
would have to guess the unit, it has to be there; a number is a program's, in seconds and shares of 1.
"""

from __future__ import annotations

import math
import re

_SECONDS = {
    "us": 1e-6,
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86_400.0,
}
_DECIMAL = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BYTES = {f"{unit}b": scale for unit, scale in _DECIMAL.items()} | {
    "": 1,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}
_QUANTITY = re.compile(r"([0-9][0-9_]*(?:\.[0-9]+)?|\.[0-9]+)\s*([a-zµ%]*)", re.IGNORECASE)


def parse_duration(value: object) -> float:
    """Seconds in ``value``: ``50ms``, ``30s``, ``15m``, ``24h``, ``7d``, ``0``, or a number of seconds that is no text.

    ``m`` is minutes, and capitals are refused: nobody may read ``1M`` as a month. Raises ValueError for
    anything else, also for negative numbers and nan.
    """
    hint = "write it as 50ms, 30s, 15m, 24h or 7d"
    number, unit = _split(value, "a duration", hint)
    if not unit and (not number or not isinstance(value, str)):
        return number
    if not unit:
        bare = str(value).strip()
        raise ValueError(f"{bare} has no unit: write {bare}s, {bare}m or {bare}h")
    if unit not in _SECONDS:
        raise _invalid(value, "a duration", hint)
    return number * _SECONDS[unit]


def parse_share(value: object) -> float:
    """A share from 0 to 1 in ``value``: ``10 %``, ``10%`` or ``0.1``; text from 1 on needs its ``%``.

    Raises ValueError for nan, negative values, and more than the whole.
    """
    hint = "write it as 10 % or 0.1, from 0 to the whole"
    number, unit = _split(value, "a share", hint)
    if unit not in ("", "%"):
        raise _invalid(value, "a share", hint)
    if not unit and isinstance(value, str) and 1 <= number <= 100:
        bare = value.strip()
        raise ValueError(
            f"{bare} has no unit: write {bare} %{', or 100 % for the whole' if number == 1 else ''}"
        )
    share = number / 100 if unit else number
    if share > 1:
        raise _invalid(value, "a share", hint)
    return share


def parse_size(value: object) -> int:
    """Whole bytes in ``value``: ``32 MiB`` (of 1024), ``32 MB`` (of 1000), or a plain number."""
    hint = "write it as 32 MiB, 512 KiB, 10 MB or a number of bytes"
    return _whole(value, _BYTES, "a size", hint)


def parse_count(value: object) -> int:
    """A whole number in ``value``: ``20M``, ``1.5k``, ``1_000`` or ``1000``; k, M, G, T as usual."""
    return _whole(value, _DECIMAL, "a count", "write it as 1000, 50k, 20M or 1G")


def _whole(value: object, scales: dict[str, int], what: str, hint: str) -> int:
    number, unit = _split(value, what, hint)
    scaled = number * scales.get(unit.lower(), math.nan)
    rounded = round(scaled) if math.isfinite(scaled) else -1
    if rounded < 0 or not math.isclose(scaled, rounded, rel_tol=1e-12, abs_tol=1e-9):
        raise _invalid(value, what, hint)
    return rounded


def _split(value: object, what: str, hint: str) -> tuple[float, str]:
    """Number and unit of ``value``. A bool is refused: YAML reads ``yes`` as one."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        number, unit = float(value), ""
    elif isinstance(value, str) and (match := _QUANTITY.fullmatch(value.strip())):
        number, unit = float(match[1].replace("_", "")), match[2]
    else:
        raise _invalid(value, what, hint)
    if not math.isfinite(number) or number < 0:
        raise _invalid(value, what, hint)
    return number, unit


def _invalid(value: object, what: str, hint: str) -> ValueError:
    return ValueError(f"{value!r} is not {what}: {hint}")
