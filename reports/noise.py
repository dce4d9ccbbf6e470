"""The noise floor: the baseline's own repeat in the candidate's place, read by the same rules, and label by label."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from reports.advisory import Label
from reports.columns import Columns
from reports.disagreement import FEWEST_REPEATS, NO_REPEATS, Repeated, differences, repeated
from reports.intervals import share_intervals
from reports.labels import ALIKE, LABELS, NOISE_LIMIT, Bits, fallback, names, quiet_level, ranks
from reports.multiplicity import e_bh
from reports.policy import Policy
from reports.reading import Frame, Reading, Unread, mean, signs_of
from reports.rules import Rule
from reports.sessions import weights
from reports.stats import Flags, Floats, grid_of, log_evidences_over_time
from reports.weighing import Scale, show


def as_candidate(columns: Columns) -> Columns:
    """The pairs that have a baseline repeat, with the repeat as candidate: a backend against itself."""
    pairs = columns.take(columns.repeated)
    return replace(
        pairs,
        candidate=pairs.repeat,
        differs=pairs.repeat_differs,
        differs_by=pairs.repeat_differs_by,
    )


def floor(rule: Rule, repeats: Columns, frame: Frame) -> Reading | Unread:
    """What ``rule`` reads between the baseline and its repeat; ``repeats`` are the pairs ``as_candidate``.

    Two labels of one process are exchangeable, so a rule that sees harm here measures its own bias. For disagreement the
    estimate is the share of repeats that differ: the floor itself.
    """
    read = rule.read(repeats, frame)
    if rule.name != "disagreement" or isinstance(read, Unread):
        return read
    return replace(read, estimate=read.baseline, signs=np.zeros_like(read.signs))


def labels(columns: Columns, policy: Policy, scale: Scale) -> tuple[Label, ...]:
    """Each label by which an answer differs from the baseline's, coarsest first; ``columns`` are the pairs that count."""
    answered = columns.take(columns.comparable & columns.baseline.answered)
    every, known = differences(answered)
    pairs, found = every[known], repeated(columns)
    seen = names(int(np.bitwise_or.reduce(np.concatenate([pairs, found.candidate, found.repeat]), initial=0)))
    return tuple(_labels(seen, pairs, found, policy.disagreement.margin, scale))


def _labels(
    seen: tuple[str, ...], pairs: Bits, found: Repeated, margin: float, scale: Scale
) -> Iterator[Label]:
    places = [LABELS.index(label) for label in seen]
    evidence, low, high = _excess(places, found, margin, scale)
    named = e_bh(evidence, scale.alpha)
    all_seen = sum(1 << place for place in places)
    enough, weight = found.repeat.size >= FEWEST_REPEATS, weights(found.columns.session)
    for at, place in enumerate(places):
        noise, candidate = (mean(_having(arm, place), weight) for arm in (found.repeat, found.candidate))
        noisy = enough and noise is not None and noise > NOISE_LIMIT
        instead = _instead(place, found.repeat, all_seen) if noisy else None
        yield Label(
            label=LABELS[place],
            pairs=int(pairs.size),
            differs=mean(_having(pairs, place)),
            repeats=int(found.repeat.size),
            noise=noise,
            candidate=candidate,
            excess=candidate - noise if candidate is not None and noise is not None else None,
            low=float(low[at]) if found.repeat.size else None,
            high=float(high[at]) if found.repeat.size else None,
            evidence=float(evidence[at]) if found.repeat.size else None,
            named=bool(named[at]),
            too_noisy=noisy,
            fallback=instead,
            reason=_reason(noise, noisy, instead, low=float(low[at]), high=float(high[at])),
        )


def _having(found: Bits, place: int) -> Flags:
    having: Flags = found >> place & 1 == 1
    return having


def _excess(places: list[int], found: Repeated, margin: float, scale: Scale) -> tuple[Floats, Floats, Floats]:
    """Evidence that each label's excess is above ``margin``, and the bounds of the excess."""
    if not places:
        return np.empty(0), np.empty(0), np.empty(0)
    grid = grid_of(found.columns.at, block_s=scale.block_s, period_s=scale.period_s)
    weight = weights(found.columns.session)
    counts = np.stack(
        [
            grid.counts(signs_of(_having(found.candidate, place), _having(found.repeat, place)), weight)
            for place in places
        ]
    )
    evidence = log_evidences_over_time(counts, grid.period, margin, trim=scale.trim, most=scale.most)
    return evidence, *share_intervals(counts.sum(axis=1), scale.alpha)


def _instead(place: int, repeat: Bits, seen: int) -> str | None:
    """The nearest coarser label by which the baseline agrees with itself often enough."""
    coarser = repeat & ((1 << place) - 1)
    level = min(place - 1, int(quiet_level(np.bincount(ranks(coarser), minlength=ALIKE + 1))))
    return fallback(level, seen & ((1 << place) - 1)) if level >= 1 else None


def _reason(noise: float | None, noisy: bool, instead: str | None, *, low: float, high: float) -> str:
    if noise is None:
        return NO_REPEATS
    if not noisy:
        return f"between {show(low, 'share')} and {show(high, 'share')} above the noise floor of {show(noise, 'share')}"
    rest = f"falling back to {instead}" if instead else "and so is what is coarser"
    return f"too noisy to gate on this label: the baseline differs from its own repeat in {noise:.1%}, {rest}"
