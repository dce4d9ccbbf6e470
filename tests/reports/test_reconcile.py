"""Counts reconcile on every page: the parts that a reader sees sum to ``dispatched``, and each is the document's."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from replay.exchange import Outcome
from reports.document import Document
from reports.judge import judge
from reports.render.html import render_html
from reports.render.judged import as_text
from reports.render.markdown import render_markdown
from reports.render.terminal import render_terminal
from tests.reports.builders import from_pairs
from tests.reports.made import MISSING, REHEARSAL, START, WITHHELD, answer, changed, failure, same

DROPPED, LEFT = failure(Outcome.MIRROR_DROPPED, None), failure(Outcome.CLIENT_CANCELLED, 0.1)
POLICY = REHEARSAL.model_copy(update={"warmup": 5})


def everywhere():
    """Pairs of every place but those that are in flight."""
    pairs = changed(same(700), lambda n: n % 30 == 0, candidate=MISSING, differs=None)
    pairs = changed(pairs, lambda n: n % 31 == 0, candidate=WITHHELD, differs=None)
    pairs = changed(pairs, lambda n: n % 37 == 0, candidate=DROPPED, differs=None)
    pairs = changed(pairs, lambda n: n % 41 == 0, baseline=LEFT, differs=None)
    pairs = changed(
        pairs, lambda n: n % 43 == 0, candidate=MISSING, not_comparable="not_comparable: stateful"
    )
    pairs = changed(pairs, lambda n: n < 60, candidate=answer(version="1"))
    pairs = changed(pairs, lambda n: 60 <= n < 200, candidate=answer(version="2"))
    return changed(pairs, lambda n: n >= 698, at=START + 10**8)


def parts(text: str) -> list[int]:
    """The counts of a sentence such as ``515 scored, 20 not sent``."""
    return [int(one.replace(",", "")) for one in re.findall(r"(?<![\w.])[\d,]*\d(?= [a-z])", text)]


def in_terminal(document: Document) -> tuple[int, list[int]]:
    text = " ".join(render_terminal(document).split())
    whole, said = re.findall(r"([\d,]+) dispatched: (.*?) [\d,]+ answers:", text)[0]
    return int(whole.replace(",", "")), parts(said)


def in_markdown(document: Document) -> tuple[int, list[int]]:
    whole, said = re.findall(r"^- ([\d,]+) dispatched: (.*)$", render_markdown(document), flags=re.MULTILINE)[
        0
    ]
    return int(whole.replace(",", "")), parts(said)


def in_html(document: Document) -> tuple[int, list[int]]:
    section = render_html(document).split("from dispatch to evidence")[1].split("</table>")[0]
    numbers = [int(one.replace(",", "")) for one in re.findall(r">\s*([\d,]+)\s*<", section)]
    return numbers[-1], numbers[:-1]


@pytest.mark.parametrize("read", [in_terminal, in_markdown, in_html])
def test_the_parts_of_a_page_sum_to_what_was_dispatched(
    read: Callable[[Document], tuple[int, list[int]]],
) -> None:
    document = from_pairs(everywhere(), POLICY)
    places = [count for place, count in document.ledger.items() if place != "dispatched" and count]
    assert len(places) == 9
    whole, shown = read(document)
    assert whole == sum(shown) == document.ledger["dispatched"] == 700
    assert sorted(one for one in shown if one) == sorted(places)


def test_a_verdict_on_a_file_does_so_too() -> None:
    judgement = judge(everywhere(), POLICY, now=START + 10**7, final=True)
    text = " ".join(as_text("pairs.jsonl", judgement).split())
    whole, said = re.findall(r"([\d,]+) pairs over [^:]*: (.*?) RULE", text)[0]
    assert int(whole) == sum(parts(said)) == 700
