"""Exchanges, items and documents made to order, all through the real comparison and judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from replay.exchange import (
    Answer,
    Arm,
    Choice,
    ErrorClass,
    Exchange,
    Failure,
    Observation,
    Outcome,
    Request,
    Timing,
    ToolCall,
    Usage,
)
from replay.prometheus import Reading
from reports.acknowledgement import Acknowledgement
from reports.compare import compare, resolve
from reports.document import Document, RunFacts, build, iso
from reports.gathered import Gathered, of_items
from reports.judge import judge
from reports.judgement import Pair
from reports.pairing import pair_up
from reports.picking import sample
from reports.policy import Policy
from reports.shown import Item, show, worst_first
from tests.reports.made import REHEARSAL, START

COUNTERS = {"passed": 1_000, "mirrored": 400, "not_sampled": 590, "stateful": 10}


def observation(
    identity: str,
    text: str,
    *,
    arm: Arm = Arm.BASELINE,
    e2e_s: float = 0.2,
    at: float = START,
    failed: str | None = None,
    finish: str | None = "stop",
) -> Observation:
    """A streamed answer of two chunks, or a failure with the message ``failed``."""
    timing = Timing(
        head_s=e2e_s / 4, ttft_s=e2e_s / 3, e2e_s=e2e_s, content_times=(e2e_s / 3, e2e_s / 2, e2e_s)
    )
    one = Observation(request_id=identity, arm=arm, at=at, outcome=Outcome.OK, status=200, timing=timing)
    if failed is not None:
        failure = Failure(
            outcome=Outcome.HTTP_ERROR, error_class=ErrorClass.SERVER, message=failed, status=500
        )
        return replace(
            one, outcome=Outcome.HTTP_ERROR, status=500, failure=failure, timing=Timing(e2e_s=e2e_s)
        )
    answer = Answer(
        choices=(Choice(text=text, finish_reason=finish),), usage=Usage(completion_tokens=3), model="m"
    )
    return replace(one, answer=answer)


def exchange(
    number: int,
    baseline: str = "All is well.",
    candidate: str = "All is well.",
    *,
    prompt: str = "How is it?",
    slower_s: float = 0.0,
    failed: str | None = None,
    repeat: bool = True,
    identity: str | None = None,
) -> Exchange:
    """Exchange ``number`` of a run of ten a second; ``failed``: the candidate's error message."""
    name, at = identity or f"r{number:05d}", START + number / 10
    body = orjson.dumps(
        {"stream": True, "messages": [{"role": "user", "content": prompt.encode(errors="replace").decode()}]}
    )
    seconds = 0.2 + 0.01 * (number % 7)
    return Exchange(
        request=Request(
            id=name,
            at=at,
            method="POST",
            path="/v1/chat/completions",
            headers=(),
            body=body,
            conversation=f"c{number}",
        ),
        baseline=observation(name, baseline, e2e_s=seconds, at=at),
        candidate=observation(
            name, candidate, arm=Arm.CANDIDATE, e2e_s=seconds + slower_s, at=at, failed=failed
        ),
        repeat=observation(name, baseline, arm=Arm.BASELINE_REPEAT, e2e_s=seconds, at=at) if repeat else None,
    )


def calling(number: int, baseline: str, candidate: str) -> Exchange:
    """Exchange ``number``, both arms call ``book`` with these arguments."""
    one = exchange(number, repeat=False)

    def call(seen: Observation | None, arguments: str) -> Observation:
        assert seen is not None and seen.answer is not None
        choice = Choice(tool_calls=(ToolCall(name="book", arguments=arguments),), finish_reason="tool_calls")
        return replace(seen, answer=replace(seen.answer, choices=(choice,)))

    return replace(one, baseline=call(one.baseline, baseline), candidate=call(one.candidate, candidate))


def item(one: Exchange) -> Item:
    """What an exchange contributes, without embeddings."""
    made = [compare(one.request, one.baseline, arm) for arm in (one.candidate, one.repeat)]
    first, again = resolve(made, None, 0.85)
    found = again if one.repeat else None
    pair = pair_up(one, first, found)
    return Item(pair=pair, comparison=first, repeat=found)


