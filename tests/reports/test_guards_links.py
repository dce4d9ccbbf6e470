"""Addresses of pages and mailboxes."""

from __future__ import annotations

import pytest

from reports.compare.guards.links import guard_links
from reports.compare.normal import normalise
from reports.judgement import Severity


def severity(old: str, new: str) -> Severity | None:
    finding, back = guard_links(normalise(old), normalise(new)), guard_links(normalise(new), normalise(old))
    assert (finding and finding.severity) == (back and back.severity)
    return None if finding is None else finding.severity


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("See https://a.example/x", "See https://a.example/y"),
        ("See https://a.example/x", "See https://b.example/x"),
        ("Write to ann@a.example", "Write to ann@b.example"),
        ("See https://a.example/x?q=1", "See https://a.example/x?q=2"),
    ],
)
def test_another_address_is_blocked(old: str, new: str) -> None:
    assert severity(old, new) is Severity.BLOCK


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("See https://a.example/x.", "See (http://www.a.example/x/)"),
        ("See [the page](https://a.example/x)", "See the page: https://A.example/x"),
        ("See a.example/x for it", "See https://a.example/x for it"),
        ("Write to Ann@A.example!", "Write to ann@a.example"),
        ("no address", "none at all"),
        ("a@b and @ and x@", "a b"),
    ],
)
def test_the_same_address_is_not(old: str, new: str) -> None:
    assert severity(old, new) is None


def test_one_more_on_one_side_is_a_warning() -> None:
    assert severity("See https://a.example", "See https://a.example and https://b.example") is Severity.WARN
