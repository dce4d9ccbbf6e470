"""Many looks at once: which of many evidences may be named. Pure."""

from __future__ import annotations

import math

import numpy as np

from reports.stats import Flags, Floats


def e_bh(log_evidence: Floats, alpha: float) -> Flags:
    """The e-values to believe, so that of those named at most the share ``alpha`` is expected to be false.

    e-BH (Wang & Ramdas 2022, arXiv:2009.02824): the largest k for which k of the S e-values are at least S / (alpha k).
    Holds under any dependence among them and, as each is an e-process, at whatever look one stops.
    """
    order = np.argsort(-log_evidence, kind="stable")
    rank = np.arange(1, log_evidence.size + 1)
    enough = np.flatnonzero(log_evidence[order] >= np.log(log_evidence.size / rank) - math.log(alpha))
    named = np.zeros(log_evidence.size, dtype=np.bool_)
    named[order[: enough[-1] + 1 if enough.size else 0]] = True
    return named
