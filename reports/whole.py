"""What only a run as a whole can show: prompts that are not the same on both sides, and answers drawn by chance on one. Pure.

Such a cause explains what single pairs only suffer from: it comes before theirs in a report.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from reports.causes import Cause
from reports.intervals import share_interval
from reports.judgement import Measured, Pair, Severity
from reports.slicing import NOT_SAMPLED, UNSET

FEWEST = 20
"""Pairs, or prompts that came again, below which nothing is said."""
_NEARLY_ALL = 0.95
_RARE = 0.01
_ALPHA = 0.01


def causes_of_run(pairs: Sequence[Pair]) -> tuple[Cause, ...]:
    """At most one cause of prompts and one of sampling for each kind of temperature. ``pairs`` in any order."""
    ordered = sorted(pairs, key=lambda pair: (pair.at, pair.id))
    return (*_prompts(ordered), *_sampling(ordered))


@dataclass(frozen=True, slots=True)
class _Counted:
    """One prompt as both servers counted it, in tokens."""

    pair: Pair
    before: int
    after: int

    @property
    def more(self) -> int:
        return self.after - self.before


def _prompts(pairs: Sequence[Pair]) -> Iterator[Cause]:
    counted = [
        _Counted(pair, before, after)
        for pair in pairs
        if (before := pair.baseline.prompt_tokens) and (after := pair.candidate.prompt_tokens)
    ]
    unlike = [one for one in counted if one.more]
    if len(counted) < FEWEST or len(unlike) < max(5, _RARE * len(counted)):
        return
    usual = median([one.more for one in unlike])
    if sum(one.more == usual for one in counted) >= _NEARLY_ALL * len(counted):
        yield _cause("prompt.offset", _offset(int(usual), len(counted)), unlike)
        return
    fewer = [one for one in unlike if one.more < 0]
    if len(fewer) >= _NEARLY_ALL * len(unlike):
        yield _cause("prompt.shorter", _shorter(fewer, counted), fewer)
    else:
        words = f"the candidate counts {len(unlike):,} of {len(counted):,} prompts otherwise, some longer, some shorter"
        words += ": another tokenizer or chat template"
        yield _cause("prompt.tokenizer", words, unlike)


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


def _shorter(fewer: Sequence[_Counted], counted: Sequence[_Counted]) -> str:
    lost = median([-one.more / one.before for one in fewer])
    head = f"the candidate counts fewer tokens in {len(fewer):,} of {len(counted):,} prompts, {lost:.0%} fewer in the median"
    ids = {one.pair.id for one in fewer}
    system = {one.pair.id for one in counted if one.pair.system_prompt}
    if ids == system and len(system) < len(counted):
        return f"{head}: all those with a system prompt, and no other; it does not reach the model"
    most, shortest = max(one.after for one in counted), min(one.before for one in fewer)
    if most <= shortest and len(fewer) < len(counted):
        return f"{head}: none has more than {most:,}; longer ones are cut"
    return f"{head}: part of what was asked does not reach the model"


def _sampling(pairs: Sequence[Pair]) -> Iterator[Cause]:
    """Prompts that came several times: does each arm answer them in one way, or in several?"""
    groups: dict[tuple[str, str], list[Pair]] = defaultdict(list)
    for pair in pairs:
        if pair.prompt:
            groups[(_kind(pair), pair.prompt)].append(pair)
    signs: dict[str, list[int]] = defaultdict(list)
    again: dict[str, list[Pair]] = defaultdict(list)
    for (kind, _), same in groups.items():
        before = _said([pair.baseline for pair in same]) + _said([pair.repeat for pair in same])
        after = _said([pair.candidate for pair in same])
        many = min(len(before), len(after))
        if many >= 2:
            sign = (len(set(after[:many])) > 1) - (len(set(before[:many])) > 1)
            signs[kind].append(sign)
            again[kind] += same if sign else []
    for kind, found in sorted(signs.items()):
        counts = np.array(found)
        gained, lost = int((counts > 0).sum()), int((counts < 0).sum())
        low, high = share_interval(gained, len(found) - gained - lost, lost, _ALPHA)
        if len(found) >= FEWEST and (low > 0 or high < 0):
            yield from _drawn(kind, again[kind], gained if low > 0 else lost, len(found), gained=low > 0)


def _drawn(kind: str, pairs: Sequence[Pair], count: int, of: int, *, gained: bool) -> Iterator[Cause]:
    prompts = f"{count:,} of {of:,} prompts that came again"
    if kind == UNSET:
        how = (
            "draws its answers where the baseline does not"
            if gained
            else "gives one answer where the baseline draws several"
        )
        words = f"without a temperature in the request the candidate {how}, in {prompts}: the servers' defaults differ"
        yield _of("sampling.default_drift", words, pairs)
    elif kind == NOT_SAMPLED and gained:
        words = f"the candidate answers {prompts} in several ways although temperature 0 was asked for; the baseline does not"
        words += ": the temperature does not reach it"
        yield _of("sampling.not_greedy", words, pairs)
    elif kind != NOT_SAMPLED and not gained:
        words = f"the candidate answers {prompts} in one way although a temperature above 0 was asked for; the baseline does not"
        yield _of("sampling.diversity_lost", words, pairs)


def _kind(pair: Pair) -> str:
    temperature = pair.labels.get("temperature", UNSET)
    return temperature if temperature in (UNSET, NOT_SAMPLED) else "sampled"


def _said(arm: Sequence[Measured | None]) -> list[str]:
    return [one.traits.answer for one in arm if one is not None and one.traits is not None]


def _cause(category: str, message: str, found: Sequence[_Counted]) -> Cause:
    return _of(category, message, [one.pair for one in found])


def _of(category: str, message: str, pairs: Sequence[Pair]) -> Cause:
    return Cause(
        category=category,
        comparator="run",
        side="candidate",
        severity=Severity.WARN,
        count=len(pairs),
        first_at=min(pair.at for pair in pairs),
        last_at=max(pair.at for pair in pairs),
        example=min(pairs, key=lambda pair: (pair.at, pair.id)).id,
        message=message,
    )
