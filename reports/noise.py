"""The noise floor: the baseline's own repeat in the candidate's place, read by the same rules."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reports.columns import Columns
from reports.reading import Frame, Reading, Unread
from reports.rules import Rule


def as_candidate(columns: Columns) -> Columns:
    """The pairs that have a baseline repeat, with the repeat as candidate: a backend against itself."""
    pairs = columns.take(columns.repeated)
    return replace(pairs, candidate=pairs.repeat, differs=pairs.repeat_differs)


def floor(rule: Rule, columns: Columns, frame: Frame) -> Reading | Unread:
    """What ``rule`` reads between the baseline and its repeat.

    Two labels of one process are exchangeable, so a rule that sees harm here measures its own bias. For disagreement the
    estimate is the share of repeats that differ: the floor itself.
    """
    read = rule.read(as_candidate(columns), frame)
    if rule.name != "disagreement" or isinstance(read, Unread):
        return read
    return replace(read, estimate=read.baseline, signs=np.zeros_like(read.signs))
