"""Pairs of answers of which people know whether they serve a user alike, as sets: read or generated, never judged.

Public data is looked for in the folder that ``LLM_MIGRATE_DATA`` names; the project's own small sets are always there.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchmarks import changes
from benchmarks.gsm8k import solutions
from benchmarks.negated import contracted, negated
from replay.exchange import Choice
from reports.compare import Comparison, compare
from reports.policy import Extractor

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("LLM_MIGRATE_DATA", ROOT.parent / "shared" / "data"))
OWN = ROOT / "tests" / "reports" / "sets"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Two answers to one request, and what people say of them."""

    baseline: str | Choice
    candidate: str | Choice
    different: bool
    kind: str = ""
    """What was changed, for the list of confusions."""
    group: str = ""
    """Samples of one group fall into one half; by default each is its own."""
    body: dict[str, object] = field(default_factory=dict)
    """The request's."""

    @property
    def reported(self) -> bool:
        """The half: False is for tuning, True for the report. Fixed by the text alone."""
        key = self.group or "\n".join(sorted((spelled(self.baseline), spelled(self.candidate))))
        return hashlib.sha256(key.encode("utf-8", "replace")).digest()[0] % 2 == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Set:
    """Samples that are all different, or all the same, with the target for the share called different."""

    name: str
    family: str
    """Sets of one family make one balanced accuracy."""
    different: bool
    target: float
    """Different: the lowest share that must be found. The same: the highest share of false alarms."""
    samples: tuple[Sample, ...]
    each: float | None = None
    """The lowest share of every kind that must be found; ``None``: only all together count."""
    comparing: Callable[..., Comparison] = compare
    """``reports.compare.compare``, or a partial of it with what the configuration would add."""


def spelled(said: str | Choice) -> str:
    """An answer as one text."""
    if isinstance(said, str):
        return said
    return "\n".join([said.text, *(f"{call.name}({call.arguments})" for call in said.tool_calls)]).strip()


def sets() -> Iterator[Set]:
    """Every set that can be built here."""
    yield from own_sets()
    if DATA.is_dir():
        yield from public_sets()


def own_sets() -> Iterator[Set]:
    """The project's own sets, written for the purpose."""
    own = partial(_own, samples=lambda name: tuple(read_own(OWN / f"{name}.tsv")))
    yield from own("negation_reworded", "negation", same=0.25)
    yield from own("answers_reworded", "negation", same=0.25)
    yield from own("contractions", "negation", same=0.02)
    yield from own("negation_changed", "negation", different=0.85)
    yield from own("roles", "changes", same=0.10, different=0.90)
    yield from own("names", "changes", same=0.10, different=0.90)


def public_sets() -> Iterator[Set]:
    """Sets from public data."""
    yield Set(
        name="nan_nli",
        family="negation",
        different=True,
        target=0.85,
        samples=tuple(nan_nli(DATA / "answers/nan_nli.tsv")),
    )
    texts = list(prompts(DATA / "prompts"))
    random.Random(3).shuffle(texts)
    yield _made("negation put in or out", "negation", negated(texts, 100), different=True, target=0.98)
    yield _made("contractions, generated", "negation", contracted(texts, 300), different=False, target=0.02)
    same, other = stsb(DATA / "answers/stsb_en_dev.csv")
    yield Set(name="stsb at 4.8 or more", family="stsb", different=False, target=0.06, samples=same)
    yield Set(name="stsb at 1.5 or less", family="stsb", different=True, target=0.97, samples=other)
    yield Set(
        name="eight equal stsb joined",
        family="stsb",
        different=False,
        target=0.12,
        samples=tuple(joined(same)),
    )
    yield _solved("gsm8k, right and right", different=False, target=0.005)
    yield _solved("gsm8k, right and wrong", different=True, target=0.995)
    edited = partial(_changed, family="changes")
    yield edited("one place changed", changes.altered(DATA), different=True, target=0.95, each=0.9)
    yield edited("formatting only", changes.formatted(DATA), different=False, target=0.01)
    yield edited("the same in other words", changes.respelled(DATA), different=False, target=0.1)
    called = partial(_changed, family="calls")
    yield called("calls, spelling only", changes.calls_respelled(DATA), different=False, target=0.01)
    yield called("calls, changed", changes.calls_changed(DATA), different=True, target=1.0)


