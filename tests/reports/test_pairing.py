from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from replay.exchange import (
    Answer,
    Arm,
    ErrorClass,
    Exchange,
    Failure,
    Observation,
    Outcome,
    Request,
    Timing,
    Usage,
)
from reports.judgement import Finding, Severity
from reports.pairing import differs, measure, pair_up

REQUEST = Request(
    id="r1",
    at=1_700_000_000.5,
    method="POST",
    path="/v1/chat/completions?trace=1",
    headers=(),
    body=b'{"model": "harbor-7b", "stream": true}',
    conversation="c1",
)
BASELINE = Observation(
    request_id="r1",
    arm=Arm.BASELINE,
    at=REQUEST.at,
    outcome=Outcome.OK,
    status=200,
    answer=Answer(usage=Usage(completion_tokens=3)),
    timing=Timing(head_s=0.1, ttft_s=0.2, e2e_s=0.5, content_times=(0.2, 0.3, 0.45)),
)
REFUSED = Failure(
    outcome=Outcome.HTTP_ERROR, error_class=ErrorClass.RATE_LIMITED, message="slow down", retryable=True
)
CANDIDATE = replace(BASELINE, arm=Arm.CANDIDATE, earlier=(REFUSED,), timing=Timing(ttft_s=0.3, e2e_s=0.7))


@dataclass(frozen=True)
class Compared:
    severity: Severity
    scored: bool = True
    findings: tuple[Finding, ...] = ()


def test_measuring_keeps_what_rules_are_made_of():
    found = measure(BASELINE)
    assert (found.outcome, found.e2e_s, found.ttft_s, found.output_tokens) == (Outcome.OK, 0.5, 0.2, 3)
    assert found.itl_s == pytest.approx((0.1, 0.15))


def test_measuring_nothing_is_nothing():
    assert measure(None) is None


def test_a_failure_keeps_its_class_and_reason():
    failed = replace(
        BASELINE,
        outcome=Outcome.HTTP_ERROR,
        reason="rate_limited",
        failure=REFUSED,
    )
    assert (measure(failed).error_class, measure(failed).reason) == ("rate_limited", "rate_limited")


def test_arms_are_not_swapped():
    pair = pair_up(Exchange(request=REQUEST, baseline=BASELINE, candidate=CANDIDATE))
    assert (pair.baseline.e2e_s, pair.candidate.e2e_s) == (0.5, 0.7)
    assert (pair.baseline.attempts, pair.candidate.attempts) == (1, 2)
    assert pair.repeat is None


def test_the_request_gives_time_session_stream_and_path():
    pair = pair_up(Exchange(request=REQUEST, baseline=BASELINE, candidate=CANDIDATE))
    assert (pair.id, pair.at, pair.session, pair.streamed) == ("r1", REQUEST.at, "c1", True)
    assert pair.labels == {
        "route": "/v1/chat/completions",
        "model": "harbor-7b",
        "streamed": "yes",
        "tools": "none",
        "temperature": "not set",
    }


@pytest.mark.parametrize("arm", ["baseline", "candidate"])
def test_an_arm_that_was_not_observed_was_not_sent(arm):
    seen = {"baseline": BASELINE, "candidate": CANDIDATE} | {arm: None}
    pair = pair_up(Exchange(request=REQUEST, **seen))
    assert getattr(pair, arm).outcome is Outcome.NOT_SENT


@pytest.mark.parametrize(
    ("comparison", "expected"),
    [
        (None, None),
        (Compared(Severity.EQUAL), False),
        (Compared(Severity.NOTE), False),
        (Compared(Severity.WARN), False),
        (Compared(Severity.BLOCK), True),
        (Compared(Severity.INVALID), None),
        (Compared(Severity.EQUAL, scored=False), None),
        (Compared(Severity.BLOCK, scored=False), None),
    ],
)
def test_a_user_is_served_differently_by_a_block(comparison, expected):
    assert differs(comparison) is expected


def test_the_repeat_is_compared_on_its_own():
    exchange = Exchange(request=REQUEST, baseline=BASELINE, candidate=CANDIDATE, repeat=BASELINE)
    pair = pair_up(exchange, Compared(Severity.BLOCK), Compared(Severity.EQUAL))
    assert (pair.differs, pair.repeat_differs) == (True, False)
    assert pair.repeat == pair.baseline


