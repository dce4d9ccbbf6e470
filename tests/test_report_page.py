"""docs/report.md says what is in the file."""

from __future__ import annotations

import re
from pathlib import Path

from reports.picking import SAMPLE
from reports.render.html import render_html
from reports.shown import WORST
from tests.reports.builders import COUNTERS, document, wrong

PAGE = (Path(__file__).parents[1] / "docs" / "report.md").read_text(encoding="utf-8")


def test_every_section_is_explained_in_its_place() -> None:
    explained = re.findall(r"^\| ([A-Z][a-z ]+) \|", PAGE, re.MULTILINE)
    shown = re.findall(r"<h2 [^>]*>([^<]+)</h2>", render_html(document(wrong(), counters=COUNTERS)))
    assert [name for name in explained if name != "Cost"] == [
        name for name in shown if name != "Failed checks"
    ]


def test_the_bounds_are_those_of_the_code() -> None:
    assert f"At most {SAMPLE + WORST} of them" in PAGE
