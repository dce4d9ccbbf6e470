"""Tool calls as a multiset of name and canonical arguments; ids and order are the backend's own business."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from replay.exchange import Choice, ToolCall
from reports.compare.asked import Asked
from reports.compare.jsonvalue import canonical, differences, parse, violations
from reports.compare.model import PASS, Case, Step, both, excerpt, odd_one, other
from reports.judgement import Finding, Severity

_MARKUP = (
    "<tool_call>",
    "<|tool_call|>",
    "<|tool_calls_section_begin|>",
    "<\uff5ctool\u2581calls\u2581begin\uff5c>",
    "<|python_tag|>",
    "[TOOL_CALLS]",
    "<function=",
    "<function_call>",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """A tool call with its arguments read."""

    name: str
    text: str
    value: Any
    problem: str | None
    key: str
    """Equal for equal calls."""
    breaches: tuple[str, ...]


def compare_tools(case: Case) -> Step:
    """BLOCK for any difference that a client which runs the calls would notice."""
    old, new = case.baseline, case.candidate
    if side := odd_one(has_markup(old.text), has_markup(new.text)):
        return Step(findings=(_markup(case, side),))
    if not old.tool_calls and not new.tool_calls:
        return PASS
    calls = _read(old.tool_calls, case.asked), _read(new.tool_calls, case.asked)
    broken = _broken(case, *calls) or _repeated_ids(case)
    findings = broken or (*_breaches(*calls), *_unlike(case, *calls))
    if not findings and old.text.strip() != new.text.strip():
        message = "equal tool calls come with different text"
        findings = (
            _finding("tools.text", message, evidence=both(old.text, new.text), severity=Severity.NOTE),
        )
    return Step(findings=findings, settled=True)


def same_calls(case: Case) -> bool:
    """Whether both sides make the same calls."""
    old, new = _read(case.baseline.tool_calls, case.asked), _read(case.candidate.tool_calls, case.asked)
    return Counter(call.key for call in old) == Counter(call.key for call in new)


def broken_arguments(choice: Choice) -> str | None:
    """The first arguments that are no JSON; ``None`` when all are."""
    return next(
        (c.arguments for c in choice.tool_calls if c.arguments.strip() and parse(c.arguments).problem), None
    )


def has_markup(text: str) -> bool:
    """Whether the text holds a tool call that no parser took out."""
    return any(mark in text for mark in _MARKUP)


def _read(calls: Sequence[ToolCall], asked: Asked) -> tuple[_Call, ...]:
    return tuple(_call(call, asked) for call in calls)


def _call(call: ToolCall, asked: Asked) -> _Call:
    """A call without arguments is sent as an empty text by some servers and as ``{}`` by others."""
    schema = asked.tools.get(call.name, {})
    parsed = parse(call.arguments) if call.arguments.strip() else parse("{}")
    sound = parsed.problem is None
    return _Call(
        name=call.name,
        text=call.arguments,
        value=parsed.value,
        problem=parsed.problem,
        key=f"{call.name}({canonical(parsed.value, schema) if sound else call.arguments})",
        breaches=violations(parsed.value, {"type": "object", **schema}) if sound else (),
    )


def _markup(case: Case, side: str) -> Finding:
    message = f"tool-call markup was left in the {side}'s text; its tool parser is probably off"
    evidence = both(case.baseline.text, case.candidate.text)
    return _finding("tools.unparsed_markup", message, side=side, evidence=evidence)


def _broken(case: Case, old: Sequence[_Call], new: Sequence[_Call]) -> tuple[Finding, ...]:
    """Arguments that are no JSON, on one side alone."""
    bad_old, bad_new = _first_bad(old), _first_bad(new)
    side = odd_one(bad_old is not None, bad_new is not None)
    bad = bad_new or bad_old
    if side is None or bad is None:
        return ()
    cut = case.candidate_capped if side == "candidate" else case.baseline_capped
    category = "tools.truncated_arguments" if cut else "tools.arguments_invalid_json"
    how = "were cut off at the token limit" if cut else f"are not JSON ({bad.problem})"
    message = f"the {side}'s arguments of {excerpt(bad.name, 60)} {how}"
    return (_finding(category, message, side=side, evidence=excerpt(bad.text)),)


def _first_bad(calls: Sequence[_Call]) -> _Call | None:
    return next((call for call in calls if call.problem), None)


def _repeated_ids(case: Case) -> tuple[Finding, ...]:
    side = odd_one(_repeats_ids(case.baseline), _repeats_ids(case.candidate))
    message = f"the {side} gives two calls of one answer the same id"
    return (_finding("tools.duplicate_id", message, side=side),) if side else ()


def _repeats_ids(choice: Choice) -> bool:
    ids = [call.id for call in choice.tool_calls if call.id]
    return len(ids) != len(set(ids))


def _breaches(old: Sequence[_Call], new: Sequence[_Call]) -> tuple[Finding, ...]:
    """Arguments that break the request's own schema: BLOCK on one side alone, WARN on both."""
    bad_old = next((call for call in old if call.breaches), None)
    bad = next((call for call in new if call.breaches), None) or bad_old
    if bad is None:
        return ()
    side = odd_one(bad_old is not None, any(call.breaches for call in new))
    whose = f"the {side}'s arguments" if side else "both sides' arguments"
    message = (
        f"{whose} of {excerpt(bad.name, 60)} break the tool's schema: {excerpt('; '.join(bad.breaches))}"
    )
    severity = Severity.BLOCK if side else Severity.WARN
    return (
        _finding(
            "tools.schema_violation",
            message,
            side=side or "pair",
            evidence=excerpt(bad.text),
            severity=severity,
        ),
    )


