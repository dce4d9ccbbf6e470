"""Every guard on texts that were made to break one: it neither raises nor takes long, and does not care for sides."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.compare.guards import GUARDS
from reports.compare.normal import normalise
from tests.reports.hostile import HOSTILE

REPEATED = {
    "dates": "March 3, 2024 ",
    "numeric dates": "1/2/2024 ",
    "times": "6:30 pm ",
    "amounts": "5 km ",
    "number words": "two hundred and ",
    "comparisons": "more than 5 ",
    "signs": "<=",
    "addresses": "http://a.example/c ",
    "mailboxes": "a@b.example ",
    "at signs": "a@",
    "dots": "a.",
    "fences": "```\n",
    "comments": "/*",
    "answers": "answer is ",
    "boxes": "\\boxed{",
    "dollars": "$a",
    "links": "[a](http:",
    "bars": "<|a ",
    "marks of tokenizers": "\u0120a",
    "colons": "1:",
    "slashes": "1/",
    "labels": "1. a\n",
    "turns": "User: ",
    "loop": "la la ha ",
    "mixed": "\u6c34a",
    "negations": "not ",
}
LENGTH = 60_000
TEXTS = {**HOSTILE, **{name: (piece * LENGTH)[:LENGTH] for name, piece in REPEATED.items()}}


@pytest.mark.parametrize("name", TEXTS)
def test_no_text_breaks_a_guard(name: str) -> None:
    old, new = normalise(TEXTS[name][:LENGTH]), normalise(TEXTS[name][:LENGTH] + " and 5 km more")
    for guard in GUARDS:
        began = time.process_time()
        there, back = guard(old, new), guard(new, old)
        assert time.process_time() - began < 5, guard.__name__
        assert (there and there.severity) == (back and back.severity), guard.__name__


SAYINGS = (
    *(
        "at least 5 km",
        "March 3, 2025",
        "6 pm",
        "$1,000",
        "(B)",
        "http://a.example",
        "\n```\nx = 1\n```\n",
        "not",
        "Ann",
    ),
    *(
        "pays Bob",
        "two hundred",
        "<|im_end|>",
        "\ufffd",
        "или не",
        "好的",
        "Yes,",
        "No.",
        "- a\n",
        "user: hi",
        "**b**",
    ),
)
PIECES = st.lists(st.sampled_from(SAYINGS) | st.text(max_size=12), max_size=12)


@given(PIECES, PIECES)
def test_a_guard_is_blind_to_sides_and_equal_texts_have_no_difference(one: list[str], two: list[str]) -> None:
    old, new = normalise(" ".join(one)), normalise(" ".join(two))
    for guard in GUARDS:
        there, back = guard(old, new), guard(new, old)
        assert (there and (there.category, there.severity)) == (back and (back.category, back.severity)), (
            guard.__name__
        )
        assert guard(old, old) is None, guard.__name__
