"""Where two texts differ, word by word."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.render.wording import Part, compared, words


def marked(parts: tuple[Part, ...]) -> str:
    return "".join(f"[{part.text}]" if part.differs else part.text for part in parts)


@pytest.mark.parametrize(
    ("baseline", "candidate", "old", "new"),
    [
        ("It costs 42 euros.", "It costs 24 euros.", "It costs [42] euros.", "It costs [24] euros."),
        ("a b c d", "a c d", "a [b] c d", "a c d"),
        ("same words", "same words", "same words", "same words"),
        ("Monday at nine, in the hall", "夜", "Monday at nine, in the hall", "夜"),
        ("今日は晴れです", "今日は雨です", "今日は[晴れ]です", "今日は[雨]です"),
        ("हिन्दी में है", "हिन्दी में था", "हिन्दी में [है]", "हिन्दी में [था]"),
        ("go 👩‍🚀 up", "go 👩‍🚒 up", "go [👩‍🚀] up", "go [👩‍🚒] up"),
        ("", "x", "", "x"),
        ("in all here", "at  most  here", "[in all] here", "[at  most]  here"),
        ("one two", "one  two", "one two", "one  two"),
    ],
)
def test_what_differs_is_marked(baseline: str, candidate: str, old: str, new: str) -> None:
    assert tuple(map(marked, compared(baseline, candidate))) == (old, new)


@given(st.text(max_size=60), st.text(max_size=60))
def test_the_parts_make_up_the_texts(baseline: str, candidate: str) -> None:
    old, new = compared(baseline, candidate)
    assert ("".join(part.text for part in old), "".join(part.text for part in new)) == (baseline, candidate)
    assert "".join(words(baseline)) == baseline


def test_words_that_come_too_often_are_marked_as_one() -> None:
    head, old, new = "one two three " * 60, "! " * 100 + "x" + " !" * 50, "! " * 100 + "y" + " !" * 50
    assert tuple(map(marked, compared(head + old, head + new))) == (
        f"{head}{'! ' * 100}[x]{' !' * 50}",
        f"{head}{'! ' * 100}[y]{' !' * 50}",
    )