def _solved(name: str, *, different: bool, target: float) -> Set:
    """Compared by their last number: free text with many numbers on the way is what extractors are for."""
    pairs = solutions(DATA / "answers/gsm8k_example_model_solutions.jsonl", right=not different)
    samples = tuple(
        Sample(baseline=one, candidate=two, different=different, group=question)
        for question, one, two in pairs
    )
    by_number = partial(compare, extractors=(Extractor(take="last_number"),))
    return Set(
        name=name, family="gsm8k", different=different, target=target, samples=samples, comparing=by_number
    )


def read_own(path: Path) -> Iterator[Sample]:
    """A file of ``is``, ``baseline`` and ``candidate`` between tabs; ``is`` says ``same`` or ``different``."""
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            yield Sample(
                baseline=row["baseline"], candidate=row["candidate"], different=row["is"] == "different"
            )


def nan_nli(path: Path) -> Iterator[Sample]:
    """Sentences and what contradicts them; those that share a sentence share a half."""
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            yield Sample(
                baseline=row["sentence"], candidate=row["negated"], different=True, group=row["sentence"]
            )


def stsb(path: Path) -> tuple[tuple[Sample, ...], tuple[Sample, ...]]:
    """Pairs that people score 4.8 or more of 5, without identical ones, and those of 1.5 or less."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = [(one, two, float(score)) for one, two, score in csv.reader(file) if one != two]
    return (
        tuple(
            Sample(baseline=one, candidate=two, different=False) for one, two, score in rows if score >= 4.8
        ),
        tuple(
            Sample(baseline=one, candidate=two, different=True) for one, two, score in rows if score <= 1.5
        ),
    )


def joined(samples: Iterable[Sample], many: int = 8, times: int = 150) -> Iterator[Sample]:
    """Texts of ``many`` equal pairs, drawn within a half, so that no half sees the other's."""
    chance = random.Random(5)
    by_half: dict[bool, list[Sample]] = {False: [], True: []}
    for sample in samples:
        by_half[sample.reported].append(sample)
    for half, members in by_half.items():
        for number in range(times):
            drawn = chance.sample(members, many)
            yield Sample(
                baseline=" ".join(_ended(str(sample.baseline)) for sample in drawn),
                candidate=" ".join(_ended(str(sample.candidate)) for sample in drawn),
                different=False,
                group=_named(half, number),
            )


def prompts(folder: Path) -> Iterator[str]:
    """The texts of the prompt files."""
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if "turns" in row:
                yield from row["turns"]
            elif isinstance(question := row.get("question", []), str):
                yield question
            else:
                yield from (message["content"] for turn in question for message in turn)


def _own(
    name: str,
    family: str,
    *,
    samples: Callable[[str], tuple[Sample, ...]],
    same: float | None = None,
    different: float | None = None,
) -> Iterator[Set]:
    read = samples(name)
    for is_different, target in ((False, same), (True, different)):
        if target is not None:
            yield Set(
                name=f"{name}, {'different' if is_different else 'same'}",
                family=family,
                different=is_different,
                target=target,
                samples=tuple(sample for sample in read if sample.different is is_different),
            )


def _made(
    name: str, family: str, pairs: Iterable[tuple[str, str, str]], *, different: bool, target: float
) -> Set:
    samples = tuple(
        Sample(baseline=one, candidate=two, different=different, kind=kind) for kind, one, two in pairs
    )
    return Set(name=name, family=family, different=different, target=target, samples=samples)


def _changed(
    name: str,
    pairs: Iterable[changes.Pair],
    *,
    family: str,
    different: bool,
    target: float,
    each: float | None = None,
) -> Set:
    samples = tuple(
        Sample(
            baseline=pair.baseline,
            candidate=pair.candidate,
            different=different,
            kind=pair.kind,
            body=dict(pair.request),
        )
        for pair in pairs
    )
    return Set(name=name, family=family, different=different, target=target, samples=samples, each=each)


def _ended(text: str) -> str:
    return text if text.rstrip().endswith((".", "!", "?")) else text.rstrip() + "."


def _named(half: bool, number: int) -> str:
    """A group's name that falls into ``half``."""
    tries = (f"joined {number} {n}" for n in range(64))
    return next(
        g for g in tries if Sample(baseline="", candidate="", different=False, group=g).reported is half
    )
