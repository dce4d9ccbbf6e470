"""Runs out of a real log: its blocks of time drawn again and again, and its two arms exchanged at random within each pair.

The log holds what the product measured of a real server: each request's answer and that of the server's repeat. Whatever
such a server does to neighbouring requests alike (queues, batches, pauses) stays in a block.
"""

from __future__ import annotations

import csv
import functools
import gzip
import io
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.calibration.generator import HOUR, START
from replay.exchange import Outcome
from reports.arrays import of_arrays
from reports.columns import Answers, Columns
from reports.stats import Flags, Floats

LOG = Path(__file__).with_name("vllm.csv.gz")
"""``seconds``; of each arm (``first_``, ``second_``) ``outcome, e2e_s, ttft_s, output_tokens``; ``differs``: 1, 0 or empty."""
_BLOCK = 30
_HOURS, _PER_MINUTE, _REPEATED = 48.0, 30.0, 0.2
_NUMBERS = ("e2e_s", "ttft_s", "output_tokens")
_NOT_SENT = list(Outcome).index(Outcome.NOT_SENT)


@dataclass(frozen=True, slots=True)
class Log:
    """Two answers of one server to each request, in order of time."""

    seconds: Floats
    arms: tuple[dict[str, NDArray[np.float64]], dict[str, NDArray[np.float64]]]
    differs: NDArray[np.int8]


@functools.cache
def read(path: Path = LOG) -> Log:
    """The log at ``path``."""
    rows = list(csv.DictReader(io.StringIO(gzip.decompress(path.read_bytes()).decode())))
    return Log(
        np.array([float(row["seconds"]) for row in rows]),
        (_arm(rows, "first_"), _arm(rows, "second_")),
        np.array([int(row["differs"] or -1) for row in rows], dtype=np.int8),
    )


def _arm(rows: list[dict[str, str]], of: str) -> dict[str, NDArray[np.float64]]:
    numbers = {name: np.array([float(row[of + name] or "nan") for row in rows]) for name in _NUMBERS}
    codes = {outcome.value: float(code) for code, outcome in enumerate(Outcome)}
    return {"outcome": np.array([codes[row[of + "outcome"]] for row in rows]), **numbers}


def resampled(seed: np.random.SeedSequence, *, slower_s: float = 0.0) -> Columns:
    """Two days at 30 pairs a minute: blocks of the log, in random order. ``slower_s`` is added to the candidate's answers.

    The log has two answers to a request and not three: a baseline's repeat is the answer to another request.
    """
    log, chance = read(), np.random.default_rng(seed)
    size = int(_HOURS * 60 * _PER_MINUTE)
    starts = chance.integers(0, log.seconds.size - _BLOCK, -(-size // _BLOCK))
    rows = (starts[:, None] + np.arange(_BLOCK)).ravel()[:size]
    gaps = np.diff(log.seconds, append=log.seconds[-1])[rows]
    at = np.cumsum(gaps) * (_HOURS * HOUR / max(gaps.sum(), 1e-9))
    exchanged = chance.random(size) < 0.5
    first, second = ({name: values[rows] for name, values in arm.items()} for arm in log.arms)
    baseline, candidate = (
        {name: np.where(swap, second[name], first[name]) for name in first}
        for swap in (exchanged, ~exchanged)
    )
    asked = chance.random(size) < _REPEATED
    other = chance.permutation(size)
    repeat = {name: values[other] for name, values in candidate.items()}
    repeat["outcome"] = np.where(asked, repeat["outcome"], float(_NOT_SENT))
    candidate["e2e_s"] = candidate["e2e_s"] + slower_s
    differs = log.differs[rows]
    return of_arrays(
        START + at - at[0],
        baseline=baseline,
        candidate=candidate,
        repeat=repeat,
        differs=differs,
        repeat_differs=np.where(asked, differs[other], -1).astype(np.int8),
    )


def never(table: Columns, arm: str, where: Flags) -> Columns:
    """The run with one arm (``baseline`` or ``candidate``) not sent ``where``."""
    answers: Answers = getattr(table, arm)
    gone = {
        name: np.where(where, np.nan, getattr(answers, name))
        for name in ("e2e", "ttft", "tokens", "itl", "cost")
    }
    lost = replace(answers, outcome=np.where(where, _NOT_SENT, answers.outcome).astype(np.int8), **gone)
    return replace(table, **{arm: lost}, differs=np.where(where, -1, table.differs).astype(np.int8))
