"""How often the verdict is wrong, and how soon it is right: ``python -m benchmarks.calibrate [--seeds 200] [--families …]``.

Each family of ``benchmarks.calibration.families`` is run so many times, each run out of its own seed, with the default policy;
four other judges see the same data. ``--write`` puts the table into docs/verdicts.md; ``--strict`` exits 1 when a family
misses its target. The same seeds give the same table on any machine.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from benchmarks.calibration.families import FAMILIES, Family
from benchmarks.calibration.rivals import RIVALS
from benchmarks.calibration.scoring import Answer, Score, answer, kept, row
from migrate.cores import cores

PAGE = Path(__file__).parents[1] / "docs" / "verdicts.md"
BEGIN, END = "<!-- calibration -->", "<!-- /calibration -->"
HEAD = ("runs: what is counted", "must be", "share of runs (95 % interval)", "median time", *RIVALS)
NOTE = """\
{seeds} runs a line, numbers 0 to {last}, with the default policy, made by `make calibrate SEEDS={seeds}`. A
run has 48 hours at 30 pairs a minute on average and is looked at hourly; every 15 minutes where harm has to
be found, every minute where it has to be found within five. Time counts from the harm's beginning. The
other judges give the same share on the same data (at a margin: how often they let the candidate pass); a
judge that rolls back before the harm has begun has not found it. Intervals are Clopper and Pearson's."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.calibrate", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="runs of each family")
    parser.add_argument(
        "--families", default="", help="only those whose name contains one of these, split by commas"
    )
    parser.add_argument("--strict", action="store_true", help="exit 1 when a target is missed")
    parser.add_argument("--write", action="store_true", help="write the table into docs/verdicts.md")
    options = parser.parse_args(arguments)
    chosen = [one for one in FAMILIES if any(word in one.name for word in options.families.split(","))]
    lines, missed = [], []
    for family, ours, rivals in calibrated(chosen, options.seeds):
        lines.append(row(family, ours, rivals))
        print(lines[-1], flush=True)
        if not kept(family, Score.of(ours)):
            missed.append(f"{family.name} {_codes(ours)}")
    if options.write:
        write(table(lines, options.seeds))
    print(f"{len(chosen) - len(missed)} of {len(chosen)} targets reached", *missed, sep="\n  missed: ")
    return 1 if options.strict and missed else 0


def calibrated(
    families: Sequence[Family], seeds: int
) -> Iterator[tuple[Family, list[Answer], dict[str, list[Answer]]]]:
    """Each family with the answers to its runs: the judge's, and those of each rival by name."""
    with ProcessPoolExecutor(cores(), mp_context=get_context("fork")) as workers:
        for number, family in enumerate(families):
            of = [FAMILIES.index(family)] * seeds
            pairs = []
            for done, pair in enumerate(workers.map(_answer, of, range(seeds), chunksize=2)):
                pairs.append(pair)
                _progress(f"{number + 1} of {len(families)}: {family.name}, {done + 1} of {seeds}")
            rivals = {name: [found[name] for _, found in pairs if name in found] for name in RIVALS}
            _progress("")
            yield family, [ours for ours, _ in pairs], rivals


def _answer(place: int, seed: int) -> tuple[Answer, dict[str, Answer]]:
    family = FAMILIES[place]
    return answer(family, seed_of(family, seed))


def seed_of(family: Family, seed: int) -> np.random.SeedSequence:
    """The run's seed: its family's name and its number."""
    return np.random.SeedSequence([zlib.crc32(family.name.encode()), seed])


def table(lines: Sequence[str], seeds: int) -> str:
    """The table as it stands in the page."""
    head = [f"| {' | '.join(HEAD)} |", f"|{' --- |' * len(HEAD)}"]
    return "\n".join([NOTE.format(seeds=seeds, last=seeds - 1), "", *head, *lines])


def write(text: str) -> None:
    """Puts ``text`` between the markers of the page."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}", encoding="utf-8")


def _codes(answers: Sequence[Answer]) -> str:
    """What was said, and how often."""
    said = Counter(one.said for one in answers if one.said)
    return ", ".join(f"{code}: {count}" for code, count in said.most_common())


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
