"""Shapes of particular servers, relays and proxies that were misread once."""

from __future__ import annotations

import gzip
import json
import time
from typing import Any

import pytest

from replay.decoding import observe
from replay.exchange import Arm, Ending, ErrorClass, Observation, Outcome, Recording, Request
from reports.compare import Comparison, compare
from reports.judgement import Severity
from tests.replay.wire import DONE, JSON_TYPE, SSE, codes, delta, event, recording, seen

CHAT = "/v1/chat/completions"


def whole(value: Any, **more: Any) -> Observation:
    return seen(recording([json.dumps(value).encode()], headers=JSON_TYPE), **more)


def choice(finish: str = "stop", **message: Any) -> dict[str, Any]:
    return {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}


def judged(old: Observation, new: Observation, **request: Any) -> Comparison:
    body = json.dumps({"messages": [{"role": "user", "content": "x"}], **request}).encode()
    return compare(
        Request(id="r", at=0.0, method="POST", path=CHAT, headers=(), body=body, conversation=""), old, new
    )


def said(got: Observation) -> str:
    assert got.answer is not None
    return got.answer.first.text


def test_text_or_a_message_beside_a_delta_is_not_said_twice() -> None:
    both = [
        event(
            {
                "choices": [
                    {
                        "index": 0,
                        "text": t,
                        "delta": {"role": "assistant", "content": t},
                        "finish_reason": None,
                    }
                ]
            }
        )
        for t in ("Hello", " world", " world")
    ]
    so_far = [
        event(
            {
                "choices": [
                    {
                        "index": 0,
                        "delta": {"content": t},
                        "message": {"content": all_of_it},
                        "finish_reason": None,
                    }
                ]
            }
        )
        for t, all_of_it in (("Hello", "Hello"), (" world", "Hello world"))
    ]
    assert said(seen(recording([*both, delta(finish="stop"), DONE]))) == "Hello world world"
    assert said(seen(recording([*so_far, delta(finish="stop"), DONE]))) == "Hello world"


@pytest.mark.parametrize("kind", ["ping", "keepalive"])
def test_a_sign_of_life_does_not_say_which_interface_follows(kind: str) -> None:
    life = b"event: " + kind.encode() + b"\n" + event({"type": kind, "sequence_number": 0})
    assert said(seen(recording([life, delta(content="six", finish="stop"), DONE]))) == "six"


@pytest.mark.parametrize(
    "broken",
    [
        event({"type": "error", "code": "rate_limit_exceeded", "message": "slow down"}),
        b"event: error\n" + event({"message": "slow down", "code": 429}),
        b'error: {"code":429,"message":"slow down","type":"rate_limit_error"}\n\n',
    ],
)
@pytest.mark.parametrize("before", [[], [delta(content="Hi")]])
@pytest.mark.parametrize("ending", [Ending.COMPLETE, Ending.RESET])
def test_an_error_event_in_any_shape_is_what_failed(
    broken: bytes, before: list[bytes], ending: Ending
) -> None:
    got = seen(recording([*before, broken, DONE][: 2 + len(before)], ending=ending))
    assert got.failure is not None and got.failure.code == "error.mid_stream", got.failure
    assert got.failure.error_class is ErrorClass.RATE_LIMITED and got.failure.message == "slow down"


def test_pictures_count() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    other = {"type": "image_url", "image_url": {"url": "data:image/png;base64,BB=="}}
    one, none, another = (
        whole({"choices": [choice(content="A boat.", images=images)]}) for images in ([image], [], [other])
    )
    assert judged(one, none).severity is Severity.BLOCK
    assert judged(one, one).severity is Severity.EQUAL
    found = judged(one, another)
    assert (found.severity, [f.category for f in found.findings]) == (Severity.NOTE, ["media.differs"])


@pytest.mark.parametrize("pieces", [[DONE], [event({"choices": [], "usage": {"prompt_tokens": 1}}), DONE]])
def test_a_stream_without_a_choice_is_no_answer(pieces: list[bytes]) -> None:
    got = seen(recording(pieces))
    assert got.failure is not None and got.failure.code == "envelope.choices_missing"


@pytest.mark.parametrize("status", [200, 204, 302, 307])
def test_no_body_is_no_answer_whatever_the_status(status: int) -> None:
    got = seen(recording([], status=status))
    assert (
        got.outcome is Outcome.PROTOCOL_ERROR
        and got.failure is not None
        and str(status) in got.failure.message
    )


@pytest.mark.parametrize("body", [b"<html>sign in</html>", b"upstream connect error"])
def test_a_page_under_the_content_type_of_a_stream_is_no_broken_network(body: bytes) -> None:
    got = seen(recording([body], headers=SSE))
    assert got.failure is not None and got.failure.code == "envelope.not_json"