def _unlike(case: Case, old: Sequence[_Call], new: Sequence[_Call]) -> tuple[Finding, ...]:
    """Calls without an equal on the other side, explained from the closest to the farthest."""
    left, right = _without(old, new), _without(new, old)
    findings = [_arguments(case, *pair) for pair in _by_name(left, right)]
    names = zip(list(left), list(right), strict=False)
    findings += [_name(was, now) for was, now in names]
    paired = min(len(left), len(right))
    findings += [_alone("baseline", case, call) for call in left[paired:]]
    findings += [_alone("candidate", case, call) for call in right[paired:]]
    return tuple(findings[:8])


def _without(calls: Sequence[_Call], others: Sequence[_Call]) -> list[_Call]:
    spare = Counter(call.key for call in others)
    rest = []
    for call in calls:
        if spare[call.key]:
            spare[call.key] -= 1
        else:
            rest.append(call)
    return rest


def _by_name(left: list[_Call], right: list[_Call]) -> Iterator[tuple[_Call, _Call]]:
    """Takes calls of one name out of both lists, in order."""
    waiting: dict[str, deque[_Call]] = {}
    for call in right:
        waiting.setdefault(call.name, deque()).append(call)
    pairs, rest = [], []
    for call in left:
        queue = waiting.get(call.name)
        if queue:
            pairs.append((call, queue.popleft()))
        else:
            rest.append(call)
    left[:] = rest
    right[:] = [call for queue in waiting.values() for call in queue]
    return iter(pairs)


def _arguments(case: Case, was: _Call, now: _Call) -> Finding:
    schema = case.asked.tools.get(was.name, {})
    places = differences(was.value, now.value, schema)
    where = "; ".join(str(place) for place in places) or "the texts differ and neither is JSON"
    message = f"arguments of {excerpt(was.name, 60)} differ at {excerpt(where, 300)}"
    return _finding("tools.arguments", message, evidence=both(was.text, now.text))


def _name(was: _Call, now: _Call) -> Finding:
    message = f"the candidate calls {excerpt(now.name, 60)} where the baseline calls {excerpt(was.name, 60)}"
    return _finding("tools.name", message, side="candidate")


def _alone(side: str, case: Case, call: _Call) -> Finding:
    """A call of one side that the other does not make; ``side`` makes it."""
    missing = side == "baseline"
    silent = case.candidate if missing else case.baseline
    instead = "does not make this call" if silent.tool_calls else "answers in text"
    message = f"the {side} calls {excerpt(call.name, 60)}, the {other(side)} {instead}"
    evidence = both(call.text, silent.text) if missing else both(silent.text, call.text)
    category = "tools.missing" if missing else "tools.extra"
    return _finding(category, message, side="candidate", evidence=evidence)


def _finding(
    category: str,
    message: str,
    *,
    side: str = "pair",
    evidence: str = "",
    severity: Severity = Severity.BLOCK,
) -> Finding:
    return Finding(
        comparator="tools",
        category=category,
        severity=severity,
        message=message,
        side=side,
        evidence=evidence,
    )
