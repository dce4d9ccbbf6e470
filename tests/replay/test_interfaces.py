"""Shapes beyond plain text: Responses, messages, embeddings, media, unknown fields, and values that nobody expects."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replay.exchange import Observation, Outcome
from tests.replay.wire import DONE, JSON_TYPE, codes, delta, event, recording, seen

RESPONSES, MESSAGES = "/v1/responses", "/v1/messages"


def named(*events: dict[str, Any]) -> list[bytes]:
    return [
        b"event: " + str(one["type"]).encode() + b"\ndata: " + json.dumps(one).encode() + b"\n\n"
        for one in events
    ]


def body(value: Any, path: str = "/v1/chat/completions") -> Observation:
    return seen(recording([json.dumps(value).encode()], headers=JSON_TYPE), path=path)


CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "get_tide", "arguments": ""}
SAID = {
    "type": "message",
    "id": "m",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "At six."}],
}
DONE_CALL = CALL | {"arguments": '{"port":"Hull"}'}


def test_a_responses_stream_with_reasoning_text_and_a_call() -> None:
    final = {
        "object": "response",
        "status": "completed",
        "model": "m",
        "output": [SAID, DONE_CALL],
        "usage": {"input_tokens": 9, "output_tokens": 5, "total_tokens": 14},
    }
    got = seen(
        recording(
            named(
                {
                    "type": "response.created",
                    "response": {"object": "response", "status": "in_progress", "output": []},
                },
                {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "tides"},
                {
                    "type": "response.output_item.added",
                    "output_index": 1,
                    "item": {"type": "message", "role": "assistant", "content": []},
                },
                {"type": "response.output_text.delta", "output_index": 1, "delta": "At "},
                {"type": "response.output_text.delta", "output_index": 1, "delta": "six."},
                {"type": "response.output_item.done", "output_index": 1, "item": SAID},
                {"type": "response.output_item.added", "output_index": 2, "item": CALL},
                {
                    "type": "response.function_call_arguments.delta",
                    "output_index": 2,
                    "delta": '{"port":"Hull"}',
                },
                {"type": "response.output_item.done", "output_index": 2, "item": DONE_CALL},
                {"type": "response.completed", "response": final},
            )
        ),
        path=RESPONSES,
    )
    assert got.outcome is Outcome.OK and got.answer is not None and got.answer.oddities == ()
    first = got.answer.first
    assert (first.text, first.reasoning, first.finish_reason, first.role) == (
        "At six.",
        "tides",
        "tool_calls",
        "assistant",
    )
    assert [(c.id, c.name, c.arguments) for c in first.tool_calls] == [
        ("call_1", "get_tide", '{"port":"Hull"}')
    ]
    assert got.output_tokens == 5 and len(got.timing.content_times) == 4
    whole = body(final, RESPONSES)
    assert whole.answer is not None and whole.answer.first.text == "At six."
    assert whole.answer.first.tool_calls == first.tool_calls and whole.answer.usage == got.answer.usage


def test_a_last_event_that_says_something_else_is_noted() -> None:
    other = SAID | {"content": [{"type": "output_text", "text": "At nine."}]}
    got = seen(
        recording(
            named(
                {"type": "response.output_text.delta", "output_index": 0, "delta": "At six."},
                {"type": "response.output_item.done", "output_index": 0, "item": other},
                {"type": "response.completed", "response": {"object": "response", "status": "completed"}},
            )
        ),
        path=RESPONSES,
    )
    assert (
        got.answer is not None
        and got.answer.first.text == "At six."
        and "envelope.final_differs" in codes(got)
    )


@pytest.mark.parametrize(
    "last",
    [
        {
            "type": "response.failed",
            "response": {"status": "failed", "error": {"code": "server_error", "message": "worker lost"}},
        },
        {"type": "error", "code": "server_error", "message": "worker lost"},
    ],
)
def test_a_responses_stream_that_fails(last: dict[str, Any]) -> None:
    begun = {"type": "response.output_text.delta", "output_index": 0, "delta": "At"}
    got = seen(recording(named(begun, last)), path=RESPONSES)
    assert (
        got.failure is not None
        and got.failure.code == "error.mid_stream"
        and "worker lost" in got.failure.message
    )


def test_a_messages_stream_with_thoughts_text_and_a_call() -> None:
    def block(index: int, kind: str, **more: Any) -> dict[str, Any]:
        return {"type": "content_block_start", "index": index, "content_block": {"type": kind, **more}}

    def piece(index: int, kind: str, **more: Any) -> dict[str, Any]:
        return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **more}}

    got = seen(
        recording(
            named(
                {
                    "type": "message_start",
                    "message": {
                        "role": "assistant",
                        "model": "m",
                        "content": [],
                        "usage": {"input_tokens": 9, "output_tokens": 1},
                    },
                },
                {"type": "ping"},
                block(0, "thinking", thinking=""),
                piece(0, "thinking_delta", thinking="tides"),
                block(1, "text", text=""),
                piece(1, "text_delta", text="At six."),
                block(2, "tool_use", id="toolu_1", name="get_tide", input={}),
                piece(2, "input_json_delta", partial_json='{"port":'),
                piece(2, "input_json_delta", partial_json='"Hull"}'),
                {
                    "type": "message_delta",
                    "delta": {"stop_reason": "tool_use"},
                    "usage": {"output_tokens": 7},
                },
                {"type": "message_stop"},
            )
        ),
        path=MESSAGES,
    )
    assert got.outcome is Outcome.OK and got.answer is not None and got.answer.oddities == ()
    first = got.answer.first
    assert (first.text, first.reasoning, first.finish_reason) == ("At six.", "tides", "tool_calls")
    assert [(c.id, c.name, c.arguments) for c in first.tool_calls] == [
        ("toolu_1", "get_tide", '{"port":"Hull"}')
    ]
    assert got.answer.usage is not None
    assert (got.answer.usage.prompt_tokens, got.answer.usage.completion_tokens) == (9, 7)
    assert got.timing.ttft_s == pytest.approx(0.05)


def test_an_overload_of_a_messages_stream_is_capacity() -> None:
    got = seen(
        recording(named({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}})),
        path=MESSAGES,
    )
    assert (
        got.failure is not None
        and got.failure.error_class.fault.value == "capacity"
        and got.failure.retryable
    )


def test_embeddings_as_numbers_and_as_base64_are_the_same() -> None:
    packed = base64.b64encode(struct.pack("<3f", 0.25, -1.0, 0.5)).decode()
    rows = [{"index": 1, "embedding": [1, 0, 0]}, {"index": 0, "embedding": [0.25, -1.0, 0.5]}]
    plain = body(
        {"object": "list", "data": rows, "model": "e", "usage": {"prompt_tokens": 4, "total_tokens": 4}},
        "/v1/embeddings",
    )
    coded = body(
        {"object": "list", "data": [rows[0], {"index": 0, "embedding": packed}], "model": "e"},
        "/v1/embeddings",
    )
    assert plain.answer is not None and coded.answer is not None
    assert plain.answer.embeddings == coded.answer.embeddings == ((0.25, -1.0, 0.5), (1.0, 0.0, 0.0))
    broken = body({"data": [{"embedding": "no base64!"}]}, "/v1/embeddings")
    assert {"envelope.wrong_type", "envelope.index_missing"} <= set(codes(broken))


def test_media_are_kept_as_digests_and_unknown_fields_by_their_path() -> None:
    message = {
        "role": "assistant",
        "content": [{"type": "text", "text": "six"}, {"type": "image_url", "image_url": {"url": "data:AA"}}],
        "audio": {"data": "AAAA"},
        "mood": "calm",
    }
    got = body(
        {
            "choices": [{"index": 0, "message": message, "finish_reason": "stop", "score": 0.5}],
            "ship": {"a": 1},
        }
    )
    assert got.answer is not None
    first = got.answer.first
    assert first.text == "six" and [one.partition(":")[0] for one in first.media] == ["image", "audio"]
    assert all(len(one.partition(":")[2]) == 64 for one in first.media)
    assert dict(got.answer.extra) == {"ship": '{"a":1}', "choices[].score": "0.5", "message.mood": '"calm"'}
    assert {"envelope.content_parts", "envelope.unknown_field"} <= set(codes(got))


def test_a_field_that_becomes_unknown_in_mid_stream_is_not_lost() -> None:
    """The quick path takes only chunks that say nothing new."""
    plain = [delta(content=f"{n} ") for n in range(5)]
    late = event({"choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": None}], "ship": 7})
    same_size = event({"choices": [{"index": 0, "delta": {"content": "y"}, "finnish": None}]})
    got = seen(recording([*plain, late, same_size, *plain, delta(finish="stop"), DONE]))
    assert got.answer is not None and dict(got.answer.extra) == {"ship": "7"}
    assert got.answer.first.text == "0 1 2 3 4 xy0 1 2 3 4 " and len(got.timing.content_times) == 12


WHOLE: list[tuple[str, Any]] = [
    (
        "/v1/chat/completions",
        {
            "id": "c",
            "model": "m",
            "choices": [
                {
                    "index": 0,
                    "message": {
                        "role": "assistant",
                        "content": "six",
                        "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}],
                    },
                    "finish_reason": "stop",
                }
            ],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1},
        },
    ),
    (
        "/v1/chat/completions",
        {
            "error": {
                "message": "no",
                "type": "t",
                "code": 400,
                "details": [{"retryDelay": "3s"}],
                "retry_after": 2,
            }
        },
    ),
    (
        RESPONSES,
        {
            "object": "response",
            "status": "completed",
            "model": "m",
            "output": [SAID, DONE_CALL, {"type": "reasoning", "summary": [{"text": "t"}]}],
            "usage": {"input_tokens": 1},
        },
    ),
    (
        MESSAGES,
        {
            "type": "message",
            "role": "assistant",
            "content": [
                {"type": "text", "text": "six"},
                {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}},
            ],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 1},
        },
    ),
    ("/v1/embeddings", {"data": [{"index": 0, "embedding": [0.5]}], "usage": {"prompt_tokens": 1}}),
]
STRANGE = st.sampled_from(
    [
        None,
        True,
        -1,
        10**40,
        1e300,
        "",
        "\ud800",
        "\u00b2",
        "9" * 5_000,
        [],
        {},
        [[]],
        [None],
        {"": None},
        [1, "a"],
        "x" * 50,
    ]
)


def places(value: Any, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [before, *(place for key, item in items for place in places(item, (*before, key)))]


def replaced(value: Any, place: tuple[Any, ...], by: Any) -> Any:
    if not place:
        return by
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[place[0]] = replaced(copy[place[0]], place[1:], by)
    return copy


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(WHOLE), st.data(), STRANGE, st.booleans(), st.sampled_from([200, 400, 500]))
def test_a_strange_value_anywhere_raises_nowhere(
    template: tuple[str, Any], data: st.DataObject, strange: Any, streamed: bool, status: int
) -> None:
    """Decoded, redacted, stored and compared."""
    from migrate.config import Redact
    from migrate.redact import Redactor
    from migrate.store import codec
    from reports.compare import compare
    from reports.judgement import Severity
    from tests.migrate.samples import request

    path, value = template
    value = replaced(value, data.draw(st.sampled_from(places(value))), strange)
    raw = json.dumps(value).encode()
    pieces = [b"data: " + raw + b"\n\n", DONE] if streamed else [raw]
    got = seen(recording(pieces, status=status, **({} if streamed else {"headers": JSON_TYPE})), path=path)
    kept = Redactor(Redact(), b"salt").observation(got)
    row, bodies = codec.observation_rows("run", kept)
    answer = None if row["answer"] is None else codec.unpack(bodies[row["answer"]])
    codec.observation_value(row, answer)
    found = compare(request("r", body=b'{"messages":[]}'), got, got)
    assert found.severity is not Severity.INVALID