@pytest.mark.parametrize("headers", [JSON_TYPE, SSE, ()])
def test_whether_it_was_a_stream_is_seen_by_how_it_had_to_be_read(headers: Any) -> None:
    stream = [delta(role="assistant", content="six", finish="stop"), DONE]
    body = [json.dumps({"choices": [choice(content="six")]}).encode()]
    right = whole({"choices": [choice(content="six")]})
    found = judged(right, seen(recording(stream, headers=headers)))
    assert "stream.unasked" in [f.category for f in found.findings] and found.severity is Severity.BLOCK
    found = judged(seen(recording(stream)), seen(recording(body, headers=headers)), stream=True)
    assert "stream.not_streamed" in [f.category for f in found.findings] and found.severity is Severity.BLOCK


@pytest.mark.parametrize("prelude", [b"retry: 3000\n\n", b"id: 1\n\n", b"event: ping\n\n", b"data:\n\n"])
def test_an_event_without_data_stops_the_official_client(prelude: bytes) -> None:
    good = [delta(content="six", finish="stop"), DONE]
    assert "stream.empty_event" in codes(seen(recording([prelude, *good])))
    assert "stream.empty_event" not in codes(seen(recording([b": wait\n\n", b"id: 1\n" + good[0], good[1]])))


def test_choices_without_an_index_are_told_apart_by_their_place_in_a_whole_answer_only() -> None:
    two = whole({"choices": [{"message": {"content": text}, "finish_reason": "stop"} for text in "AB"]})
    assert two.answer is not None and [c.text for c in two.answer.choices] == ["A", "B"]
    bare = event({"choices": [{"delta": {"content": "A"}, "finish_reason": "stop"}]})
    placed = delta(1, "stop", content="B")
    for pieces in ([bare, placed, DONE], [placed, bare, DONE]):
        assert "envelope.index_ambiguous" in codes(seen(recording(pieces)))
    assert codes(seen(recording([bare, DONE]))) == ["envelope.index_missing"]


def test_an_id_that_every_piece_repeats_is_one_call_and_takes_linear_time() -> None:
    def pieces(count: int) -> list[bytes]:
        call = {"index": 0, "id": "call_1", "function": {"arguments": "1"}}
        first = {"index": 0, "id": "call_1", "function": {"name": "f", "arguments": ""}}
        return [
            delta(tool_calls=[first]),
            *([delta(tool_calls=[call])] * count),
            delta(finish="tool_calls"),
            DONE,
        ]

    got = seen(recording(pieces(3)))
    assert got.answer is not None and len(got.answer.first.tool_calls) == 1
    assert "tools.repeated_id" in codes(got) and "tools.index_collision" not in codes(got)
    start = time.perf_counter()
    seen(recording([b"".join(pieces(5_000))]))
    short = time.perf_counter() - start
    start = time.perf_counter()
    seen(recording([b"".join(pieces(20_000))]))
    assert time.perf_counter() - start < 8 * short + 0.1


def test_thinking_parts_and_transcripts_are_read() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "tides"}]},
        {"type": "text", "text": "At six."},
    ]
    got = whole({"choices": [choice(content=parts)]})
    assert got.answer is not None and (got.answer.first.text, got.answer.first.reasoning) == (
        "At six.",
        "tides",
    )
    spoken = whole(
        {"choices": [choice(content=None, audio={"id": "a", "data": "AAAA", "transcript": "At six."})]}
    )
    assert said(spoken) == "At six." and spoken.answer is not None and len(spoken.answer.first.media) == 1


def test_a_total_may_hold_the_reasoning_and_tables_and_banners_may_repeat() -> None:
    usage = {
        "prompt_tokens": 3,
        "completion_tokens": 2,
        "total_tokens": 105,
        "completion_tokens_details": {"reasoning_tokens": 100},
    }
    plain = whole({"choices": [choice(content="At six.")], "usage": usage | {"total_tokens": 5}})
    assert (
        judged(plain, whole({"choices": [choice(content="At six.")], "usage": usage})).severity
        is Severity.EQUAL
    )
    sums = "He sold 20 crates + 15 crates + 12 crates + 18 crates = 65 crates"
    for text in ("/" * 60 + " banner", "1 0 0 0\n0 1 0 0\n0 0 1 0\n0 0 0 1", "- - - -\n" * 20, sums):
        found = judged(whole({"choices": [choice(content="x")]}), whole({"choices": [choice(content=text)]}))
        assert "text.degenerate" not in [f.category for f in found.findings], text


@pytest.mark.parametrize("damage", [lambda data: data[:-8], lambda data: data + b"\r\n"])
def test_a_whole_answer_whose_gzip_does_not_end_well_is_an_answer(damage: Any) -> None:
    stream = b"".join([delta(content="six", finish="stop"), DONE])
    got = seen(recording([damage(gzip.compress(stream))], headers=(*SSE, ("Content-Encoding", "gzip"))))
    assert got.outcome is Outcome.OK and said(got) == "six"


