"""What may be decided on now: the last judgement, unless it is too old. Pure."""

from __future__ import annotations

from replay.exchange import JSON

MISSED = 3
"""Judgements that may fail to come before the last one counts no more."""


def standing(verdict: JSON | None, *, age: float | None, every: float, now: str) -> JSON:
    """The verdict of a judgement (``news.facts_of``) ``age`` seconds ago, as it stands ``now`` (ISO 8601 in UTC).

    One that is missing, older than three times ``every`` seconds, or a GO that has expired is HOLD, with what it was in its
    reason: whoever reads the word alone is never told GO by mistake.
    """
    if verdict is None or age is None:
        return _held({}, "not_judged", "nothing has been judged yet") | {"age_s": None}
    said = verdict | {"age_s": round(age, 1)}
    if age > MISSED * every:
        return _held(said, "stale", f"the last judgement ({verdict['verdict']}) is {age:.0f} s old")
    if verdict["verdict"] == "GO" and now > verdict["valid_until"]:
        return _held(said, "expired", f"the GO expired at {verdict['valid_until']}")
    return said


def _held(said: JSON, code: str, reason: str) -> JSON:
    empty = {"judged_at": None, "valid_until": None}
    return empty | said | {"verdict": "HOLD", "code": code, "reason": reason}
