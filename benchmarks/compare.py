"""Whether the cascade says what people say: ``python -m benchmarks.compare [--half report] [--examples N] [--strict]``.

Each set is cut into two halves by a hash of its texts: rules and thresholds are made in sight of the tuning half, the other
half is what a report may claim. A pair counts as called different when its severity is BLOCK. Beside it stands plain cosine:
one vector a text, different below one threshold for all sets, the one with the best macro-average of balanced accuracy on
the tuning half. Intervals are Wilson's, 95 %. Vectors are kept in ``bench-output/``, so that a second run takes seconds.
"""

from __future__ import annotations

import argparse
import contextlib
import sqlite3
import sys
import textwrap
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np
import orjson
from scipy.stats import binomtest

from benchmarks.truth import DATA, ROOT, Sample, Set, sets, spelled
from migrate.embedder import Embedder
from replay.exchange import Answer, Arm, Choice, Observation, Outcome, Request
from reports.compare import Comparison, Embed, resolve
from reports.judgement import Severity
from reports.policy import Policy

CACHE = ROOT / "bench-output" / "vectors.db"
HALVES = {"tune": False, "report": True}
MACRO = 0.95
ABOVE_COSINE = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A set with what the cascade and plain cosine say of each of its samples."""

    set: Set
    results: tuple[Comparison, ...]
    cosines: tuple[float, ...]

    def calls(self, half: bool) -> list[bool]:
        """Whether the cascade calls them different."""
        return [differs(result) for sample, result in self._rows() if sample.reported is half]

    def plain(self, half: bool, threshold: float) -> list[bool]:
        """The same for plain cosine."""
        rows = zip(self.set.samples, self.cosines, strict=True)
        return [cosine < threshold for sample, cosine in rows if sample.reported is half]

    def confused(self, half: bool) -> list[tuple[Sample, Comparison]]:
        """Samples of ``half`` that the cascade gets wrong."""
        rows = ((sample, result) for sample, result in self._rows() if sample.reported is half)
        return [(sample, result) for sample, result in rows if differs(result) is not self.set.different]

    def _rows(self) -> Iterator[tuple[Sample, Comparison]]:
        return zip(self.set.samples, self.results, strict=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """How well "different" is called in the sets of one family, all counted together but for ``balanced``."""

    found: int
    different: int
    alarms: int
    same: int
    balanced: float | None
    """Mean of the sets' recall and the sets' specificity, each set counting once; ``None`` without one of them."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.compare", description=__doc__)
    parser.add_argument(
        "--half", choices=HALVES, default="report", help="the half that targets and examples are of"
    )
    parser.add_argument("--examples", type=int, default=0, metavar="N", help="confusions shown for each set")
    parser.add_argument("--only", default="", metavar="WORD", help="sets whose name holds it")
    parser.add_argument("--floor", type=float, default=Policy().disagreement.similarity, help="of similarity")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a target is missed")
    words = parser.parse_args()
    if not DATA.is_dir():
        print(f"{DATA} is not here: only the project's own small sets are run\n")
    start = time.perf_counter()
    with contextlib.closing(cache(CACHE)) as database:
        embed = Embedder(
            read=lambda model, names: _read(database, model, names),
            write=lambda model, vectors: _write(database, model, vectors),
        )
        scored = [score(one, embed, words.floor) for one in sets() if words.only in one.name]
    threshold = best_threshold(scored)
    kept = report(scored, HALVES[words.half], threshold)
    for one in scored:
        show_confusions(one, HALVES[words.half], words.examples)
    print(f"\n{time.perf_counter() - start:.0f} s, similarity floor {words.floor:g}")
    return int(words.strict and not kept)


def score(one: Set, embed: Embed, floor: float) -> Scored:
    compared = [
        one.comparing(
            request(sample.body),
            seen(sample.baseline, Arm.BASELINE),
            seen(sample.candidate, Arm.CANDIDATE),
        )
        for sample in one.samples
    ]
    texts = [(spelled(sample.baseline), spelled(sample.candidate)) for sample in one.samples]
    flat = embed([text for pair in texts for text in pair])
    cosines = (flat[::2] * flat[1::2]).sum(axis=1)
    return Scored(
        set=one, results=resolve(compared, embed, floor), cosines=tuple(float(cosine) for cosine in cosines)
    )


def differs(result: Comparison) -> bool:
    return result.severity is Severity.BLOCK


def request(body: Mapping[str, object]) -> Request:
    return Request(
        id="r",
        at=0.0,
        method="POST",
        path="/v1/chat/completions",
        headers=(),
        body=orjson.dumps(body),
        conversation="c",
    )


def seen(said: str | Choice, arm: Arm) -> Observation:
    choice = Choice(text=said, finish_reason="stop") if isinstance(said, str) else said
    return Observation(
        request_id="r", arm=arm, at=0.0, outcome=Outcome.OK, status=200, answer=Answer(choices=(choice,))
    )


def best_threshold(scored: Sequence[Scored]) -> float:
    """Below it plain cosine says "different": the best macro-average of balanced accuracy on the tuning half."""
    grid = np.arange(0.30, 1.0, 0.005)
    return float(max(grid, key=lambda threshold: macro(qualities(scored, False, float(threshold)).values())))


def qualities(scored: Sequence[Scored], half: bool, threshold: float | None = None) -> dict[str, Quality]:
    """By family; of the cascade, or of plain cosine at ``threshold``."""
    families = dict.fromkeys(one.set.family for one in scored)
    return {
        family: quality(
            [
                (one.set.different, one.calls(half) if threshold is None else one.plain(half, threshold))
                for one in scored
                if one.set.family == family
            ]
        )
        for family in families
    }


