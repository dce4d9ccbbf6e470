"""The state of a canary as a value, and every way from one to the next. Pure: time and names come in as arguments.

Each change is a row of the store, numbered without a gap, with who, when and why: the audit log. The last row is the state, so
that nothing else has to agree with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from migrate.canary.section import Step
from migrate.errors import ConfigError
from reports.judgement import Verdict

_LONGEST_COOL_DOWN = 7 * 86_400.0
_DOUBLINGS = 60


class Phase(StrEnum):
    """``shifting``: steps advance. ``paused``: the share stays, and may only go back. ``rolled_back``: 0 until somebody resumes.
    ``finished``: the candidate is what clients get, and nothing is judged any more."""

    SHIFTING = "shifting"
    PAUSED = "paused"
    ROLLED_BACK = "rolled_back"
    FINISHED = "finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """One change of a canary, and the state that it left."""

    canary: str
    """Sorts by time, as the id of a run does."""
    number: int
    """1 for the first; no number is left out."""
    at: float
    """Epoch seconds."""
    who: str
    """A person, or the gateway that decided."""
    action: str
    """``start``, ``advance``, ``approve``, ``set``, ``pause``, ``resume``, ``rollback``, ``finish``; ``join`` and ``cut_off``
    change nothing."""
    why: str
    phase: Phase
    share: float
    """0 to 1: of the conversations, answered by the candidate."""
    step: int
    """Place among the configured steps; the last one that ``share`` has reached."""
    since: float
    """When this share began: evidence for the next step is what came after."""
    rollbacks: int = 0
    """So far; each makes the next cool-down longer."""
    until: float | None = None
    """End of the cool-down; ``None`` without one."""
    approved: bool = False
    """Somebody approved the step after this one."""
    run: str = ""
    """Where the one who decided records; empty for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a judgement says of a canary. ``step``: the pairs since the share began, which alone advance it; ``whole``: all."""

    whole: Verdict
    step: Verdict
    reason: str
    """Why, in one sentence: of the whole for a ROLLBACK, else of the step."""
    since: float
    """Of the share that ``step`` is about."""


def started(canary: str, steps: Sequence[Step], *, at: float, who: str, why: str, run: str) -> Shift:
    """The first row: at the first step."""
    return Shift(
        canary=canary,
        number=1,
        at=at,
        who=who,
        action="start",
        why=why,
        phase=Phase.SHIFTING,
        share=steps[0].percent,
        step=0,
        since=at,
        run=run,
    )


def decided(
    now: Shift,
    seen: Evidence,
    steps: Sequence[Step],
    *,
    manual: bool,
    cool_down: float,
    at: float,
    who: str,
    run: str,
) -> Shift | None:
    """What a judgement changes; ``None``: nothing, also where the share was moved since the judgement began.

    A ROLLBACK takes the share to 0, also when paused. A GO of the step's own evidence goes one step on, never over one, and not
    without approval where ``manual`` asks for it. At the last step nothing is left to advance to: a person finishes.
    """
    if now.phase not in (Phase.SHIFTING, Phase.PAUSED) or seen.since != now.since:
        return None
    if seen.whole is Verdict.ROLLBACK or seen.step is Verdict.ROLLBACK:
        return rolled_back(now, at=at, who=who, why=seen.reason, cool_down=cool_down, run=run)
    following = now.step + 1
    ripe = seen.step is Verdict.GO and following < len(steps)
    if now.phase is Phase.PAUSED or not ripe or (manual and not now.approved):
        return None
    percent = steps[following].percent
    if percent <= now.share:
        return None
    why = f"GO at {now.share * 100:.4g} %: {seen.reason}"
    moved = _next(now, "advance", at=at, who=who, why=why, run=run)
    return replace(moved, share=percent, step=following, since=at, approved=False)


def rolled_back(
    now: Shift, *, at: float, who: str, why: str, cool_down: float, run: str = ""
) -> Shift | None:
    """The share at 0, until somebody resumes and the cool-down is over; ``None`` where it is so already."""
    if now.phase is Phase.ROLLED_BACK:
        return None
    rest = min(cool_down * 2 ** min(now.rollbacks, _DOUBLINGS), _LONGEST_COOL_DOWN)
    moved = _next(now, "rollback", at=at, who=who, why=why, run=run)
    return replace(
        moved,
        phase=Phase.ROLLED_BACK,
        share=0.0,
        step=0,
        since=at,
        rollbacks=now.rollbacks + 1,
        until=at + rest,
        approved=False,
    )


def paused(now: Shift, *, at: float, who: str, why: str) -> Shift:
    """No step advances any more. Raises ConfigError where nothing advances anyhow."""
    if now.phase is not Phase.SHIFTING:
        raise ConfigError(f"canary {now.canary} is {_said(now)}; only one that is shifting can be paused")
    return replace(_next(now, "pause", at=at, who=who, why=why), phase=Phase.PAUSED)


def resumed(now: Shift, steps: Sequence[Step], *, at: float, who: str, why: str) -> Shift:
    """On from a pause at the same share, or from a rollback, and from any share below the first step, at the first step.

    Raises ConfigError during a cool-down, and where nothing rests.
    """
    if now.phase is Phase.PAUSED and now.share >= steps[0].percent:
        return replace(_next(now, "resume", at=at, who=who, why=why), phase=Phase.SHIFTING)
    if now.phase not in (Phase.PAUSED, Phase.ROLLED_BACK):
        raise ConfigError(f"canary {now.canary} is {_said(now)}; there is nothing to resume")
    if now.until is not None and at < now.until:
        raise ConfigError(
            f"canary {now.canary} was rolled back ({now.rollbacks} so far) and cools down for another {now.until - at:.0f} s; "
            "find out why first"
        )
    moved = _next(now, "resume", at=at, who=who, why=why)
    return replace(moved, phase=Phase.SHIFTING, share=steps[0].percent, step=0, since=at, until=None)


def approved(now: Shift, steps: Sequence[Step], *, at: float, who: str, why: str) -> Shift:
    """The next step may be taken as soon as the evidence says GO. Raises ConfigError where no step is next."""
    if now.phase is not Phase.SHIFTING or now.step + 1 >= len(steps):
        raise ConfigError(f"canary {now.canary} is {_said(now)}; there is no step to approve")
    return replace(_next(now, "approve", at=at, who=who, why=why), approved=True)


def set_to(now: Shift, share: float, steps: Sequence[Step], *, at: float, who: str, why: str) -> Shift:
    """A share by hand, which pauses: what a person chose is not taken further by itself. Raises ConfigError after a
    rollback: only ``resumed`` heeds the cool-down."""
    if now.phase is Phase.ROLLED_BACK:
        raise ConfigError(f"canary {now.canary} is rolled back; begin again with migrate canary resume")
    reached = max((place for place, step in enumerate(steps) if step.percent <= share), default=0)
    moved = _next(now, "set", at=at, who=who, why=why)
    return replace(moved, phase=Phase.PAUSED, share=share, step=reached, since=at, approved=False)


def finished(now: Shift, *, at: float, who: str, why: str) -> Shift:
    """The candidate answers everything from now on. Raises ConfigError unless it does already."""
    if now.share < 1 or now.phase is Phase.FINISHED:
        raise ConfigError(
            f"canary {now.canary} is {_said(now)}; it can be finished when the candidate answers 100 %"
        )
    return replace(_next(now, "finish", at=at, who=who, why=why), phase=Phase.FINISHED, share=1.0)


def noted(now: Shift, action: str, *, at: float, who: str, why: str, run: str = "") -> Shift:
    """A row that changes nothing: who joined, who was cut off."""
    return _next(now, action, at=at, who=who, why=why, run=run)


def _next(now: Shift, action: str, *, at: float, who: str, why: str, run: str = "") -> Shift:
    return replace(now, number=now.number + 1, at=at, who=who, action=action, why=why, run=run)


def _said(now: Shift) -> str:
    return f"{now.phase.value.replace('_', ' ')} at {now.share * 100:.4g} %"
