"""Which pairs of a run a report has for who looks through it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from replay.exchange import Exchange
from reports.gathered import Gathered, of_items
from reports.picking import SAMPLE, sample
from tests.reports.builders import exchange, gathered, item, wrong
from tests.reports.made import same


def seen(exchanges: list[Exchange]) -> Gathered:
    return of_items([item(one) for one in exchanges])


def mixed() -> Gathered:
    many = wrong(600, every=2)
    rare = [exchange(700, failed="no"), exchange(701, "Yes, you may go.", "")]
    elsewhere = [
        replace(exchange(800 + n), request=replace(exchange(800 + n).request, path="/v1/x")) for n in range(3)
    ]
    return seen([*many, *rare, *elsewhere, exchange(900, slower_s=9.0)])


def test_some_of_every_kind_are_in_it() -> None:
    found = sample(mixed(), 1)
    assert {"r00700", "r00701", "r00900"} <= found.keys()
    assert {"r00800", "r00801", "r00802"} & found.keys()
    kinds = Counter(found.values())
    assert kinds["finding"] >= 10 and kinds["clean"] >= 20 and kinds["slow"] and kinds["slice"]
    assert found["r00700"] == "finding" and found["r00900"] == "slow"


def test_the_examples_of_causes_come_first() -> None:
    found = sample(mixed(), 1, examples=["r00123", "r00124"])
    assert list(found)[:2] == ["r00123", "r00124"] and len(found) <= SAMPLE


def test_the_seed_decides_and_nothing_else() -> None:
    one = mixed()
    assert list(sample(one, 1).items()) == list(sample(mixed(), 1).items())
    assert sample(one, 1).keys() != sample(one, 2).keys()


def test_it_is_bounded_and_the_most_telling_come_first() -> None:
    one = mixed()
    assert len(sample(one, 1)) <= SAMPLE
    assert list(sample(one, 1, count=9)) == list(sample(one, 1))[:9]
    assert set(sample(one, 1, count=9).values()) == {"finding"}


def test_a_run_without_pairs_or_comparisons_has_what_there_is() -> None:
    assert sample(gathered([]), 1) == {}
    assert set(sample(gathered(same(40)), 1).values()) <= {"slow", "clean"}
