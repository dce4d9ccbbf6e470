"""The safety stop: what should end the mirroring at once. Not a claim about rates. Pure."""

from __future__ import annotations

import numpy as np

from replay.exchange import Outcome
from reports.columns import Answers, Columns
from reports.counting import some
from reports.stats import Flags, Floats

_FAILURES = {
    Outcome.CONNECT_ERROR: "no connection",
    Outcome.TIMEOUT: "timed out",
    Outcome.HTTP_ERROR: "an HTTP error",
    Outcome.PROTOCOL_ERROR: "broke off or could not be read",
}
HALT_IN_A_ROW = 20
"""Failures, or answers cut short, in a row that stop the mirroring."""
_BLOCK_S = 300.0
_BLOCK_SHARE = 0.5
_SHORT = 0.5
"""An answer of at most half the baseline's tokens may have been cut short."""


def halt(columns: Columns, *, counted: Flags) -> str | None:
    """Why the mirroring should stop at once, or ``None``.

    Looks at requests that the baseline did not fail too. What a server says of its reasons is its own word: a refusal of what
    it does not offer is a failure where nothing else comes. Any of: 20 failures of the candidate in a row, whatever was
    withheld between them; at the end of the run nothing but failures and copies withheld by the open breaker, 20 or
    more; 20 answers in a row cut short where the baseline's were not; half of at least 20 requests failed within five
    minutes (``counted``: not during the warm-up).
    """
    candidate, sound = columns.candidate, ~columns.baseline.failed
    failed, answered = candidate.failed & sound, candidate.answered & sound
    refused = failed | (candidate.having(Outcome.UNSERVED) & sound)
    if _longest(refused[refused | answered]) >= HALT_IN_A_ROW:
        if silent := none_answered("the candidate", candidate):
            return silent
        return f"the candidate failed {HALT_IN_A_ROW} requests in a row that the baseline answered"
    since = int(np.flatnonzero(answered)[-1]) + 1 if answered.any() else 0
    lost, withheld = int(refused[since:].sum()), int((candidate.withheld & sound)[since:].sum())
    if lost and lost + withheld >= HALT_IN_A_ROW:
        copies = some(withheld, "copy", "copies")
        return f"the candidate stopped answering: {some(lost, 'failure')}, then {copies} withheld by the circuit breaker"
    if _longest(_cut_short(columns)[answered]) >= HALT_IN_A_ROW:
        return f"the candidate cut {HALT_IN_A_ROW} answers in a row short, and the baseline did not"
    return _bad_block(columns.at, failed & counted, answered & counted)


def none_answered(name: str, arm: Answers) -> str | None:
    """That ``arm`` answered nothing of what it was asked, and why; ``None`` where it answered something, or was asked nothing.

    What it does not offer is not counted: it says so itself.
    """
    if arm.answered.any() or not arm.failed.any():
        return None
    failures = {words: int(arm.having(outcome).sum()) for outcome, words in _FAILURES.items()}
    found = sorted(((count, words) for words, count in failures.items() if count), reverse=True)
    why = found[0][1] if len(found) == 1 else ", ".join(f"{count:,} {words}" for count, words in found)
    return f"{name} answered none of {some(int(arm.failed.sum()), 'request')}: {why}"


def _cut_short(columns: Columns) -> Flags:
    """Where the candidate says that it ended at its token limit, and the baseline does not; where nothing is said of the
    end, whether it gave at most half the baseline's tokens."""
    place = columns.traits.index("truncation")
    before, after = (arm.traits[:, place] for arm in (columns.baseline, columns.candidate))
    short = columns.candidate.tokens <= _SHORT * columns.baseline.tokens
    cut: Flags = np.where(after >= 0, (after > 0) & (before == 0), short)
    return cut


def _longest(flags: Flags) -> int:
    """Length of the longest run of true."""
    edges = np.flatnonzero(np.diff(flags.astype(np.int8), prepend=0, append=0))
    return int((edges[1::2] - edges[::2]).max()) if edges.size else 0


def _bad_block(at: Floats, failed: Flags, answered: Flags) -> str | None:
    if not failed.any():
        return None
    block = np.floor((at - at[0]) / _BLOCK_S).astype(np.int64)
    ids = np.cumsum(np.diff(block, prepend=block[0]) != 0)
    bad, good = np.bincount(ids, weights=failed), np.bincount(ids, weights=answered)
    worst = int(np.argmax(np.where(bad + good >= HALT_IN_A_ROW, bad / np.maximum(1, bad + good), 0)))
    if bad[worst] + good[worst] < HALT_IN_A_ROW or bad[worst] < _BLOCK_SHARE * (bad[worst] + good[worst]):
        return None
    return f"the candidate failed {bad[worst]:.0f} of {bad[worst] + good[worst]:.0f} requests within five minutes"
