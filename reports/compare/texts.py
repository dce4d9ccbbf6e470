"""Answers from anywhere: texts, or response bodies as JSON objects, compared without a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from replay.decoding import observe
from replay.exchange import JSON, Answer, Arm, Choice, Ending, Observation, Outcome, Recording, Request
from replay.values import compact
from reports.compare.cascade import compare, resolve
from reports.compare.model import Comparison, Embed
from reports.judgement import Severity
from reports.policy import DisagreementRule, Extractor

Said = str | JSON
"""An answer's text, or the body of a response: chat completions, completions, Responses, messages or an error."""

FLOOR = DisagreementRule().similarity
"""Lowest cosine at which differing texts count as reworded."""
_PATH = "/v1/chat/completions"
_NO_BODY = "envelope.choices_missing"
_BATCH = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """Two answers to one request, and the baseline's second answer where there is one."""

    id: str = "pair"
    baseline: Said
    candidate: Said
    repeat: Said | None = None
    """The baseline asked again, for the noise floor."""
    request: JSON | None = None
    """The request's body: its tools and ``response_format`` say what is right."""


Look = tuple[Comparison, Comparison | None]
"""Of the candidate, and of the baseline's repeat; both against the baseline."""


def compare_texts(
    baseline: Said,
    candidate: Said,
    *,
    embed: Embed | None = None,
    floor: float = FLOOR,
    request: JSON | None = None,
    extractors: Sequence[Extractor] = (),
) -> Comparison:
    """Whether two answers would serve a user differently: severity BLOCK when they would.

    Each is a text, or a response body as a JSON object. ``embed`` (texts to unit vectors) decides what rules cannot;
    without it such a pair stays unscored (``scored`` is False). ``floor``: the lowest cosine of a rewording.
    ``extractors``: what decides by task, as ``policy.compare`` of a configuration. Raises
    ValueError for an object that is no response body, TypeError for anything else.
    """
    pair = Texts(baseline=baseline, candidate=candidate, request=request)
    return decide([look(pair, extractors)], embed, floor)[0][0]


def compare_many(
    pairs: Iterable[Texts],
    *,
    embed: Embed | None = None,
    floor: float = FLOOR,
    extractors: Sequence[Extractor] = (),
) -> Iterator[Look]:
    """The same for any number of pairs, in order and in constant memory; ``embed`` is called once for a few hundred."""
    rest = iter(pairs)
    while batch := list(islice(rest, _BATCH)):
        yield from decide([look(pair, extractors) for pair in batch], embed, floor)


def look(pair: Texts, extractors: Sequence[Extractor] = ()) -> Look:
    """What rules alone say of a pair. Raises as ``compare_texts`` does."""
    request = Request(
        id=pair.id,
        at=0.0,
        method="POST",
        path=_PATH,
        headers=(),
        body=b"" if pair.request is None else compact(pair.request).encode("utf-8", "surrogatepass"),
        conversation="",
    )
    first = _compared(request, pair.baseline, pair.candidate, extractors)
    if pair.repeat is None:
        return first, None
    return first, _compared(request, pair.baseline, pair.repeat, extractors)


def decide(looks: Iterable[Look], embed: Embed | None, floor: float) -> list[Look]:
    """What similarity adds, in one call of ``embed``."""
    before = list(looks)
    repeats = [again for _, again in before if again is not None]
    resolved = iter(resolve([*(first for first, _ in before), *repeats], embed, floor))
    firsts = list(islice(resolved, len(before)))
    return [
        (first, None if again is None else next(resolved))
        for first, (_, again) in zip(firsts, before, strict=True)
    ]


def _compared(
    request: Request, baseline: Said, candidate: Said, extractors: Sequence[Extractor]
) -> Comparison:
    if isinstance(baseline, str) and baseline == candidate:
        return Comparison(request_id=request.id, severity=Severity.EQUAL)
    old, new = _observed(request, baseline, Arm.BASELINE), _observed(request, candidate, Arm.CANDIDATE)
    if isinstance(baseline, str) is not isinstance(candidate, str):
        old, new = _bare(old), _bare(new)
    return compare(request, old, new, extractors=extractors)


def _observed(request: Request, said: Said, arm: Arm) -> Observation:
    if isinstance(said, str):
        answer = Answer(choices=(Choice(text=said, role="assistant"),))
        return Observation(request_id=request.id, arm=arm, at=0.0, outcome=Outcome.OK, answer=answer)
    if not isinstance(said, dict):
        raise TypeError(f"the {arm.value} is neither a text nor a response body but {type(said).__name__}")
    seen = observe(_recorded(said), request_id=request.id, arm=arm, at=0.0, path=_PATH)
    if seen.failure is not None and seen.failure.code == _NO_BODY:
        raise ValueError(
            f"the {arm.value} is an object without choices, output, content or error: no response body"
        )
    return seen


def _recorded(body: JSON) -> Recording:
    return Recording(
        sent_at=0.0,
        status=200,
        headers=(("Content-Type", "application/json"),),
        chunks=((0.0, compact(body).encode("utf-8", "surrogatepass")),),
        ended_at=0.0,
        ending=Ending.COMPLETE,
    )


def _bare(seen: Observation) -> Observation:
    """What a body says beside a text: its choices. A text tells no usage, no finish reason and nothing of the wire."""
    if seen.answer is None:
        return seen
    choices = tuple(
        replace(choice, finish_reason=None, reasoning="", reasoning_field="", role="assistant")
        for choice in seen.answer.choices
    )
    return replace(
        seen, answer=Answer(choices=choices, error=seen.answer.error, embeddings=seen.answer.embeddings)
    )
