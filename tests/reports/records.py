"""Pairs as lines of ``migrate judge``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reports.judgement import Measured, Pair


def records(pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    return [record(pair) for pair in pairs]


def record(pair: Pair) -> dict[str, Any]:
    """A line without what there is not."""
    line = {
        "id": pair.id,
        "at": pair.at,
        "session": pair.session,
        "baseline": _arm(pair.baseline),
        "candidate": _arm(pair.candidate),
        "baseline_repeat": _arm(pair.repeat),
        "differs": pair.differs,
        "repeat_differs": pair.repeat_differs,
        "labels": pair.labels or None,
    }
    return {key: value for key, value in line.items() if value is not None}


def _arm(arm: Measured | None) -> dict[str, Any] | None:
    if arm is None:
        return None
    line = {
        "outcome": arm.outcome.value,
        "e2e_s": arm.e2e_s,
        "ttft_s": arm.ttft_s,
        "output_tokens": arm.output_tokens,
    }
    return {key: value for key, value in line.items() if value is not None}
