"""A fortnight of a canary in virtual time, over the code that decides: ``python -m benchmarks.canary [--seeds 10]``.

Traffic comes from ``benchmarks.calibration.generator``: 60 requests a minute on average, each a conversation of its own. Of each
a side is drawn; what its side did not answer is not seen. ``migrate.canary.shift`` moves the share by the default steps,
``migrate.canary.guard`` watches every request of the candidate, and every other hour ``reports.canary`` judges under the default
policy. After each rollback somebody resumes as soon as the cool-down lets them, which is as much flapping as there can be.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import median

import numpy as np
from numpy.typing import NDArray

from benchmarks.calibration.generator import DAY, HOUR, START, TIMEOUT_S, Harm, Traffic, made
from migrate.canary.guard import Guard
from migrate.canary.section import CanarySection
from migrate.canary.shift import Evidence, Phase, Shift, decided, resumed, rolled_back, started
from replay.exchange import Outcome
from reports.canary import judge_canary
from reports.columns import CODE, Answers, Columns
from reports.judgement import Judgement, Verdict
from reports.policy import Policy
from reports.stats import Flags

DAYS = 14.0
PER_MINUTE = 60.0
LOOK_S = 2 * HOUR
SECTION = CanarySection()
POLICY = Policy()
GOOD = "as good"
CANDIDATES = {
    GOOD: Harm(),
    "2 points more errors": Harm(errors=0.02),
    "2 x margin slower": Harm(e2e_s=2 * POLICY.latency_median.margin),
    "6 points more disagreement": Harm(differs=0.06),
}
_CUT = Policy.model_validate(POLICY.model_dump() | {"warmup": 0.0})


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What became of one canary."""

    reached_h: float | None
    """Hours until the candidate answered all; ``None``: it never did."""
    rollbacks: tuple[float, ...]
    """Hours of each."""
    why: str
    """Of the first one."""
    asked: int
    """Requests of clients that went to the candidate before the first rollback, or the end."""
    failed: int
    """Of them, that it failed."""
    early: bool
    """Two rollbacks came within one cool-down."""


@dataclass(slots=True)
class _Canary:
    """One canary on its way."""

    table: Columns
    draw: NDArray[np.float64]
    new: Flags
    """Where the candidate was drawn, as far as the time has come."""
    state: Shift
    guard: Guard = field(default_factory=lambda: Guard(SECTION.halt))
    acknowledged: float = START
    log: list[Shift] = field(default_factory=list)

    def move(self, after: Shift | None) -> None:
        if after is not None:
            self.state = after
            self.log.append(after)


def fortnight(harm: Harm, seed: np.random.SeedSequence) -> Ended:
    """Runs one canary to the end of its fortnight, or a day past the last step."""
    table = made(Traffic(hours=24 * DAYS, per_minute=PER_MINUTE), harm, seed)
    chance = np.random.default_rng(seed.spawn(1)[0])
    first = started("c", SECTION.steps, at=START, who="benchmark", why="", run="r")
    canary = _Canary(
        table=table, draw=chance.random(len(table)), new=np.zeros(len(table), dtype=np.bool_), state=first
    )
    canary.log.append(first)
    done, looks = 0, START + np.arange(LOOK_S, DAYS * DAY, LOOK_S)
    for look in looks.tolist():
        until = int(np.searchsorted(table.at, look))
        _pass(canary, done, until)
        done = until
        _resume(canary, look)
        if canary.state.phase is Phase.SHIFTING:
            canary.move(_judged(canary, until, look))
        if canary.state.share == 1 and look - canary.state.since > DAY:
            break
    return _ended(canary, done)


def _pass(canary: _Canary, start: int, end: int) -> None:
    """Requests reach their sides; the guard sees each that the candidate answers, and may stop it in their midst."""
    canary.new[start:end] = canary.draw[start:end] < canary.state.share
    answers, at = canary.table.candidate, canary.table.at
    failed, late = answers.failed, answers.having(Outcome.TIMEOUT)
    for row in (start + np.flatnonzero(canary.new[start:end])).tolist():
        why = canary.guard.saw(float(at[row]), failed=bool(failed[row]), timed_out=bool(late[row]))
        if why is not None:
            canary.new[row + 1 : end] = False
            cool_down = SECTION.cool_down
            canary.move(
                rolled_back(canary.state, at=float(at[row]), who="guard", why=why, cool_down=cool_down)
            )
            return