def test_an_error_in_a_list_is_an_error() -> None:
    got = whole([{"error": {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}}])
    assert got.failure is not None and got.failure.error_class is ErrorClass.RATE_LIMITED


def test_the_answer_does_not_depend_on_how_the_bytes_came_before_the_first_event() -> None:
    for start in (b"\n" * 10, b"\xef\xbb\xbf", b"\xef\xbb\xbf\n\n"):
        data = start + delta(content="six", finish="stop") + DONE
        one, many = (
            seen(recording(pieces, headers=()))
            for pieces in ([data], [data[n : n + 1] for n in range(len(data))])
        )
        assert one.outcome is many.outcome is Outcome.OK and one.answer == many.answer


def test_what_the_quick_path_would_hide_is_found() -> None:
    text = [delta(content="a"), delta(content="b")]
    large = seen(recording([*text, delta(content="x" * 70_000), delta(finish="stop"), DONE]))
    assert "client_risk.large_event" in codes(large) and said(large).startswith("abx")
    named = seen(recording([*text, b"event: chunk\n" + delta(content="c"), delta(finish="stop"), DONE]))
    assert "client_risk.event_name" in codes(named) and said(named) == "abc"


def test_a_call_that_only_the_last_event_of_a_responses_stream_holds() -> None:
    call = {"type": "function_call", "id": "f", "call_id": "c", "name": "ring", "arguments": "{}"}
    text = {
        "type": "message",
        "id": "m",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Bye"}],
    }
    response = {"object": "response", "status": "completed", "output": [text, call]}
    got = seen(
        recording(
            [
                event({"type": "response.output_text.delta", "output_index": 0, "delta": "Hi"}),
                event({"type": "response.completed", "response": response}),
            ]
        ),
        path="/v1/responses",
    )
    assert got.answer is not None and [c.name for c in got.answer.first.tool_calls] == ["ring"]
    assert said(got) == "Hi" and "envelope.final_differs" in codes(got)


def test_tools_that_the_server_runs_itself_and_first_counts_of_messages() -> None:
    blocks = [
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        {"type": "text", "text": "At six."},
    ]
    got = whole(
        {"type": "message", "role": "assistant", "content": blocks, "stop_reason": "end_turn"},
        path="/v1/messages",
    )
    assert got.answer is not None and got.answer.first.tool_calls == () and said(got) == "At six."
    begun = {
        "type": "message_start",
        "message": {"role": "assistant", "content": [], "usage": {"output_tokens": 1}},
    }
    piece = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "six"}}
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}
    slow = seen(
        recording([event(one) for one in (begun, piece, end, {"type": "message_stop"})], step=0.6),
        path="/v1/messages",
    )
    assert slow.timing.generated_s is None or slow.timing.generated_s > (slow.timing.ttft_s or 0)


def test_numbers_beyond_a_float_raise_nothing_and_many_small_members_take_linear_time() -> None:
    body = b'{"data":[{"embedding":[' + b"1" * 400 + b'],"index":0}]}'
    assert codes(seen(recording([body], headers=JSON_TYPE), path="/v1/embeddings")) == [
        "envelope.nonstandard_number"
    ]

    def took(count: int) -> float:
        data = b"".join(gzip.compress(delta(content="x")) for _ in range(count)) + gzip.compress(
            delta(finish="stop") + DONE
        )
        start = time.perf_counter()
        assert said(seen(recording([data], headers=(*SSE, ("Content-Encoding", "gzip"))))) == "x" * count
        return time.perf_counter() - start

    assert took(8_000) < 8 * took(2_000) + 0.2


def test_a_retired_function_call_needs_no_id() -> None:
    got = whole({"choices": [choice(content=None, function_call={"name": "f", "arguments": "{}"})]})
    assert codes(got) == ["client_risk.function_call"]


def test_unknown_fields_come_in_one_order() -> None:
    message = {"content": "x", "gamma": 1, "alpha": 2, "beta": 3}
    got = whole({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "zeta": 1, "eta": 2})
    assert got.answer is not None
    assert [path for path, _ in got.answer.extra] == [
        "eta",
        "zeta",
        "message.alpha",
        "message.beta",
        "message.gamma",
    ]


def test_a_break_after_the_error_was_told_is_not_the_networks_fault() -> None:
    chunks = (
        (0.1, delta(content="Hi")),
        (0.2, event({"error": {"message": "CUDA out of memory", "code": 500}})),
    )
    rec = Recording(
        sent_at=0.0, head_at=0.0, status=200, headers=SSE, chunks=chunks, ended_at=0.3, ending=Ending.RESET
    )
    got = observe(rec, request_id="r", arm=Arm.CANDIDATE, at=0.0, path=CHAT)
    assert got.failure is not None and got.failure.error_class is ErrorClass.SERVER
    assert got.failure.message == "CUDA out of memory"
