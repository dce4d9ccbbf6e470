"""Rules on what can be seen of an answer by itself: its format, a refusal, its end, its tool calls. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce

import numpy as np

from reports.columns import Answers, Columns
from reports.intervals import share_interval
from reports.policy import Policy, ShareRule
from reports.reading import Frame, Reading, Unread, share_reading, signs_of
from reports.sessions import weights
from reports.stats import Flags, count_signs


def shape(
    trait: str, harm: int, promise: Callable[[Policy], ShareRule]
) -> Callable[[Columns, Frame], Reading | Unread]:
    """Reads a trait of answers whose value ``harm`` (1 yes, 0 no) serves the user worse.

    A share of all pairs of whose answers anything is known. Towards GO an arm that failed alone did harm; towards ROLLBACK
    there is no answer to look at: errors have their own rule.
    """

    def read(columns: Columns, frame: Frame) -> Reading | Unread:
        margin, place = promise(frame.policy).margin, columns.traits.index(trait)
        base, candidate = (arm.traits[:, place] for arm in (columns.baseline, columns.candidate))
        if not ((base >= 0) & (candidate >= 0)).any():
            reason = "does not apply: nothing is known of it in any pair of answers"
            return Unread(reason=reason, applicable=False, margin=margin)
        missing = int(np.count_nonzero(columns.baseline.missing | columns.candidate.missing))
        both = columns.baseline.answered & columns.candidate.answered
        asked = both & _seen(columns.baseline) & _seen(columns.candidate)
        compared = (base >= 0) & (candidate >= 0)
        before, after = compared & (base == harm), compared & (candidate == harm)
        found = share_reading(
            columns.take(asked), before[asked], after[asked], missing=missing, margin=margin, frame=frame
        )
        return _cautious(found, columns, asked, before, after, frame)

    return read


def _seen(answers: Answers) -> Flags:
    """Something is known of the answer itself."""
    return reduce(np.logical_or, (answers.traits >= 0).T)


def _cautious(
    found: Reading, columns: Columns, asked: Flags, before: Flags, after: Flags, frame: Frame
) -> Reading:
    """The reading with requests that one arm alone failed counted as its harm, towards GO."""
    failed = columns.candidate.failed & columns.baseline.answered
    if not failed.any():
        return found
    spared = columns.baseline.failed & columns.candidate.answered
    kept = asked | failed | spared
    signs = signs_of((after | failed)[kept], (before | spared)[kept])
    weight = weights(columns.session[kept])
    counts = count_signs(signs, weight)

    def bounds() -> tuple[float, float]:
        return found.bounds()[0], share_interval(*counts, frame.policy.alpha, frame.test)[1]

    return replace(found, cautious=counts, pairs=int(np.count_nonzero(kept)), bounds=bounds)
