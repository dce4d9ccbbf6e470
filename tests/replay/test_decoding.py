"""What recordings of OpenAI-compatible answers mean."""

from __future__ import annotations

import gzip
import itertools

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.exchange import Arm, Ending, ErrorClass, Outcome, ToolCall, Usage
from tests.replay.wire import DONE, JSON_TYPE, SSE, codes, delta, event, recording, seen

USAGE = {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}
STREAM = [
    delta(role="assistant", content=""),
    delta(content="caf\u00e9"),
    delta(content=" bar"),
    delta(finish="stop"),
    event({"choices": [], "usage": USAGE}),
    DONE,
]


def test_a_stream_becomes_text_finish_usage_and_times() -> None:
    got = seen(recording(STREAM))
    assert got.outcome is Outcome.OK
    assert got.answer is not None
    assert (got.answer.first.text, got.answer.first.finish_reason) == ("caf\u00e9 bar", "stop")
    assert got.answer.usage == Usage(prompt_tokens=11, completion_tokens=3, total_tokens=14)
    assert got.timing.content_times == pytest.approx((0.03, 0.04))


def test_the_role_prelude_does_not_stop_the_ttft_clock() -> None:
    timing = seen(recording(STREAM)).timing
    assert timing.head_s == pytest.approx(0.01)
    assert timing.ttft_s == pytest.approx(0.03)
    assert timing.e2e_s == pytest.approx(0.07)


@given(st.lists(st.integers(0, len(b"".join(STREAM))), max_size=10))
def test_any_chunking_of_a_stream_gives_the_same_answer(cuts: list[int]) -> None:
    whole = b"".join(STREAM)
    edges = [0, *sorted(cuts), len(whole)]
    pieces = [whole[a:b] for a, b in itertools.pairwise(edges) if a < b]
    assert seen(recording(pieces)).answer == seen(recording(STREAM)).answer


def test_a_body_becomes_the_same_answer_and_has_no_ttft() -> None:
    body = {
        "model": "m",
        "choices": [{"index": 0, "message": {"content": "hi"}, "finish_reason": "stop"}],
        "usage": USAGE,
    }
    got = seen(recording([orjson.dumps(body)], headers=JSON_TYPE))
    assert got.answer is not None and got.answer.first.text == "hi" and got.answer.model == "m"
    assert got.timing.ttft_s is None and got.timing.e2e_s == pytest.approx(0.02)
    assert got.output_tokens == 3


def test_tool_call_pieces_are_joined_by_index() -> None:
    first = {
        "index": 0,
        "id": "a",
        "type": "function",
        "function": {"name": "get_tide", "arguments": '{"port":'},
    }
    second = {"index": 0, "function": {"arguments": '"Hull"}'}}
    other = {"index": 1, "id": "b", "function": {"name": "now", "arguments": "{}"}}
    got = seen(
        recording(
            [
                delta(tool_calls=[first]),
                delta(tool_calls=[other]),
                delta(tool_calls=[second]),
                delta(finish="tool_calls"),
                DONE,
            ]
        )
    )
    assert got.answer is not None
    assert got.answer.first.tool_calls == (
        ToolCall(name="get_tide", arguments='{"port":"Hull"}', id="a"),
        ToolCall(name="now", arguments="{}", id="b"),
    )


def test_calls_without_index_are_told_apart_by_id() -> None:
    calls = [{"id": i, "function": {"name": i, "arguments": "{}"}} for i in ("x", "y")]
    got = seen(
        recording(
            [delta(tool_calls=[calls[0]]), delta(tool_calls=[calls[1]]), delta(finish="tool_calls"), DONE]
        )
    )
    assert got.answer is not None
    assert [call.name for call in got.answer.first.tool_calls] == ["x", "y"]
    assert "tools.index_missing" in codes(got)


def test_interleaved_choices_are_assembled_apart() -> None:
    pieces = [
        delta(1, content="elm"),
        delta(0, content="a"),
        delta(1, finish="stop"),
        delta(0, "stop", content="sh"),
        DONE,
    ]
    got = seen(recording(pieces))
    assert got.answer is not None
    assert [choice.text for choice in got.answer.choices] == ["ash", "elm"]


