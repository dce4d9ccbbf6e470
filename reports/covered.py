"""Whether enough of the pairs could be read, of large ones too, and whether GO rests on those that could not. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from reports.columns import Columns
from reports.facts import Facts
from reports.judgement import Check
from reports.ledger import MISSING
from reports.reading import Reading
from reports.rules import TITLES
from reports.stats import Flags, log_evidence_above
from reports.weighing import coverage, test_of

_MOST_NOT_COMPARABLE = 0.5
_ALPHA = 0.01


def not_comparable(facts: Facts) -> Check:
    """Most of what was asked has answers that say nothing about each other."""
    pairs = facts.ledger.columns
    unlike = ~pairs.comparable | facts.ledger.places["not_comparable"]
    count, total = int(np.count_nonzero(unlike)), len(pairs)
    message = f"{count:,} of {total:,} pairs hold requests whose answers cannot be compared"
    return Check(code="not_comparable", passed=count <= _MOST_NOT_COMPARABLE * total, message=message)


def unserved(facts: Facts) -> Check | None:
    """Requests that the baseline answers and the candidate says it does not offer: no errors of it, and nobody's to lose.

    As many as errors may grow are left to the rules, which count them against GO.
    """
    count, total = facts.ledger.count("unserved"), len(facts.ledger.evidence)
    if not count:
        return None
    most = facts.policy.errors.margin
    message = (
        f"{count:,} of {total:,} requests ask for what the candidate says it does not serve ({count / total:.1%}), {most:.1%} "
        "may: Causes has what, and migrate check what to change"
    )
    return Check(code="unserved", passed=count <= most * total, message=message)


def unscored(facts: Facts) -> Check | None:
    """Looks at every pair with two comparable answers, not only those with a repeat."""
    if "disagreement" not in facts.required:
        return None
    both, lost = _comparable(facts.ledger.evidence)
    count, total = int(np.count_nonzero(lost)), int(np.count_nonzero(both))
    share = count / total if total else 0.0
    message = f"{count:,} of {total:,} comparable answers were not scored ({share:.1%})"
    return Check(code="unscored", passed=share <= 1 - facts.policy.minimum_coverage + 1e-12, message=message)


def _comparable(pairs: Columns) -> tuple[Flags, Flags]:
    """The pairs with two answers that can be compared, and those of them that were not."""
    both = pairs.baseline.answered & pairs.candidate.answered & pairs.comparable
    return both, both & (pairs.differs < 0)


def read_enough(facts: Facts) -> Check:
    """The rule that could read the smallest share of its pairs."""
    shares = {
        name: share
        for name in facts.required
        if isinstance(read := facts.readings[name], Reading) and (share := coverage(read)) is not None
    }
    if not shares:
        return Check(code="coverage", passed=True, message="no rule has pairs to read yet")
    worst = min(shares, key=lambda name: shares[name])
    read = facts.readings[worst]
    lost = [f"{count:,} {place}" for place in MISSING if (count := facts.ledger.count(place))]
    why = f" ({', '.join(lost)})" if lost else ": their answers do not tell what it reads"
    missing = "none is missing"
    if isinstance(read, Reading) and read.missing:
        missing = f"{read.missing:,} are missing{why}"
    part, needed = f"{shares[worst]:.1%}", f"{facts.policy.minimum_coverage:.0%}"
    message = f"{TITLES[worst]} could read {part} of its pairs, {needed} required; {missing}"
    return Check(code="coverage", passed=shares[worst] >= facts.policy.minimum_coverage, message=message)


def breaker(facts: Facts) -> Check:
    """Copies that the circuit breaker kept back."""
    withheld, total = facts.ledger.count("breaker_open"), len(facts.ledger.evidence)
    share = withheld / total if total else 0.0
    message = (
        f"{withheld:,} copies ({share:.1%}) were withheld because the candidate had just failed repeatedly"
    )
    return Check(
        code="breaker_open", passed=share <= 1 - facts.policy.minimum_coverage + 1e-12, message=message
    )


def sizes(facts: Facts) -> Check:
    """Whether what is missing is missing among large prompts or long answers: the rest then looks better than the whole.

    Fails on evidence at 1 %, valid at every look, that a bucket misses more than ``minimum_coverage`` allows.
    """
    pairs = facts.ledger.evidence
    kinds = [("missing", ~pairs.baseline.missing, pairs.candidate.missing)]
    if "disagreement" in facts.required:
        kinds.append(("not scored", *_comparable(pairs)))
    allowed, buckets = 1 - facts.policy.minimum_coverage, dict(_buckets(pairs))
    needed = math.log(max(1, len(kinds) * len(buckets)) / _ALPHA)
    for word, seen, lost in kinds:
        for name, bucket in buckets.items():
            total, gone = int(np.count_nonzero(seen & bucket)), int(np.count_nonzero(seen & lost & bucket))
            if gone and log_evidence_above(gone, total - gone, 0, allowed) >= needed:
                message = f"{gone:,} of {total:,} pairs with {name} are {word} ({gone / total:.1%}), {allowed:.0%} may be"
                return Check(code="size_coverage", passed=False, message=message)
    return Check(code="size_coverage", passed=True, message="large requests are not missing more than others")


def _buckets(pairs: Columns) -> Iterator[tuple[str, Flags]]:
    """Pairs by the length of the prompt, and by that of the baseline's answer: its longest half, and its longest tenth."""
    for place, (dimension, values) in enumerate(pairs.dimensions):
        if dimension == "prompt_length":
            for number, value in enumerate(values):
                yield f"a prompt of {value}", pairs.slices[:, place] == number
    length = np.where(np.isfinite(pairs.baseline.tokens), pairs.baseline.tokens, pairs.baseline.characters)
    known = np.sort(length[np.isfinite(length) & pairs.candidate.answered])
    if known.size:
        for words, share in (("half", 0.5), ("tenth", 0.9)):
            yield f"an answer among the longest {words}", length > np.quantile(known, share)


def sensitivity(facts: Facts) -> Check | None:
    """The tipping point of the rule that is nearest to it: how many missing pairs, counted as harm, take its GO away.

    ``None`` where no pair is missing from a required rule that has evidence for GO.
    """
    points = {
        name: (point, read.missing)
        for name in facts.required
        if isinstance(read := facts.readings[name], Reading)
        and read.missing
        and (point := tipping_point(read, facts))
    }
    if not points:
        return None
    name = min(points, key=lambda one: points[one][0] - points[one][1])
    point, missing = points[name]
    said = f"{TITLES[name]}, the rule nearest to it: GO would fail "
    if point <= missing:
        said += f"if {point:,} of the {missing:,} missing pairs were failures of the candidate"
    else:
        said += f"with {point:,} failures of the candidate more, and {missing:,} pairs are missing"
    return Check(code="sensitivity", passed=point > missing, message=said)


def tipping_point(read: Reading, facts: Facts) -> int:
    """The fewest pairs that, added as harm, leave no evidence for GO; 0 where there is none without them."""
    (worse, same, better), alpha = read.cautious, facts.policy.alpha
    test, needed = test_of(facts.policy), math.log(1 / alpha)

    def holds(more: int) -> bool:
        return bool(test(better, same, worse + more, -read.bar, alpha) >= needed)

    if not holds(0):
        return 0
    low, high = 0, 1
    while holds(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return high
