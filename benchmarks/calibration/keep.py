"""Keeps the measured numbers of a run against a real server as the log of ``replayed``: ``… -m benchmarks.calibration.keep URL``.

Made from the store of ``make bench-workload``: the baseline's answer and its repeat's, and whether they differ. No text is kept.
"""

from __future__ import annotations

import csv
import gzip
import io
import sys

from benchmarks.calibration.replayed import LOG
from migrate.gathering import compared
from migrate.store.store import Store
from reports.judgement import Measured, Pair
from reports.policy import Policy


def main() -> None:
    with Store.open(sys.argv[1]) as store:
        pairs = [item.pair for item in compared(store, store.run(), Policy(), embed=None)]
    twice = [pair for pair in pairs if pair.repeat is not None]
    LOG.write_bytes(gzip.compress(csv_of(twice).encode(), mtime=0))
    print(f"{len(twice)} of {len(pairs)} pairs with a repeat kept in {LOG}")


def csv_of(pairs: list[Pair]) -> str:
    """One line a pair; what is not known is empty."""
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    arms = [
        f"{arm}_{name}"
        for arm in ("first", "second")
        for name in ("outcome", "e2e_s", "ttft_s", "output_tokens")
    ]
    lines.writerow(["seconds", *arms, "differs"])
    for pair in pairs:
        assert pair.repeat is not None
        differs = "" if pair.repeat_differs is None else int(pair.repeat_differs)
        lines.writerow(
            [f"{pair.at - pairs[0].at:.4f}", *_cells(pair.baseline), *_cells(pair.repeat), differs]
        )
    return out.getvalue()


def _cells(one: Measured) -> list[str]:
    seconds = ["" if value is None else f"{value:.5f}" for value in (one.e2e_s, one.ttft_s)]
    return [one.outcome.value, *seconds, "" if one.output_tokens is None else str(one.output_tokens)]


if __name__ == "__main__":
    main()
