"""One run's answer to its family's question, and many answers in one line of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from scipy.stats import binomtest

from benchmarks.calibration.families import Family, Question
from benchmarks.calibration.generator import HOUR, START
from benchmarks.calibration.rivals import RIVALS, Seen
from benchmarks.calibration.watching import first_go, first_rollback, judged, rules_going
from reports.columns import Columns
from reports.judgement import Verdict

_COMPARED = (Question.NO_HARM, Question.FOUND, Question.AT_MARGIN)
"""Questions that the rivals can be asked; at a margin, whether they let the candidate pass."""
_DECIDED = ("errors", "latency_median")


@dataclass(frozen=True, slots=True)
class Answer:
    """Hours from the harm's beginning (or the start) to what was asked about; ``None``: it did not happen in time."""

    hours: float | None
    said: str = ""
    """The code of what was said."""


def answer(family: Family, seed: np.random.SeedSequence) -> tuple[Answer, dict[str, Answer]]:
    """The judge's answer for one run, and each rival's."""
    table, looks = family.make(seed), [START + at for at in family.looks]
    rivals: dict[str, Answer] = {}
    if family.question in _COMPARED:
        seen = Seen.of(table)
        rivals = {name: _rolled(family, rival(seen, looks)) for name, rival in RIVALS.items()}
    return _ours(family, table, looks), rivals


def _ours(family: Family, table: Columns, looks: Sequence[float]) -> Answer:
    match family.question:
        case Question.NO_HARM | Question.FOUND:
            found = first_rollback(table, looks)
            return _rolled(family, found and found[0], "" if found is None else found[1])
        case Question.GO:
            return _since(first_go(table, looks))
        case Question.AT_MARGIN:
            return _since(rules_going(table, looks, (family.rule,)))
        case Question.DECIDED:
            return _since(rules_going(table, looks, _DECIDED))
        case Question.HOLD:
            found_ = judged(table, looks[-1])
            right = found_.verdict is Verdict.HOLD and found_.code == family.rule
            return Answer(0.0 if right else None, f"{found_.verdict} {found_.code}")


def _since(at: float | None) -> Answer:
    return Answer(None if at is None else (at - START) / HOUR)


def _rolled(family: Family, at: float | None, code: str = "") -> Answer:
    """A ROLLBACK before the harm has begun is no finding of it."""
    if at is None:
        return Answer(None)
    hours = (at - START) / HOUR - family.harm_h
    return Answer(hours if hours > 0 else None, code if hours > 0 else f"{code} before the harm")


@dataclass(frozen=True, slots=True)
class Score:
    """A share of runs with its exact 95 % interval, and the median hours of those in which it happened."""

    count: int
    runs: int
    hours: float | None

    @classmethod
    def of(cls, answers: Sequence[Answer]) -> Score:
        hours = [one.hours for one in answers if one.hours is not None]
        return cls(len(hours), len(answers), median(hours) if hours else None)

    @property
    def share(self) -> float:
        """Of the runs."""
        return self.count / self.runs

    @property
    def interval(self) -> tuple[float, float]:
        """Clopper and Pearson's."""
        found = binomtest(self.count, self.runs).proportion_ci(0.95, "exact")
        return float(found.low), float(found.high)


def kept(family: Family, score: Score) -> bool:
    """Whether the family reaches its target."""
    return (
        (family.at_most is None or score.share <= family.at_most)
        and (family.at_least is None or score.share >= family.at_least)
        and (family.median_h is None or (score.hours is not None and score.hours <= family.median_h))
    )


def row(family: Family, ours: Sequence[Answer], rivals: dict[str, list[Answer]]) -> str:
    """The family's line of the table."""
    score = Score.of(ours)
    low, high = score.interval
    cells = [
        f"{family.name}: {family.question.value}",
        target(family),
        f"{'' if kept(family, score) else '**missed** '}{_percent(score.share)} ({_percent(low)} to {_percent(high)})",
        _hours(score.hours),
        *(_rival(family, rivals.get(name)) for name in RIVALS),
    ]
    return f"| {' | '.join(cells)} |"


def target(family: Family) -> str:
    """What must be reached, in words."""
    words = [
        f"≤ {family.at_most:.0%}" if family.at_most is not None else "",
        f"≥ {family.at_least:.0%}" if family.at_least else "",
        f"median ≤ {family.median_h:g} h" if family.median_h is not None else "",
    ]
    return ", ".join(word for word in words if word) or "-"


def _rival(family: Family, answers: list[Answer] | None) -> str:
    if not answers:
        return "-"
    score = Score.of(answers)
    if family.question is Question.AT_MARGIN:
        return _percent(1 - score.share)
    time = f", {_hours(score.hours)}" if family.question is Question.FOUND and score.hours is not None else ""
    return _percent(score.share) + time


def _percent(share: float) -> str:
    return f"{100 * share:.1f}".removesuffix(".0") + " %"


def _hours(hours: float | None) -> str:
    if hours is None:
        return "-"
    return f"{60 * hours:.0f} min" if hours < 0.995 else f"{np.round(hours, 2):g} h"
