"""docs/findings.md has every finding, at its severity, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from reports.catalogue import CATALOGUE
from reports.judgement import Severity

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
FAMILIES = (
    "choices|client_risk|compare|contract|envelope|error|finish|judge|latency|media|reasoning|refusal|similarity|stream|structured"
    "|prompt|sampling|task|text|tools|usage|vectors"
)


def documented() -> dict[str, str]:
    return dict(re.findall(r"^\*\*`([a-z_.*0-9]+)`\*\* ([A-Z]+)\. ", PAGE, flags=re.MULTILINE))


def in_the_code() -> set[str]:
    """Every dotted code that stands in the sources of comparators and decoders. A benchmark finds nothing; it measures."""
    sources = {*(ROOT / "reports").rglob("*.py"), *(ROOT / "replay").glob("*.py")}
    sources.remove(ROOT / "reports" / "benchmark.py")
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    return set(re.findall(rf'"((?:{FAMILIES})\.[a-z][a-z_0-9]+)"', text))


def test_every_finding_of_the_code_is_on_the_page() -> None:
    missing = in_the_code() - documented().keys() - {"error.in_200", "error.mid_stream"}
    assert not missing, sorted(missing)
    assert {"error.in_200", "error.mid_stream"} <= documented().keys()


def test_the_page_names_no_finding_that_is_none() -> None:
    extra = documented().keys() - in_the_code() - {"error.*", "transport.*"}
    assert not extra, sorted(extra)


def test_severities_are_those_of_the_catalogue() -> None:
    for code, entry in CATALOGUE.items():
        assert documented()[code] == entry.severity.value, code
    assert set(documented().values()) <= {severity.value for severity in Severity}


def test_every_paragraph_has_an_example() -> None:
    paragraphs = [line for line in PAGE.splitlines() if line.startswith("**`")]
    assert len(paragraphs) == len(documented()) and all(" Example: " in line for line in paragraphs)