def quality(rows: Iterable[tuple[bool, list[bool]]]) -> Quality:
    """Of sets as (all are different, called different)."""
    full = [(different, calls) for different, calls in rows if calls]
    recalls = [fmean(calls) for different, calls in full if different]
    specifics = [1 - fmean(calls) for different, calls in full if not different]
    return Quality(
        found=sum(sum(calls) for different, calls in full if different),
        different=sum(len(calls) for different, calls in full if different),
        alarms=sum(sum(calls) for different, calls in full if not different),
        same=sum(len(calls) for different, calls in full if not different),
        balanced=(fmean(recalls) + fmean(specifics)) / 2 if recalls and specifics else None,
    )


def macro(families: Iterable[Quality]) -> float:
    known = [family.balanced for family in families if family.balanced is not None]
    return fmean(known) if known else float("nan")


def report(scored: Sequence[Scored], half: bool, threshold: float) -> bool:
    """Prints both tables; True when ``half`` meets every target."""
    print(f"{'called different':34}{'pairs':>6}{'tune':>8}{'report':>8}  {'95 % interval':17}", end="")
    print(f"{'target':>9}{'':7}cosine < {threshold:.3f}")
    kept = [row(one, half, threshold) for one in scored]
    print(f"\n{'family':12}{'precision':>28}{'recall':>28}{'balanced':>10}{'cosine':>8}")
    ours, plain = qualities(scored, half), qualities(scored, half, threshold)
    for name, family in ours.items():
        precision = share(family.found, family.found + family.alarms)
        recall = share(family.found, family.different)
        other = plain[name].balanced
        print(f"{name:12}{precision:>28}{recall:>28}{figure(family.balanced):>10}{figure(other):>8}")
    reached, beside = macro(ours.values()), macro(plain.values())
    good = reached >= MACRO and reached >= beside + ABOVE_COSINE
    print(f"{'macro':68}{reached:>10.3f}{beside:>8.3f}", end="")
    print(f"  {word(good)} (at least {MACRO:g}, and {ABOVE_COSINE:g} above cosine)")
    return good and all(kept)


def row(one: Scored, half: bool, threshold: float) -> bool:
    tuned, calls, plain = one.calls(False), one.calls(half), one.plain(half, threshold)
    reported = one.calls(True)
    rate = fmean(calls) if calls else float("nan")
    good = not calls or (rate >= one.set.target if one.set.different else rate <= one.set.target)
    relation = "≥" if one.set.different else "≤"
    low, high = interval(sum(calls), len(calls))
    print(
        f"{one.set.name:34}{len(calls):>6}{percent(tuned):>8}{percent(reported):>8}  "
        f"{f'[{low:.1%}, {high:.1%}]':17}{f'{relation} {one.set.target:.1%}':>9}  {word(good)} "
        f"{percent(plain):>8}"
    )
    kinds = by_kind(one, half)
    if kinds and one.set.each is not None:
        kind = min(kinds, key=kinds.__getitem__)
        good = good and kinds[kind] >= one.set.each
        print(f"{'':4}lowest of {len(kinds)} kinds: {kind} {kinds[kind]:.1%} (at least {one.set.each:.0%})")
    if open_ones := sum(not result.scored for result in one.results):
        print(
            f"{'':4}{open_ones} of {len(one.results)} could not be scored and count as not called different"
        )
    return good


def by_kind(one: Scored, half: bool) -> dict[str, float]:
    """The share called different of each kind."""
    calls: dict[str, list[bool]] = {}
    samples = [sample for sample in one.set.samples if sample.reported is half]
    for sample, call in zip(samples, one.calls(half), strict=True):
        calls.setdefault(sample.kind, []).append(call)
    return {kind: fmean(found) for kind, found in calls.items()}


def show_confusions(one: Scored, half: bool, most: int) -> None:
    confused = one.confused(half)[: max(0, most)]
    if confused:
        print(f"\n{one.set.name}: {'not found' if one.set.different else 'false alarms'}")
    for sample, result in confused:
        why = "; ".join(finding.message for finding in result.findings)
        print(f"  {sample.kind or 'pair'}: {textwrap.shorten(why, 160, placeholder=' …')}")
        for text in (spelled(sample.baseline), spelled(sample.candidate)):
            print(f"      {textwrap.shorten(text, 220, placeholder=' …')}")


def interval(count: int, total: int) -> tuple[float, float]:
    """Wilson's, 95 %."""
    if not total:
        return float("nan"), float("nan")
    low, high = binomtest(count, total).proportion_ci(method="wilson")
    return float(low), float(high)


def share(count: int, total: int) -> str:
    low, high = interval(count, total)
    return f"{count / total:.1%} [{low:.1%}, {high:.1%}]" if total else "-"


def percent(calls: Sequence[bool]) -> str:
    return f"{fmean(calls):.1%}" if calls else "-"


def figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def word(good: bool) -> str:
    return "PASS" if good else "FAIL"


def cache(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(exist_ok=True)
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE IF NOT EXISTS vectors (model, hash, vector, PRIMARY KEY (model, hash))")
    return database


def _read(database: sqlite3.Connection, model: str, names: Sequence[str]) -> dict[str, bytes]:
    marks = ",".join("?" * len(names))
    rows = database.execute(
        f"SELECT hash, vector FROM vectors WHERE model = ? AND hash IN ({marks})", (model, *names)
    )
    return dict(rows.fetchall())


def _write(database: sqlite3.Connection, model: str, vectors: Mapping[str, bytes]) -> None:
    with database:
        rows = [(model, name, vector) for name, vector in vectors.items()]
        database.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)


if __name__ == "__main__":
    sys.exit(main())
