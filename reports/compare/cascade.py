"""The cascade: comparators in order, for one pair of answers, and then similarity for all that is left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from replay.exchange import Answer, Choice, Observation, Request
from reports.compare.asked import Asked, read
from reports.compare.emptiness import compare_emptiness
from reports.compare.extract import chosen, compare_task
from reports.compare.finish import compare_finish
from reports.compare.model import SETTLED, Case, Comparator, Comparison, Step, excerpt, other, worst
from reports.compare.reasoning import compare_reasoning
from reports.compare.refusal import compare_refusal
from reports.compare.similarity import resolve
from reports.compare.structured import compare_structured
from reports.compare.text import compare_text
from reports.compare.tools import compare_tools
from reports.compare.transport import compare_outcomes
from reports.compare.vectors import compare_vectors
from reports.compare.wire import compare_wire
from reports.judgement import Finding, Severity
from reports.policy import Extractor

__all__ = ["COMPARATORS", "compare", "resolve"]

COMPARATORS: tuple[Comparator, ...] = (
    compare_emptiness,
    compare_finish,
    compare_refusal,
    compare_reasoning,
    compare_tools,
    compare_task,
    compare_structured,
    compare_text,
)
"""In order: the first that settles ends the cascade, so that the nearest cause is named and not its consequences."""


def compare(
    request: Request,
    baseline: Observation | None,
    candidate: Observation | None,
    *,
    extractors: Sequence[Extractor] = (),
) -> Comparison:
    """Phase 1: everything that rules can say of two answers to ``request``. Never raises.

    ``None`` is an arm that was not observed. For the noise floor pass the baseline's repeat as ``candidate``.
    ``extractors``: what decides by task, ``policy.compare``; the first that matches the request is used.
    """
    try:
        steps = tuple(_steps(request, baseline, candidate, extractors))
    except Exception as error:  # noqa: BLE001 - an answer that breaks us is evidence of nothing
        steps = (_broken("compare", error),)
    findings = tuple(finding for step in steps for finding in step.findings)
    severity = worst(findings)
    blocked = severity is Severity.BLOCK
    undecided = () if blocked else tuple(step.undecided for step in steps if step.undecided)
    return Comparison(
        request_id=request.id,
        severity=severity,
        findings=findings,
        scored=all(step.scored for step in steps) and not undecided,
        undecided=undecided,
    )


def _steps(
    request: Request,
    baseline: Observation | None,
    candidate: Observation | None,
    extractors: Sequence[Extractor],
) -> Iterator[Step]:
    transport = compare_outcomes(baseline, candidate)
    yield transport
    if transport.final or baseline is None or candidate is None:
        return
    old, new = baseline.answer or Answer(), candidate.answer or Answer()
    asked = read(request.body)
    try:
        yield compare_wire(asked, baseline, candidate)
    except Exception as error:  # noqa: BLE001 - see compare()
        yield replace(_broken("compare_wire", error), settled=False)
    if old.embeddings or new.embeddings:
        yield compare_vectors(old.embeddings, new.embeddings)
        return
    if not old.choices and not new.choices:
        yield _without_choices(baseline, candidate)
        return
    if old.choices == new.choices:
        return
    yield _choice_count(old, new)
    task = chosen(extractors, request, asked)
    for pair in _paired(asked, old.choices, new.choices):
        yield from _cascade(replace(_case(asked, pair, baseline, candidate), task=task))


def _cascade(case: Case) -> Iterator[Step]:
    for comparator in COMPARATORS:
        try:
            step = comparator(case)
        except Exception as error:  # noqa: BLE001 - see compare()
            step = _broken(comparator.__name__, error)
        yield step
        if step.final:
            return


def _broken(name: str, error: Exception) -> Step:
    finding = Finding(
        comparator=name,
        category="compare.error",
        severity=Severity.INVALID,
        message=f"{name} failed on this pair: {type(error).__name__}: {excerpt(str(error))}",
    )
    return Step(findings=(finding,), settled=True, scored=False)


def _without_choices(baseline: Observation, candidate: Observation) -> Step:
    """Answers that hold nothing generated: equal bytes are equal, anything else is not for this cascade to say."""
    if baseline.raw is not None and baseline.raw == candidate.raw:
        return SETTLED
    finding = Finding(
        comparator="transport",
        category="compare.no_choices",
        severity=Severity.NOTE,
        message="neither answer holds a choice to compare",
    )
    return Step(findings=(finding,), settled=True, scored=False)


def _choice_count(old: Answer, new: Answer) -> Step:
    had, has = len(old.choices), len(new.choices)
    if had == has:
        return Step()
    side = "candidate" if has < had else "baseline"
    finding = Finding(
        comparator="choices",
        category="choices.missing",
        severity=Severity.BLOCK,
        message=f"the {side} gives {min(had, has)} of the {max(had, has)} choices that the {other(side)} gives",
        side=side,
    )
    return Step(findings=(finding,))


def _paired(
    asked: Asked, old: tuple[Choice, ...], new: tuple[Choice, ...]
) -> Iterator[tuple[Choice, Choice]]:
    """Choices of one prompt are a multiset: equal ones go together, the rest in order of their index.

    With several prompts in one request the index says which prompt is answered, and decides.
    """
    left, right = sorted(old, key=_index), sorted(new, key=_index)
    if not asked.batch and len(left) > 1:
        spare: dict[Choice, int] = {}
        for choice in right:
            spare[_bare(choice)] = spare.get(_bare(choice), 0) + 1
        left, taken = _drop(left, spare)
        right, _ = _drop(right, taken)
    yield from zip(left, right, strict=False)


def _drop(choices: Iterable[Choice], spare: dict[Choice, int]) -> tuple[list[Choice], dict[Choice, int]]:
    """The choices without those that ``spare`` has too, each as often as it has them; and what was dropped."""
    rest: list[Choice] = []
    dropped: dict[Choice, int] = {}
    for choice in choices:
        key = _bare(choice)
        if dropped.get(key, 0) < spare.get(key, 0):
            dropped[key] = dropped.get(key, 0) + 1
        else:
            rest.append(choice)
    return rest, dropped


def _index(choice: Choice) -> int:
    return choice.index


def _bare(choice: Choice) -> Choice:
    """The choice without what never matters."""
    return replace(
        choice,
        index=0,
        reasoning="",
        reasoning_field="",
        role="",
        tool_calls=tuple(replace(c, id=None) for c in choice.tool_calls),
    )


def _case(asked: Asked, pair: tuple[Choice, Choice], baseline: Observation, candidate: Observation) -> Case:
    return Case(
        asked=asked,
        baseline=pair[0],
        candidate=pair[1],
        baseline_capped=_capped(asked, baseline),
        candidate_capped=_capped(asked, candidate),
    )


def _capped(asked: Asked, seen: Observation) -> bool:
    return asked.max_tokens is not None and (seen.output_tokens or 0) >= asked.max_tokens > 0