@pytest.mark.parametrize(
    ("body", "headers", "streamed"),
    [
        (b'{"stream": true}', (), True),
        (b'{"stream": false}', (("content-type", "text/event-stream"),), False),
        (b"{}", (("content-type", "text/event-stream"),), False),
        (b"", (("Content-Type", "text/event-stream; charset=utf-8"),), True),
        (b"", (("content-type", "application/json"),), False),
        (b"[1]", (), False),
    ],
)
def test_a_stream_is_what_was_asked_for_or_came(body, headers, streamed):
    exchange = Exchange(
        request=replace(REQUEST, body=body), baseline=replace(BASELINE, headers=headers), candidate=CANDIDATE
    )
    assert pair_up(exchange).streamed is streamed


def test_a_copy_that_was_never_meant_to_be_sent_is_not_comparable():
    withheld = replace(CANDIDATE, outcome=Outcome.NOT_SENT, reason="not_comparable.redaction")
    pair = pair_up(Exchange(request=REQUEST, baseline=BASELINE, candidate=withheld))
    assert pair.not_comparable == "not_comparable.redaction"
    assert pair_up(Exchange(request=REQUEST, baseline=BASELINE)).not_comparable is None


def beyond(
    error_class: ErrorClass = ErrorClass.BAD_REQUEST, code: str = "contract.unsupported"
) -> Observation:
    field = code == "contract.param_rejected"
    message = "Unknown field 'stream'" if field else "longer than this model allows"
    refusal = Failure(outcome=Outcome.HTTP_ERROR, error_class=error_class, message=message, code=code)
    return replace(BASELINE, outcome=Outcome.HTTP_ERROR, status=400, answer=None, failure=refusal)


@pytest.mark.parametrize(
    ("refusal", "outcome"),
    [
        (beyond(), Outcome.UNSERVED),
        (beyond(code="contract.param_rejected"), Outcome.UNSERVED),
        (beyond(ErrorClass.CONTEXT_OVERFLOW, ""), Outcome.UNSERVED),
        (beyond(code=""), Outcome.HTTP_ERROR),
        (beyond(ErrorClass.NOT_FOUND, "contract.model_unknown"), Outcome.HTTP_ERROR),
        (beyond(ErrorClass.SERVER, ""), Outcome.HTTP_ERROR),
    ],
)
def test_what_one_side_does_not_offer_is_unserved_and_no_error(refusal: Observation, outcome: Outcome):
    block = Compared(Severity.BLOCK)
    pair = pair_up(Exchange(request=REQUEST, baseline=BASELINE, candidate=refusal), block)
    assert (pair.baseline.outcome, pair.candidate.outcome) == (Outcome.OK, outcome)
    assert pair.differs is (None if outcome is Outcome.UNSERVED else True)
    turned = pair_up(Exchange(request=REQUEST, baseline=refusal, candidate=BASELINE))
    assert (turned.baseline.outcome, turned.candidate.outcome) == (outcome, Outcome.OK)


def test_what_neither_side_offers_is_the_clients_error_on_both():
    pair = pair_up(Exchange(request=REQUEST, baseline=beyond(), candidate=beyond()))
    assert pair.baseline.outcome is pair.candidate.outcome is Outcome.HTTP_ERROR


@pytest.mark.parametrize(
    ("fingerprint", "headers", "version"),
    [
        (None, (("X-LiteLLM-Model-Id", "pool-3"),), "harbor-7b pool-3"),
        (None, (("x-ms-deployment-name", "d" * 200),), "harbor-7b " + "d" * 80),
        ("fp_1", (("x-litellm-model-id", "pool-3"),), "harbor-7b fp_1"),
        (None, (("x-request-id", "r1"),), "harbor-7b"),
    ],
)
def test_which_upstream_answered_is_part_of_the_version(fingerprint, headers, version):
    answer = Answer(model="harbor-7b", fingerprint=fingerprint)
    assert measure(replace(BASELINE, answer=answer, headers=headers)).version == version


def test_a_baseline_that_answers_when_it_is_asked_again_failed_by_chance():
    refused = beyond()
    exchange = Exchange(request=REQUEST, baseline=refused, candidate=CANDIDATE, repeat=BASELINE)
    assert pair_up(exchange).baseline.outcome is Outcome.HTTP_ERROR
    assert pair_up(replace(exchange, repeat=refused)).baseline.outcome is Outcome.UNSERVED
    turned = pair_up(Exchange(request=REQUEST, baseline=BASELINE, candidate=CANDIDATE, repeat=refused))
    assert turned.repeat is not None and turned.repeat.outcome is Outcome.UNSERVED
