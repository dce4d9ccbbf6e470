from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.sampling import body_key, digest, header_key, position, stateful_reason

TEXT = st.text(max_size=40)


def key(body: dict[str, Any], by: str = "conversation", request_id: str = "r") -> str:
    return body_key(by, body, request_id)


def conversation(*turns: str, system: str | None = "be brief") -> dict[str, Any]:
    roles = ("user", "assistant")
    messages = [{"role": roles[n % 2], "content": text} for n, text in enumerate(turns)]
    return {"messages": [{"role": "system", "content": system}, *messages] if system else messages}


@given(TEXT, st.floats(0, 1), st.floats(0, 1))
def test_a_larger_share_contains_the_smaller(name: str, a: float, b: float) -> None:
    small, large = sorted((a, b))
    where = position(digest(name))
    assert 0 <= where < 1
    assert not (where < small) or where < large


def test_the_share_is_met_and_a_restart_does_not_change_who_is_in_it() -> None:
    names = [f"user:{n}" for n in range(10_000)]
    sampled = {name for name in names if position(digest(name)) < 0.2}
    assert abs(len(sampled) - 2_000) <= 3 * (10_000 * 0.2 * 0.8) ** 0.5
    program = (
        "from migrate.sampling import digest, position\n"
        "print(sum(position(digest(f'user:{n}')) < 0.2 for n in range(10_000)), digest('user:1'))"
    )
    other = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert other.stdout.split() == [str(len(sampled)), digest("user:1")]


@given(st.lists(TEXT, min_size=1, max_size=6), TEXT)
def test_a_conversation_keeps_its_key_as_it_grows(turns: list[str], more: str) -> None:
    assert key(conversation(*turns)) == key(conversation(*turns, more, more))


def test_conversations_that_begin_differently_differ() -> None:
    keys = {
        key(conversation("a")),
        key(conversation("b")),
        key(conversation("a", system="other")),
        key(conversation("a", system=None)),
        key({"prompt": "a"}),
        key({"user": "a"}),
    }
    assert len(keys) == 6


def test_the_user_comes_before_the_messages() -> None:
    assert key({"user": "u", **conversation("a")}) == key({"user": "u", **conversation("b")}) == "user:u"
    assert key({"user": "", **conversation("a")}) == key(conversation("a"))


def test_parts_of_content_count_whatever_the_order_of_their_keys() -> None:
    one = [{"type": "text", "text": "a"}]
    two = [{"text": "a", "type": "text"}]
    assert key({"messages": [{"role": "user", "content": one}]}) == key(
        {"messages": [{"role": "user", "content": two}]}
    )


@pytest.mark.parametrize(
    "body", [{}, {"messages": []}, {"messages": [1, None]}, {"messages": "x" * 0}, {"user": None}]
)
def test_without_anything_to_go_by_every_request_stands_for_itself(body: dict[str, Any]) -> None:
    assert key(body, request_id="1") == "request:1"


def test_by_request_nothing_else_counts() -> None:
    assert key({"user": "u"}, by="request", request_id="9") == "request:9"


def test_a_header_wins_where_it_is_configured_and_falls_back_where_it_is_missing() -> None:
    headers = {"x-session": "s1"}
    assert header_key("header:X-Session", headers) == "header:s1"
    assert header_key("conversation", headers) is None
    assert header_key("header:X-Other", headers) is None
    assert key({"user": "u"}, by="header:X-Other") == "user:u"


STATEFUL = {
    "previous_response_id": {"previous_response_id": "resp_1"},
    "conversation": {"conversation": {"id": "conv_1"}},
    "background": {"background": True},
    "prompt.id": {"prompt": {"id": "pmpt_1"}},
    "file_id": {"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]}]},
    "file_ids": {"messages": [], "file_ids": ["f"]},
    "vector_store_ids": {"tools": [{"type": "file_search", "vector_store_ids": ["v"]}]},
    "container": {"tools": [{"type": "code_interpreter", "container": "c"}]},
    "item_reference": {"input": [{"type": "item_reference", "id": "i"}]},
    "audio.id": {"messages": [{"role": "assistant", "audio": {"id": "a"}}]},
}


@pytest.mark.parametrize("reason", STATEFUL)
def test_a_request_that_leans_on_server_state_is_named_for_it(reason: str) -> None:
    assert stateful_reason(STATEFUL[reason]) == reason


@pytest.mark.parametrize(
    "body",
    [
        conversation("hello"),
        {"prompt": "hello", "store": True},
        {"previous_response_id": None, "background": False, "conversation": None},
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}]},
        {"tools": [{"type": "function", "function": {"parameters": {"properties": {"file_id": {}}}}}]},
        {"input": "text", "prompt": ["a", "b"]},
    ],
)
def test_stateless_generation_is_left_alone(body: dict[str, Any]) -> None:
    assert stateful_reason(body) is None
