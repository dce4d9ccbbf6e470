"""The document as JUnit XML: a test for the verdict, one for each rule and one for each check.

ROLLBACK is a failure, HOLD an error: the test could not be decided. What is not required, or does not apply, is skipped. The
elements and attributes are those of the schema that Ant's JUnit task is known by, in its order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from reports.counting import some
from reports.document import Document
from reports.judgement import Check, RuleResult, Verdict
from reports.render.text import plain
from reports.render.words import count, interval, quantity, title

_KINDS = {Verdict.ROLLBACK: "failure", Verdict.HOLD: "error"}
_CAUSES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Test:
    name: str
    kind: str | None = None
    """``failure``, ``error`` or ``skipped``; ``None`` where it passed."""
    type: str = ""
    message: str = ""
    text: str = ""


def render_junit(document: Document) -> str:
    """The XML, without characters that XML or a terminal cannot take."""
    root = Element("testsuites")
    suites = (
        ("verdict", [_verdict(document)]),
        ("rules", [_rule(rule) for rule in document.rules]),
        ("checks", [_check(check) for check in document.checks]),
    )
    for number, (name, tests) in enumerate(suites):
        _suite(root, number, name, tests, document)
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _verdict(document: Document) -> _Test:
    causes = (
        f"{cause.severity} {count(cause.count)} {cause.category}: {cause.message} (migrate show {cause.example})"
        for cause in document.causes[:_CAUSES]
    )
    return _Test(
        name="verdict",
        kind=_KINDS.get(document.verdict),
        type=f"{document.verdict} {document.code}",
        message=document.reason,
        text="\n".join([f"Next: {document.advice}", *causes]),
    )


def _rule(rule: RuleResult) -> _Test:
    binding = rule.applies and rule.required
    kind = _KINDS.get(rule.verdict) if binding else "skipped"
    why = "" if binding else "not required: " if rule.applies else "does not apply: "
    return _Test(
        name=rule.rule,
        kind=None if not binding and rule.applies and rule.verdict is Verdict.GO else kind,
        type=rule.verdict.value,
        message=f"{why}{rule.reason}",
        text=f"{title(rule.rule)}: estimate {quantity(rule.estimate, rule.unit, signed=True)}, interval {interval(rule)}, margin "
        f"{quantity(rule.margin, rule.unit)}, {some(rule.pairs, 'pair')}",
    )


def _check(check: Check) -> _Test:
    return _Test(
        name=check.code, kind=None if check.passed else "error", type=check.code, message=check.message
    )


def _suite(root: Element, number: int, name: str, tests: Sequence[_Test], document: Document) -> None:
    kinds = [test.kind for test in tests]
    suite = SubElement(
        root,
        "testsuite",
        {
            "id": str(number),
            "package": "llm-migrate",
            "name": name,
            "timestamp": document.judged_at.removesuffix("Z"),
            "hostname": "localhost",
            "tests": str(len(tests)),
            "failures": str(kinds.count("failure")),
            "errors": str(kinds.count("error")),
            "skipped": str(kinds.count("skipped")),
            "time": f"{document.span_s:.3f}",
        },
    )
    _properties(SubElement(suite, "properties"), document)
    for test in tests:
        _case(suite, name, test)
    SubElement(suite, "system-out").text = plain(document.advice) if name == "verdict" else ""
    SubElement(suite, "system-err").text = _lines(document.notes) if name == "verdict" else ""


def _properties(parent: Element, document: Document) -> None:
    run = document.run
    said = {
        "verdict": document.verdict.value,
        "code": document.code,
        "run": run["id"],
        "baseline": run["baseline"],
        "candidate": run["candidate"] or "none",
        "judged_at": document.judged_at,
        "valid_until": document.valid_until,
    }
    for name, value in said.items():
        SubElement(parent, "property", {"name": name, "value": plain(value)})


def _case(suite: Element, name: str, test: _Test) -> None:
    case = SubElement(
        suite, "testcase", {"classname": f"llm-migrate.{name}", "name": plain(test.name), "time": "0.000"}
    )
    if test.kind is None:
        return
    said = {"message": plain(test.message)} | ({} if test.kind == "skipped" else {"type": plain(test.type)})
    SubElement(case, test.kind, said).text = plain(test.text, 10_000, lines=True)


def _lines(texts: Iterable[str]) -> str:
    return "\n".join(map(plain, texts))
