"""From stored exchanges to pairs: the numbers of each arm, and whether the answers would serve a user differently."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Protocol

import orjson

from replay.exchange import Arm, Choice, Exchange, Observation, Outcome, Request
from replay.failures import beyond
from reports.compare.asked import Asked, contract
from reports.costing import TokenPrice, request_usd
from reports.judgement import Finding, Measured, Pair, Severity, Traits
from reports.slicing import has_system_prompt, labels, prompt_of
from reports.traits import traits_of

NOT_COMPARABLE = "not_comparable"
"""A reason that starts with this word marks a pair whose answers say nothing about each other."""
_LONGEST = 80
"""Of a name that a server gives itself."""
_ROUTES = ("x-litellm-model-id", "x-ms-deployment-name", "x-inference-provider", "x-portkey-provider")
"""Headers by which a relay says where it sent a request: LiteLLM's proxy, Azure OpenAI, Hugging Face's router, Portkey."""
_UNSENT = Measured(outcome=Outcome.NOT_SENT, reason="not observed")


class Compared(Protocol):
    """What a comparison of two answers has to say here."""

    @property
    def severity(self) -> Severity:
        """The worst finding."""

    @property
    def scored(self) -> bool:
        """Whether every comparator that was needed could say something."""

    @property
    def findings(self) -> Sequence[Finding]:
        """What every comparator said."""


Prices = Mapping[Arm, TokenPrice]
"""What the arm's backend takes for tokens."""


def measure(
    observation: Observation | None, traits: Traits | None = None, price: TokenPrice | None = None
) -> Measured | None:
    """The numbers of one observation, whose answer has these ``traits``; ``None`` when there was none."""
    if observation is None:
        return None
    timing, failure = observation.timing, observation.failure
    return Measured(
        outcome=observation.outcome,
        error_class=failure.error_class if failure else None,
        e2e_s=timing.e2e_s,
        ttft_s=timing.ttft_s,
        itl_s=tuple(later - earlier for earlier, later in pairwise(timing.content_times)),
        output_tokens=observation.output_tokens,
        prompt_tokens=_prompt_tokens(observation),
        cost_usd=_cost(observation, price),
        cached=_cached(observation),
        version=_version(observation),
        attempts=observation.attempts,
        reason=observation.reason,
        traits=traits,
    )


def _prompt_tokens(observation: Observation) -> int | None:
    usage = observation.answer.usage if observation.answer else None
    return None if usage is None else usage.prompt_tokens or None


def _cost(observation: Observation, price: TokenPrice | None) -> float | None:
    usage = observation.answer.usage if observation.answer else None
    if usage is None or price is None:
        return None
    return request_usd(price, usage.prompt_tokens, usage.completion_tokens, _cached(observation))


def _version(observation: Observation) -> str | None:
    """Model and deployment as the answer states them; where its body does not say which deployment, as its headers do."""
    answer = observation.answer
    if answer is None:
        return None
    said = (answer.model, answer.fingerprint or _routed(observation))
    return " ".join(part[:_LONGEST] for part in said if part) or None


def _routed(observation: Observation) -> str | None:
    found = {name.lower(): value for name, value in observation.headers}
    return next((found[name] for name in _ROUTES if found.get(name)), None)


def _cached(observation: Observation) -> float | None:
    usage = observation.answer.usage if observation.answer else None
    if usage is None or usage.cached_tokens is None or not usage.prompt_tokens:
        return None
    return min(1.0, max(0.0, usage.cached_tokens / usage.prompt_tokens))


def differs(comparison: Compared | None) -> bool | None:
    """Whether a user would be served differently: a BLOCK finding. ``None`` when it was not scored, or is INVALID."""
    if comparison is None or not comparison.scored or comparison.severity is Severity.INVALID:
        return None
    return comparison.severity is Severity.BLOCK


def blamed(comparison: Compared | None) -> tuple[str, ...]:
    """The comparators that call the answers different, in order of name."""
    found = comparison.findings if comparison is not None and differs(comparison) else ()
    return tuple(sorted({one.comparator for one in found if one.severity is Severity.BLOCK}))