def facts(policy: Policy = REHEARSAL, **more: Any) -> RunFacts:
    """The facts of a run that ended after an hour."""
    values: dict[str, Any] = {
        "id": "20231114-221320-abcd",
        "kind": "shadow",
        "status": "ended",
        "started_at": START,
        "ended_at": START + 3600,
        "judged_at": START + 3600,
        "baseline": "vllm at http://baseline:8000",
        "candidate": "tensorrt-llm at http://candidate:8000",
        "percent": 40.0,
        "seed": 7,
        "policy": policy.model_dump(mode="json", by_alias=True),
        "valid_for": policy.valid_for,
    }
    return RunFacts(**values | more)


def document(
    exchanges: Sequence[Exchange] = (),
    policy: Policy = REHEARSAL,
    *,
    counters: dict[str, int] | None = None,
    slow_first: bool = False,
    **more: Any,
) -> Document:
    """The document on these exchanges; ``more`` are facts of the run."""
    items = [item(one) for one in exchanges]
    known = {one.request.id: one for one in exchanges}
    shown = [
        show(one, known[one.pair.id], iso(one.pair.at))
        for one in worst_first(items, policy, slow_first=slow_first)
    ]
    made = from_items(items, policy, counters=counters, shown=shown, **more)
    chosen = sample(of_items(items), 7, examples=[cause.example for cause in made.causes])
    others = [
        show(one, known[one.pair.id], iso(one.pair.at), chosen[one.pair.id])
        for one in items
        if one.pair.id in chosen and one.pair.id not in {pair.id for pair in shown}
    ]
    return replace(made, sample=tuple(others))


def from_items(
    items: Sequence[Item],
    policy: Policy = REHEARSAL,
    *,
    counters: dict[str, int] | None = None,
    shown: Sequence[Any] = (),
    readings: Mapping[Arm, Sequence[Reading]] = {},
    **more: Any,
) -> Document:
    """The document on items whose exchanges are not at hand."""
    run = facts(policy, **more)
    judgement = judge([one.pair for one in items], policy, now=run.judged_at, final=run.ended_at is not None)
    return build(
        judgement,
        of_items(items),
        run,
        counters=counters or {},
        shown=shown,
        readings=readings,
    )


def from_pairs(pairs: Sequence[Pair], policy: Policy = REHEARSAL, **more: Any) -> Document:
    """The document on measured pairs."""
    return from_items([Item(pair=pair, comparison=None) for pair in pairs], policy, **more)


def alike(count: int = 420) -> list[Exchange]:
    """Enough equal answers for GO."""
    return [exchange(number) for number in range(count)]


def wrong(count: int = 420, every: int = 4) -> list[Exchange]:
    """Numbers that differ in one answer of ``every``: ROLLBACK."""
    return [
        exchange(n, "It costs 42 euros.", "It costs 24 euros." if n % every == 0 else "It costs 42 euros.")
        for n in range(count)
    ]


def slow(count: int = 420, every: int = 5) -> list[Exchange]:
    """One answer in ``every`` two seconds late: ROLLBACK by latency."""
    return [exchange(n, slower_s=2.0 if n % every == 0 else 0.0) for n in range(count)]


def said(text: str, count: int = 40) -> Document:
    """A document in which ``text`` stands wherever a server, a model, a client or an operator can put something."""
    failing = exchange(count, failed=text or "x", prompt=text)
    exchanges = [exchange(n, text, text, prompt=text, slower_s=3.0) for n in range(count)] + [failing]
    made = document(
        exchanges,
        counters=COUNTERS,
        baseline=text,
        candidate=text,
        id=text,
        status=text,
        notes=(text,),
        acknowledgements=(Acknowledgement(at=START, who=text, why=text, code=text),),
    )
    finding = replace(made.worst[0].findings[0], message=text, category=text, evidence=text)
    return replace(
        made,
        reason=text,
        code=text,
        versions={"baseline": text, "candidate": text},
        rules=tuple(replace(rule, reason=text, method=text) for rule in made.rules),
        checks=tuple(replace(check, message=text, passed=n > 0) for n, check in enumerate(made.checks)),
        causes=tuple(
            replace(cause, message=text, category=text, example=text, evidence=text) for cause in made.causes
        ),
        worst=tuple(replace(pair, id=text, findings=(finding,)) for pair in made.worst),
        sample=tuple(replace(pair, id=text, findings=(finding,)) for pair in made.sample),
    )


def gathered(pairs: Sequence[Pair]) -> Gathered:
    """Pairs of which no comparison is at hand."""
    return of_items([Item(pair=pair, comparison=None) for pair in pairs])
