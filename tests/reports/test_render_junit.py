"""JUnit XML and annotations: what a pipeline reads of a verdict."""

from __future__ import annotations

import unicodedata
from xml.etree.ElementTree import Element, fromstring

import pytest

from reports.document import Document
from reports.judgement import Verdict
from reports.render.github import render_github
from reports.render.junit import render_junit
from reports.render.markdown import render_markdown
from tests.reports.builders import alike, document, exchange, wrong
from tests.reports.hostile import HOSTILE

SUITE = {
    "id",
    "package",
    "name",
    "timestamp",
    "hostname",
    "tests",
    "failures",
    "errors",
    "skipped",
    "time",
}


def conforms(root: Element) -> None:
    """The shape of the schema of Ant's JUnit task, which readers of JUnit XML go by: element order, attributes, counts."""
    assert root.tag == "testsuites" and not root.attrib
    for number, suite in enumerate(root):
        assert suite.tag == "testsuite" and set(suite.attrib) == SUITE
        assert suite.attrib["id"] == str(number) and not suite.attrib["timestamp"].endswith("Z")
        tags = [child.tag for child in suite]
        cases = suite.findall("testcase")
        assert tags == ["properties", *["testcase"] * len(cases), "system-out", "system-err"]
        assert all(set(one.attrib) == {"name", "value"} for one in suite.findall("properties/property"))
        assert int(suite.attrib["tests"]) == len(cases)
        for tag, counter in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            assert int(suite.attrib[counter]) == len(suite.findall(f"testcase/{tag}"))
        for case in cases:
            assert set(case.attrib) == {"classname", "name", "time"} and len(case) <= 1
            assert all("type" in one.attrib for one in case if one.tag in ("failure", "error"))
        names = [case.attrib["name"] for case in cases]
        assert len(names) == len(set(names))


def kinds(made: Document) -> dict[str, str | None]:
    """What became of each test."""
    root = fromstring(render_junit(made))
    conforms(root)
    return {case.attrib["name"]: case[0].tag if len(case) else None for case in root.iter("testcase")}


def test_go_passes_all_that_is_required() -> None:
    made = document(alike())
    found = kinds(made)
    assert found["verdict"] is None and set(found.values()) <= {None, "skipped"}
    required = [rule.rule for rule in made.rules if rule.required and rule.applies]
    assert required and all(found[name] is None for name in required)


def test_rollback_is_a_failure_with_its_reason_and_causes() -> None:
    made = document(wrong())
    found = kinds(made)
    assert found["verdict"] == "failure" and found["disagreement"] == "failure" and found["errors"] is None
    text = render_junit(made)
    assert made.reason.split(";")[0][:20] in text and f"migrate show {made.causes[0].example}" in text


def test_hold_is_an_error_and_so_is_a_failed_check() -> None:
    made = document([exchange(0)])
    found = kinds(made)
    failed = [check.code for check in made.checks if not check.passed]
    assert made.verdict is Verdict.HOLD and found["verdict"] == "error"
    assert failed and all(found[code] == "error" for code in failed)
    assert set(found.values()) <= {None, "error", "skipped"}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_answers_stay_text(text: str) -> None:
    made = document(
        [exchange(n, "All is well.", text, prompt=text, failed=text[:500] or None) for n in range(3)]
    )
    xml = render_junit(made)
    conforms(fromstring(xml))
    lines = render_github(made)
    for shown in (xml, lines):
        assert not any(unicodedata.category(char) in ("Cc", "Cs", "Cf") for char in shown.replace("\n", ""))
    assert all(line.startswith(("::error ", "::warning ", "::notice ")) for line in lines.splitlines())


def test_annotations_begin_with_the_verdict_and_escape_what_would_end_them() -> None:
    lines = render_github(document(wrong())).splitlines()
    assert lines[0].startswith("::error title=migrate report%3A ROLLBACK ") and "%25" in lines[0]
    assert any(" ROLLBACK disagreement::" in line for line in lines[1:]) and len(lines) <= 10
    assert render_github(document(alike())).startswith("::notice title=migrate report%3A GO")
    assert render_github(document([exchange(0)])).startswith("::warning title=migrate report%3A HOLD")


def test_markdown_fits_a_step_summary() -> None:
    pairs = [exchange(n, "a " * 5_000, f"{n} b " * 5_000, prompt="p" * 9_000) for n in range(40)]
    assert len(render_markdown(document(pairs)).encode()) < 2**20