def test_an_error_inside_a_200_stream_is_a_failure_of_the_class_it_states() -> None:
    error = event({"error": {"message": "worker lost", "type": "InternalServerError", "code": 500}})
    got = seen(recording([delta(content="The pump"), error, DONE]))
    assert got.outcome is Outcome.HTTP_ERROR
    assert got.failure is not None and got.failure.error_class is ErrorClass.SERVER
    assert got.failure.message == "worker lost"


@pytest.mark.parametrize(
    ("pieces", "outcome", "error_class"),
    [
        ([delta(content="all clear")], Outcome.PROTOCOL_ERROR, ErrorClass.RESET),
        ([b"data: : still working\n\n", *STREAM], Outcome.PROTOCOL_ERROR, ErrorClass.MALFORMED),
        ([b"data: {\xff\xfe\n\n", DONE], Outcome.PROTOCOL_ERROR, ErrorClass.MALFORMED),
        ([], Outcome.PROTOCOL_ERROR, ErrorClass.MALFORMED),
    ],
)
def test_broken_streams_are_protocol_errors(
    pieces: list[bytes], outcome: Outcome, error_class: ErrorClass
) -> None:
    got = seen(recording(pieces))
    assert got.failure is not None
    assert (got.outcome, got.failure.error_class) == (outcome, error_class)


def test_done_without_finish_reason_is_an_answer() -> None:
    got = seen(recording([delta(content="all clear"), DONE]))
    assert got.outcome is Outcome.OK and got.answer is not None and got.answer.first.finish_reason is None


def test_finish_reason_without_done_is_an_answer_and_noted_also_after_a_reset() -> None:
    pieces = [delta(content="x"), delta(finish="stop")]
    for ending in (Ending.COMPLETE, Ending.RESET, Ending.CLIENT_LEFT):
        got = seen(recording(pieces, ending=ending))
        assert got.outcome is Outcome.OK and got.answer is not None
        assert "stream.done_missing" in codes(got)


@pytest.mark.parametrize(
    ("ending", "outcome"),
    [
        (Ending.TIMEOUT, Outcome.TIMEOUT),
        (Ending.RESET, Outcome.PROTOCOL_ERROR),
        (Ending.CLIENT_LEFT, Outcome.CLIENT_CANCELLED),
        (Ending.OVERSIZE, Outcome.PROTOCOL_ERROR),
    ],
)
def test_an_exchange_that_ends_early_is_named_by_its_ending(ending: Ending, outcome: Outcome) -> None:
    assert seen(recording([delta(content="x")], ending=ending)).outcome is outcome


def test_nothing_arrived_at_all() -> None:
    got = seen(recording([], status=None, ending=Ending.CONNECT_FAILED))
    assert got.outcome is Outcome.CONNECT_ERROR and got.failure is not None and got.failure.retryable


def test_a_production_answer_over_our_limit_is_our_loss_not_the_baselines_fault() -> None:
    got = seen(recording([delta(content="x")], ending=Ending.OVERSIZE), arm=Arm.BASELINE)
    assert (got.outcome, got.reason) == (Outcome.MIRROR_DROPPED, "answer_too_large")


@pytest.mark.parametrize(
    ("status", "body", "error_class", "message"),
    [
        (
            400,
            b'{"error":{"message":"temperature must be non-negative","code":400}}',
            ErrorClass.BAD_REQUEST,
            "temperature",
        ),
        (
            400,
            b'{"object":"error","message":"temperature must be >= 0","code":400}',
            ErrorClass.BAD_REQUEST,
            "temperature",
        ),
        (400, b'{"error":"1 validation error: temperature"}', ErrorClass.BAD_REQUEST, "temperature"),
        (401, b'{"error":"Unauthorized"}', ErrorClass.AUTH, "Unauthorized"),
        (400, b'{"error":{"message":"maximum context is 8192 tokens"}}', ErrorClass.CONTEXT_OVERFLOW, "8192"),
        (
            400,
            b'{"object":"error","message":"The input (8193 tokens) is longer than this model allows"}',
            ErrorClass.CONTEXT_OVERFLOW,
            "8193",
        ),
        (404, b'{"error":{"message":"The model does not exist"}}', ErrorClass.NOT_FOUND, "model"),
        (429, b"", ErrorClass.RATE_LIMITED, "429"),
        (503, b'{"error":{"message":"engine busy"}}', ErrorClass.OVERLOADED, "busy"),
        (502, b"<html><body>bad gateway</body></html>", ErrorClass.GATEWAY, "bad gateway"),
        (500, b"[1]", ErrorClass.SERVER, "[1]"),
        (500, b"", ErrorClass.SERVER, "HTTP 500"),
    ],
)
def test_error_envelopes_of_every_dialect(
    status: int, body: bytes, error_class: ErrorClass, message: str
) -> None:
    got = seen(recording([body] if body else [], status=status, headers=JSON_TYPE))
    assert got.outcome is Outcome.HTTP_ERROR and got.failure is not None
    assert got.failure.error_class is error_class and message in got.failure.message