def pair_up(
    exchange: Exchange,
    comparison: Compared | None = None,
    repeat: Compared | None = None,
    prices: Prices | None = None,
) -> Pair:
    """The pair of an exchange; ``comparison`` is candidate against baseline, ``repeat`` the baseline against itself.

    An arm that was not observed is NOT_SENT: a request counts from the moment it is dispatched.
    """
    request = exchange.request
    body = _body(request)
    asked, prices = contract(body), prices or {}
    paid = prices.get(Arm.BASELINE)
    old, new, again = _traits(asked, exchange.baseline, exchange.candidate, exchange.repeat)
    baseline = measure(exchange.baseline, old, paid) or _UNSENT
    candidate = measure(exchange.candidate, new, prices.get(Arm.CANDIDATE)) or _UNSENT
    repeated = measure(exchange.repeat, again, paid)
    pair = Pair(
        id=request.id,
        at=request.at,
        baseline=_unserved(baseline) if _refuses(exchange, body) else baseline,
        candidate=_unserved(candidate) if _lacks(exchange.candidate, exchange.baseline, body) else candidate,
        repeat=_unserved(repeated)
        if repeated and _lacks(exchange.repeat, exchange.baseline, body)
        else repeated,
        not_comparable=_not_comparable(exchange.candidate),
        session=request.conversation,
        streamed=_streamed(exchange, asked),
        prompt=prompt_of(body),
        system_prompt=has_system_prompt(body),
        labels=labels(request.path, body) | ({"side": request.side.value} if request.side else {}),
    )
    return decided(pair, comparison, repeat)


def _traits(asked: Asked, *arms: Observation | None) -> list[Traits | None]:
    """The traits of each arm's answer. Most answers are the same as the baseline's; these are looked at once."""
    found: list[Traits | None] = []
    looked: dict[tuple[Choice, ...], Traits | None] = {}
    for arm in arms:
        choices = arm.answer.choices if arm and arm.answer else ()
        if choices not in looked:
            looked[choices] = traits_of(asked, choices)
        found.append(looked[choices])
    return found


def decided(pair: Pair, comparison: Compared | None, repeat: Compared | None) -> Pair:
    """The pair with what its two comparisons say, once they are made. A refusal of what is not offered is no difference."""
    if Outcome.UNSERVED in (pair.baseline.outcome, pair.candidate.outcome):
        comparison = None
    if pair.repeat and pair.repeat.outcome is Outcome.UNSERVED:
        repeat = None
    return replace(
        pair,
        differs=differs(comparison),
        repeat_differs=differs(repeat),
        differs_by=blamed(comparison),
        repeat_differs_by=blamed(repeat),
    )


def _unserved(side: Measured) -> Measured:
    return replace(side, outcome=Outcome.UNSERVED)


def _lacks(seen: Observation | None, other: Observation | None, asked: Any) -> bool:
    """Whether one side refuses what the ``other`` answered because it does not offer it."""
    if seen is None or seen.failure is None or other is None or other.outcome is not Outcome.OK:
        return False
    return beyond(seen.failure, asked)


def _refuses(exchange: Exchange, asked: Any) -> bool:
    """Whether the baseline does not offer what the candidate answered; not where it answered when it was asked again."""
    again = exchange.repeat
    once = again is not None and (again.failure is None or not beyond(again.failure, asked))
    return not once and _lacks(exchange.baseline, exchange.candidate, asked)


def _not_comparable(candidate: Observation | None) -> str | None:
    reason = candidate.reason if candidate else ""
    return reason if reason.startswith(NOT_COMPARABLE) else None


def _streamed(exchange: Exchange, asked: Asked) -> bool:
    """Whether the client asked for a stream; where the body is no longer kept, whether an answer came as one."""
    if asked.stream is not None:
        return asked.stream
    return any(map(_is_event_stream, (exchange.baseline, exchange.candidate)))


def _body(request: Request) -> Any:
    try:
        return orjson.loads(request.body)
    except orjson.JSONDecodeError:
        return None


def _is_event_stream(observation: Observation | None) -> bool:
    headers = observation.headers if observation else ()
    return any(
        name.lower() == "content-type" and value.startswith("text/event-stream") for name, value in headers
    )
