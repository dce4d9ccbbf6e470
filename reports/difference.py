"""Two answers to one request, judged alone: what differs and how grave it is, as a value, as JSON and as text. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from replay.exchange import JSON, Observation
from reports.compare import Comparison
from reports.compare.model import rank, worst
from reports.judgement import Finding, Severity
from reports.render.text import clip, plain, wrap

SCHEMA = {"name": "llm-migrate.diff", "version": 1}
_COLOURS = {
    Severity.EQUAL: "32",
    Severity.NOTE: "32",
    Severity.WARN: "33",
    Severity.BLOCK: "31",
    Severity.INVALID: "35",
}
MEANING = {
    Severity.EQUAL: "the answers serve a client alike",
    Severity.NOTE: "the answers serve a client alike; what differs is noted",
    Severity.WARN: "something differs that a client may stumble over",
    Severity.BLOCK: "a client would be served differently",
    Severity.INVALID: "nothing can be concluded from this pair",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The outcome of one pair; findings gravest first."""

    outcome: Severity
    findings: tuple[Finding, ...]
    baseline: JSON
    """The decoded answer: text, reasoning, tool_calls, finish_reason, usage, error, and how it came."""
    candidate: JSON


def difference(comparison: Comparison, baseline: Observation, candidate: Observation) -> Difference:
    """What a comparison of two answers amounts to. A pair that similarity alone could decide, and did not, is INVALID."""
    findings = list(comparison.findings)
    if comparison.undecided:
        findings.append(
            Finding(
                comparator="text",
                category="text.not_compared",
                severity=Severity.INVALID,
                message="the texts differ and only embedding similarity could tell how much; it was not computed",
            )
        )
    findings.sort(key=lambda finding: -rank(finding.severity))
    return Difference(
        outcome=worst(findings),
        findings=tuple(findings),
        baseline=decoded(baseline),
        candidate=decoded(candidate),
    )


def decoded(seen: Observation) -> JSON:
    """An observation as a program may read it; choices beyond the first are under ``choices``."""
    answer = seen.answer
    first = answer.first if answer else None
    return {
        "status": seen.status,
        "outcome": seen.outcome.value,
        "text": first.text if first else "",
        "reasoning": first.reasoning if first else "",
        "refusal": first.refusal if first else "",
        "tool_calls": [asdict(call) for call in first.tool_calls] if first else [],
        "finish_reason": first.finish_reason if first else None,
        "usage": asdict(answer.usage) if answer and answer.usage else None,
        "error": None
        if seen.failure is None
        else {
            "class": seen.failure.error_class.value,
            "fault": seen.failure.error_class.fault.value,
            "retryable": seen.failure.retryable,
            "retry_after_s": seen.failure.retry_after_s,
            "status": seen.failure.status,
            "message": seen.failure.message,
        },
        "model": answer.model if answer else None,
        "choices": [asdict(choice) for choice in answer.choices[1:]] if answer else [],
        "oddities": [asdict(oddity) for oddity in answer.oddities] if answer else [],
        "timing": {
            # Without a timing file everything came at 0, which is no time.
            "ttft_s": seen.timing.ttft_s or None,
            "e2e_s": seen.timing.e2e_s or None,
        },
    }


def as_json(found: Difference) -> JSON:
    """The machine format: schema, outcome, findings, and both decoded answers."""
    return {
        "schema": dict(SCHEMA),
        "outcome": found.outcome.value,
        "findings": as_findings(found.findings),
        "baseline": found.baseline,
        "candidate": found.candidate,
    }


def as_findings(findings: Iterable[Finding]) -> list[JSON]:
    """Findings as a program may read them."""
    return [asdict(finding) | {"severity": finding.severity.value} for finding in findings]


def as_text(found: Difference, *, width: int = 100, colour: bool = False) -> str:
    """For a person: the outcome, a line or two a finding, then what each side said."""
    lines = [f" {paint(found.outcome, colour)}  {MEANING[found.outcome]}", ""]
    for finding in found.findings:
        lines += finding_lines(finding, width, colour)
    for name, side in (("baseline", found.baseline), ("candidate", found.candidate)):
        lines += ["", *_side(name, side, width)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def paint(severity: Severity, colour: bool) -> str:
    """Its word, in its colour where there are colours."""
    return f"\x1b[1;{_COLOURS[severity]}m{severity.value}\x1b[0m" if colour else severity.value


def finding_lines(finding: Finding, width: int, colour: bool) -> list[str]:
    """One finding, its evidence below it."""
    first, *rest = wrap(f"{finding.category}: {finding.message}", width - 10)
    lines = [f"  {paint(finding.severity, colour)}{' ' * (8 - len(finding.severity.value))}{first}"]
    lines += [f"{'':10}{line}" for line in rest]
    if finding.evidence:
        lines.append(f"{'':10}{clip(finding.evidence, width - 10)}")
    return lines


def _side(name: str, side: JSON, width: int) -> list[str]:
    usage = side["usage"] or {}
    counts = (usage.get("prompt_tokens"), usage.get("completion_tokens"))
    tokens = "no usage" if None in counts else f"{counts[0]} + {counts[1]} tokens"
    finish = f"finish {plain(str(side['finish_reason']), 40)}"
    times = (
        "" if side["timing"]["ttft_s"] is None else f", first token {side['timing']['ttft_s'] * 1e3:.0f} ms"
    )
    lines = [f"  {name:<10}status {side['status']}, {finish}, {tokens}{times}"]
    if side["error"]:
        told = side["error"]
        again = "a retry may help" if told["retryable"] else "a retry does not help"
        lines += wrap(
            f"{told['class']} ({told['fault']}), {again}: {told['message']}",
            width,
            first=" " * 12,
            rest=" " * 12,
        )
    for key in ("reasoning", "text", "refusal"):
        if side[key]:
            label = "" if key == "text" else f"{key}: "
            shown = wrap(label + plain(side[key], 1_200), width, first=" " * 12, rest=" " * 12)
            lines += shown[:8] + (["            …"] if len(shown) > 8 else [])
    for call in side["tool_calls"]:
        lines.append(" " * 12 + clip(f"calls {call['name']}({call['arguments']})", width - 12))
    return lines