@pytest.mark.parametrize("body", [b"<html>login</html>", b"[]", b"", b'{"ok":true}', b"[" * 100_000])
def test_a_200_that_is_no_answer_is_malformed(body: bytes) -> None:
    got = seen(recording([body] if body else [], headers=JSON_TYPE))
    assert got.failure is not None and got.failure.error_class is ErrorClass.MALFORMED


def test_other_paths_need_no_choices() -> None:
    assert seen(recording([b'{"data":[]}'], headers=JSON_TYPE), path="/v1/models").outcome is Outcome.OK


def test_gzip_is_undone_chunk_by_chunk() -> None:
    packed = gzip.compress(b"".join(STREAM))
    pieces = [packed[:20], packed[20:]]
    got = seen(recording(pieces, headers=(*SSE, ("Content-Encoding", "gzip"))))
    assert got.answer is not None and got.answer.first.text == "caf\u00e9 bar"


def test_nan_in_logprobs_does_not_lose_the_chunk() -> None:
    logprobs = b'{"content":[{"logprob":-Infinity}]}'
    choice = b'{"index":0,"delta":{"content":"a"},"logprobs":' + logprobs + b',"finish_reason":"stop"}'
    odd = b'data: {"choices":[' + choice + b"]}\n\n"
    got = seen(recording([odd, DONE]))
    assert got.answer is not None and got.answer.first.text == "a"


@given(st.binary(max_size=400), st.sampled_from([SSE, JSON_TYPE, ()]), st.sampled_from(list(Ending)))
def test_no_bytes_make_it_raise(data: bytes, headers: tuple[tuple[str, str], ...], ending: Ending) -> None:
    seen(recording([data[:100], data[100:]], headers=headers, ending=ending))


def test_parallel_calls_of_an_unstreamed_answer_need_no_index() -> None:
    calls = [{"id": i, "function": {"name": i, "arguments": "{}"}} for i in ("x", "y")]
    body = orjson.dumps(
        {"choices": [{"index": 0, "message": {"tool_calls": calls}, "finish_reason": "tool_calls"}]}
    )
    got = seen(recording([body], headers=JSON_TYPE))
    assert got.answer is not None and got.answer.oddities == ()
    assert [call.name for call in got.answer.first.tool_calls] == ["x", "y"]


@pytest.mark.parametrize("depth", [150, 300, 1_000, 100_000])
def test_nesting_of_any_depth_is_an_answer_or_a_malformed_one(depth: int) -> None:
    call = '{"function":{"name":"f","arguments":' + "[" * depth + "]" * depth + "}}"
    body = '{"choices":[{"index":0,"message":{"tool_calls":[' + call + "]}}]}"
    got = seen(recording([body.encode()], headers=JSON_TYPE))
    assert got.outcome is (Outcome.OK if depth == 150 else Outcome.PROTOCOL_ERROR)


@pytest.mark.parametrize(
    "last",
    [
        {"choices": [], "usage": USAGE},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": None, "usage": USAGE}]},
        {"choices": [], "x_groq": {"usage": USAGE}},
    ],
)
def test_usage_is_found_wherever_a_host_puts_it(last: dict[str, object]) -> None:
    got = seen(recording([delta(content="six"), delta(finish="stop"), event(last), DONE]))
    assert got.answer is not None and got.answer.usage == Usage(
        prompt_tokens=11, completion_tokens=3, total_tokens=14
    )