def _resume(canary: _Canary, now: float) -> None:
    """Somebody acknowledges and resumes at once when it may be."""
    state = canary.state
    if state.phase is Phase.ROLLED_BACK and (state.until is None or now >= state.until):
        canary.move(resumed(state, SECTION.steps, at=now, who="somebody", why=""))
        canary.acknowledged, canary.guard = now, Guard(SECTION.halt)


def _judged(canary: _Canary, until: int, now: float) -> Shift | None:
    state = canary.state
    seen = seen_of(canary.table.take(np.arange(until)), canary.new[:until])
    step = SECTION.steps[state.step]
    own = _CUT.model_copy(update={"minimum_span": step.minimum_span, "minimum_pairs": step.minimum_pairs})
    whole = _judge(seen, canary.acknowledged, POLICY, now)
    part = _judge(seen, state.since, own, now)
    bad = whole if whole.verdict is Verdict.ROLLBACK else part
    evidence = Evidence(
        whole=whole.verdict, step=part.verdict, reason=f"{bad.code}: {bad.reason}", since=state.since
    )
    return decided(
        state,
        evidence,
        SECTION.steps,
        manual=False,
        cool_down=SECTION.cool_down,
        at=now,
        who="judge",
        run="r",
    )


def _judge(seen: Columns, since: float, policy: Policy, now: float) -> Judgement:
    return judge_canary(seen.take(seen.at >= since), policy, now=now, timeout_s=TIMEOUT_S)


def seen_of(table: Columns, new: Flags) -> Columns:
    """What a canary records: of the candidate's side (``new``) all arms, of the other the baseline alone."""
    return replace(
        table,
        candidate=_unseen(table.candidate, ~new),
        repeat=_unseen(table.repeat, ~new),
        repeated=table.repeated & new,
        differs=np.where(new, table.differs, -1).astype(np.int8),
        repeat_differs=np.where(new, table.repeat_differs, -1).astype(np.int8),
        dimensions=(("side", ("candidate", "baseline")),),
        slices=np.where(new, 0, 1).astype(np.int8)[:, None],
    )


def _unseen(arm: Answers, where: Flags) -> Answers:
    return replace(
        arm,
        outcome=np.where(where, CODE[Outcome.NOT_SENT], arm.outcome).astype(np.int8),
        **{name: np.where(where, np.nan, getattr(arm, name)) for name in ("e2e", "ttft", "tokens")},
        traits=np.where(where[:, None], -1, arm.traits).astype(np.int8),
    )


def _ended(canary: _Canary, done: int) -> Ended:
    rows = [row for row in canary.log if row.action == "rollback"]
    gaps = np.diff([row.at for row in rows])
    reached = next((row.at for row in canary.log if row.share == 1), None)
    until = rows[0].at if rows else np.inf
    asked = canary.new[:done] & (canary.table.at[:done] <= until)
    return Ended(
        reached_h=None if reached is None else (reached - START) / HOUR,
        rollbacks=tuple((row.at - START) / HOUR for row in rows),
        why=f"{rows[0].who}: {rows[0].why}" if rows else "",
        asked=int(asked.sum()),
        failed=int((asked & canary.table.candidate.failed[:done]).sum()),
        early=bool((gaps < SECTION.cool_down).any()),
    )


def told(name: str, found: Sequence[Ended]) -> str:
    """One candidate in a line."""
    back = [one for one in found if one.rollbacks]
    whole = [one.reached_h for one in found if one.reached_h is not None and not one.rollbacks]
    parts = [f"{name}: {len(found)} fortnights", f"{len(whole)} reached 100 % without a step back"]
    if whole:
        parts[-1] += f" (median {median(whole):.0f} h)"
    parts.append(f"{len(back)} rolled back")
    if back:
        hours = median(one.rollbacks[0] for one in back)
        failed, asked = (median(getattr(one, key) for one in back) for key in ("failed", "asked"))
        parts[-1] += (
            f" (median after {hours:.0f} h; by then the candidate had failed {failed:.0f} of {asked:.0f} requests)"
        )
    parts.append(f"{sum(one.early for one in found)} with two rollbacks within a cool-down")
    return "; ".join(parts)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.canary", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="fortnights of each candidate")
    parser.add_argument("--only", default="", help="only candidates whose name contains this")
    options = parser.parse_args(arguments)
    for name, harm in CANDIDATES.items():
        if options.only not in name:
            continue
        found = []
        for seed in range(options.seeds):
            found.append(fortnight(harm, np.random.SeedSequence([zlib.crc32(name.encode()), seed])))
            print(f"  {name}, seed {seed}: {found[-1]}", file=sys.stderr, flush=True)
        print(told(name, found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
