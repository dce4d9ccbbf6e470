"""Answers recorded from a real vLLM 0.32 with a tiny random model: what is in them, streamed and not."""

from __future__ import annotations

import pytest

from replay.exchange import Answer, ErrorClass, Outcome, Usage
from tests.replay.saved import FIXTURES, saved
from tests.replay.wire import CHAT, seen

VLLM = FIXTURES / "vllm-0.32"


def answer(name: str, path: str = CHAT) -> Answer:
    got = seen(saved(VLLM / f"{name}.http"), path=path)
    assert got.outcome is Outcome.OK and got.answer is not None, got.failure
    return got.answer


@pytest.mark.parametrize(("plain", "path"), [("chat", CHAT), ("completion", "/v1/completions")])
def test_streamed_and_whole_answers_say_the_same(plain: str, path: str) -> None:
    whole, stream = answer(plain, path), answer(f"{plain}-stream", path)
    assert whole.choices == stream.choices and whole.usage == stream.usage
    assert whole.first.text and whole.first.finish_reason == "length"
    assert whole.oddities == stream.oddities == ()


def test_usage_is_what_the_server_states() -> None:
    assert answer("chat").usage == Usage(prompt_tokens=48, completion_tokens=12, total_tokens=60)
    assert answer("chat-n2-stream").usage is None


def test_interleaved_choices_of_one_stream() -> None:
    choices = answer("chat-n2-stream").choices
    assert [choice.index for choice in choices] == [0, 1]
    assert all(choice.text and choice.finish_reason for choice in choices)


def test_tool_calls_whole_and_in_pieces() -> None:
    whole, stream = answer("tools-required").first, answer("tools-named-stream").first
    assert {call.name for call in (*whole.tool_calls, *stream.tool_calls)} == {"get_tide"}
    assert whole.finish_reason == "tool_calls"
    assert all(call.arguments for call in stream.tool_calls)


def test_the_first_token_comes_after_the_role() -> None:
    timing = seen(saved(VLLM / "chat-stream.http")).timing
    assert timing.ttft_s == pytest.approx(0.03)
    assert 0 < len(timing.content_times) <= 12


@pytest.mark.parametrize(
    ("name", "error_class", "words"),
    [
        ("error-400", ErrorClass.BAD_REQUEST, "temperature"),
        ("error-400-json", ErrorClass.BAD_REQUEST, ""),
        ("error-404-model", ErrorClass.NOT_FOUND, "harbor-7b"),
        ("error-404-route", ErrorClass.NOT_FOUND, "Not Found"),
        ("error-context", ErrorClass.CONTEXT_OVERFLOW, "1024"),
    ],
)
def test_errors_keep_their_class_and_words(name: str, error_class: ErrorClass, words: str) -> None:
    got = seen(saved(VLLM / f"{name}.http"))
    assert got.failure is not None
    assert got.failure.error_class is error_class and words in got.failure.message


@pytest.mark.parametrize(("plain", "path"), [("responses", "/v1/responses"), ("messages", "/v1/messages")])
def test_the_other_interfaces_say_the_same_streamed_and_whole(plain: str, path: str) -> None:
    whole, stream = answer(plain, path), answer(f"{plain}-stream", path)
    assert whole.first.text and whole.choices == stream.choices
    assert whole.first.finish_reason == "length" and whole.first.role == "assistant"
    assert (whole.usage, whole.model) == (stream.usage, "harbor-7b")
    assert whole.usage is not None and whole.usage.completion_tokens == 12
    assert whole.oddities == stream.oddities == ()


def test_a_tool_call_of_a_messages_stream() -> None:
    (call,) = answer("messages-tool-stream", "/v1/messages").first.tool_calls
    assert (call.name, call.arguments) == ("get_tide", "true") and call.id
