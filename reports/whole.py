"""What only a run as a whole can show: prompts that are not the same on both sides, and answers drawn by chance on one. Pure.

Such a cause explains what single pairs only suffer from: it comes before theirs in a report.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replay.exchange import Arm
from reports.causes import Cause
from reports.gathered import Gathered
from reports.intervals import share_interval
from reports.judgement import Severity
from reports.slicing import NOT_SAMPLED, UNSET
from reports.stats import Flags

FEWEST = 20
"""Pairs, or prompts that came again, below which nothing is said."""
_NEARLY_ALL = 0.95
_RARE = 0.01
_ALPHA = 0.01


def causes_of_run(seen: Gathered) -> tuple[Cause, ...]:
    """At most one cause of prompts and one of sampling for each kind of temperature."""
    return (*_prompts(seen), *_sampling(seen))


def _prompts(seen: Gathered) -> Iterator[Cause]:
    """Prompts as both servers counted them, in tokens."""
    before, after = (seen.prompt_tokens[arm] for arm in (Arm.BASELINE, Arm.CANDIDATE))
    counted = (before > 0) & (after > 0)
    more = np.where(counted, after - before, 0)
    unlike, count = more != 0, int(counted.sum())
    if count < FEWEST or unlike.sum() < max(5, _RARE * count):
        return
    usual = float(np.median(more[unlike]))
    if (counted & (more == usual)).sum() >= _NEARLY_ALL * count:
        yield _of("prompt.offset", _offset(int(usual), count), seen, unlike)
        return
    fewer = more < 0
    if fewer.sum() >= _NEARLY_ALL * unlike.sum():
        yield _of("prompt.shorter", _shorter(seen, counted, fewer), seen, fewer)
    else:
        words = (
            f"the candidate counts {unlike.sum():,} of {count:,} prompts otherwise, some longer, some shorter"
        )
        words += ": another tokenizer or chat template"
        yield _of("prompt.tokenizer", words, seen, unlike)


def _offset(more: int, count: int) -> str:
    if more == 1:
        why = "a token that begins every sequence is probably there twice"
    else:
        why = (
            "a system prompt or another chat template is added"
            if more > 0
            else "part of every prompt is missing"
        )
    return f"the candidate counts {abs(more)} {'more' if more > 0 else 'fewer'} tokens in each of {count:,} prompts: {why}"


def _shorter(seen: Gathered, counted: Flags, fewer: Flags) -> str:
    before, after = (seen.prompt_tokens[arm] for arm in (Arm.BASELINE, Arm.CANDIDATE))
    some, count = int(fewer.sum()), int(counted.sum())
    lost = float(np.median((before - after)[fewer] / before[fewer]))
    head = (
        f"the candidate counts fewer tokens in {some:,} of {count:,} prompts, {lost:.0%} fewer in the median"
    )
    system = counted & seen.system
    if np.array_equal(fewer, system) and some < count:
        return f"{head}: all those with a system prompt, and no other; it does not reach the model"
    most, shortest = int(after[counted].max()), int(before[fewer].min())
    if most <= shortest and some < count:
        return f"{head}: none has more than {most:,}; longer ones are cut"
    return f"{head}: part of what was asked does not reach the model"


def _sampling(seen: Gathered) -> Iterator[Cause]:
    """Prompts that came several times: does each arm answer them in one way, or in several?"""
    kinds = _kinds(seen)
    for kind in sorted(_KINDS):
        signs, again = [], []
        for rows in _same(seen.prompt, np.flatnonzero((kinds == _KINDS.index(kind)) & (seen.prompt != 0))):
            before = [*_said(seen, Arm.BASELINE, rows), *_said(seen, Arm.BASELINE_REPEAT, rows)]
            after = _said(seen, Arm.CANDIDATE, rows)
            many = min(len(before), len(after))
            if many >= 2:
                signs.append((len(set(after[:many])) > 1) - (len(set(before[:many])) > 1))
                again += [rows] if signs[-1] else []
        counts = np.array(signs)
        gained, lost = int((counts > 0).sum()), int((counts < 0).sum())
        low, high = share_interval(gained, len(signs) - gained - lost, lost, _ALPHA)
        if len(signs) >= FEWEST and (low > 0 or high < 0):
            drawn = np.sort(np.concatenate(again))
            yield from _drawn(kind, seen, drawn, gained if low > 0 else lost, len(signs), gained=low > 0)


def _same(prompt: NDArray[np.uint64], rows: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """The rows of each prompt that came again, in their order."""
    ordered = rows[np.argsort(prompt[rows], kind="stable")]
    begins = np.flatnonzero(np.diff(prompt[ordered]) != 0) + 1
    starts, ends = np.append(0, begins), np.append(begins, ordered.size)
    several = ends - starts > 1
    for start, end in zip(starts[several], ends[several], strict=True):
        yield ordered[start:end]


def _drawn(
    kind: str, seen: Gathered, rows: NDArray[np.int64], count: int, of: int, *, gained: bool
) -> Iterator[Cause]:
    prompts = f"{count:,} of {of:,} prompts that came again"
    if kind == UNSET:
        how = (
            "draws its answers where the baseline does not"
            if gained
            else "gives one answer where the baseline draws several"
        )
        words = f"without a temperature in the request the candidate {how}, in {prompts}: the servers' defaults differ"
        yield _of("sampling.default_drift", words, seen, rows)
    elif kind == NOT_SAMPLED and gained:
        words = f"the candidate answers {prompts} in several ways although temperature 0 was asked for; the baseline does not"
        words += ": the temperature does not reach it"
        yield _of("sampling.not_greedy", words, seen, rows)
    elif kind != NOT_SAMPLED and not gained:
        words = f"the candidate answers {prompts} in one way although a temperature above 0 was asked for; the baseline does not"
        yield _of("sampling.diversity_lost", words, seen, rows)


_KINDS = (UNSET, NOT_SAMPLED, "sampled")
"""Of temperatures."""


def _kinds(seen: Gathered) -> NDArray[np.int64]:
    values, codes = seen.label("temperature")
    found: NDArray[np.int64] = np.array(
        [_KINDS.index(one if one in _KINDS else "sampled") for one in (*values, UNSET)]
    )[codes]
    return found


def _said(seen: Gathered, arm: Arm, rows: NDArray[np.int64]) -> list[int]:
    said = seen.answer[arm][rows]
    found: list[int] = said[said != 0].tolist()
    return found


def _of(category: str, message: str, seen: Gathered, rows: NDArray[Any]) -> Cause:
    """``rows``: a mask, or places in ascending order."""
    rows = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
    first, at = int(rows[0]), seen.columns.at
    return Cause(
        category=category,
        comparator="run",
        side="candidate",
        severity=Severity.WARN,
        count=rows.size,
        first_at=float(at[first]),
        last_at=float(at[rows[-1]]),
        example=seen.ids[first],
        message=message,
        example_at=float(at[first]),
    )
