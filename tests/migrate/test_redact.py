"""Redaction: no secret survives, harmless numbers do, and equal stays equal."""

from __future__ import annotations

import dataclasses
import re
import time
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate import sensitive
from migrate.config import Redact
from migrate.errors import ConfigError
from migrate.redact import Redactor
from replay.exchange import Answer, Choice, Request, ToolCall
from tests.migrate.samples import observation, request

SECRETS = [
    "sk-proj-a1B2c3D4e5F6g7H8i9J0",
    "hs_live_0123456789abcdefABCDEF",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "AKIAIOSFODNN7EXAMPLE",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc=\n-----END RSA PRIVATE KEY-----",
    "ada.byron+test@example.co.uk",
    "4111 1111 1111 1111",
    "5500-0000-0000-0004",
    "378282246310005",
    "3782 822463 10005",
    "+44 20 7946 0958",
    "(020) 7946 0958",
    "555-123-4567",
    "030 1234 5678",
]
HARMLESS = [
    "The total is 1,234,567.89 EUR for 12 items.",
    "Meet on 2026-12-01 at 10:30:00, or 01/12/2026.",
    "id 6f1c1c9e-8b1a-4a57-9d8e-0a1b2c3d4e5f",
    '"created":1796145537,"id":"chatcmpl-b9ecea24ac49d43d"',
    "0.1 + 0.2 = 0.30000000000000004",
    "Order 1234567890123456 has no valid check digit.",
    "192.168.10.200 answered in 12 ms",
    "version 3.11.7, build 20261101",
    "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30",
    "a price of 100-200 dollars, pages 123-456",
    "The task-force met; risk-adjusted-returns-were-high.",
]


def redactor(**rules: Any) -> Redactor:
    return Redactor(Redact(**rules), salt=b"0123456789abcdef")


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_is_replaced_wherever_it_stands(secret: str) -> None:
    hidden = redactor()
    for text in (
        secret,
        f"use {secret} now",
        f"({secret})",
        f"{secret}, please",
        f"a: {secret}\nb",
        f"5 {secret} 030",
    ):
        assert secret not in hidden.text(text), text


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redactor().text(text) == text


def test_assigned_secrets_and_bearer_tokens_go_and_their_names_stay() -> None:
    text = redactor().text(
        'api_key = "hunter2hunter2" Authorization: Bearer abcdef0123456789xyz password: correcthorse'
    )
    assert "hunter2" not in text and "abcdef0123456789" not in text and "correcthorse" not in text
    assert text.startswith('api_key = "[key:') and "Authorization: Bearer [key:" in text


def test_one_value_has_one_placeholder_and_another_salt_gives_another() -> None:
    one, other = redactor(), Redactor(Redact(), salt=b"fedcba9876543210")
    text = "ada@example.org wrote to bob@example.org and ada@example.org"
    words = one.text(text).split()
    assert words[0] == words[5] != words[3]
    assert one.text(text) != other.text(text)


@given(st.lists(st.sampled_from(SECRETS) | st.text(max_size=20), max_size=5).map(" ".join))
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = redactor().text(text)
    assert redactor().text(once) == once


def test_each_kind_can_be_switched_off() -> None:
    text = "ada@example.org 555-123-4567"
    assert "ada@example.org" in redactor(emails=False).text(text)
    assert "555-123-4567" in redactor(phones=False, cards=False).text(text)
    assert "4111111111111111" in redactor(cards=False).text("4111111111111111")


def test_own_patterns_and_fields() -> None:
    rules = redactor(patterns=(r"ACME-\d{6}",), fields=("metadata.customer", "messages.name"))
    body = {
        "metadata": {"customer": {"id": 7}, "shop": "ACME-123456"},
        "messages": [{"name": "Ada", "content": "hi"}],
    }
    got, changed = rules.request(request(body=orjson.dumps(body)))
    data = orjson.loads(got.body)
    assert changed
    assert data["metadata"]["customer"].startswith("[field:") and data["metadata"]["shop"].startswith("[own:")
    assert data["messages"][0]["name"].startswith("[field:") and data["messages"][0]["content"] == "hi"
    assert rules.request(got)[0].body == got.body


def test_a_pattern_that_is_none_is_refused_at_the_start() -> None:
    with pytest.raises(ConfigError, match=r"redact\.patterns"):
        redactor(patterns=("(",))


def test_a_clean_request_keeps_its_bytes() -> None:
    body = b'{ "messages": [ {"role":"user","content":"hello"} ] }'
    got, changed = redactor().request(request(body=body))
    assert got.body is body and not changed


def test_secret_headers_go_and_the_query_is_redacted() -> None:
    asked = dataclasses.replace(
        request(),
        path="/v1/chat/completions?api_key=hunter2hunter2",
        headers=(("Authorization", "Bearer x"), ("X-Api-Key", "k"), ("Cookie", "c"), ("Accept", "*/*")),
    )
    got, _ = redactor().request(asked)
    assert got.headers == (("Accept", "*/*"),)
    assert "hunter2" not in got.path


def test_a_clean_answer_keeps_its_raw_body_and_a_redacted_one_does_not() -> None:
    clean = observation(text="The tide is high.")
    assert redactor().observation(clean) == clean
    told = redactor().observation(observation(text="Write to ada@example.org."))
    assert told.raw is None and told.answer is not None
    assert "[email:" in told.answer.first.text


def test_a_secret_that_only_the_assembled_text_shows_still_drops_the_raw_body() -> None:
    pieces = b'data: {"content":"ada@exa"}\n\ndata: {"content":"mple.org"}\n\n'
    seen = dataclasses.replace(observation(text="ada@example.org"), raw=pieces)
    assert redactor().observation(seen).raw is None


@given(st.sampled_from(SECRETS), st.sampled_from(["text", "reasoning", "refusal", "arguments", "name"]))
def test_no_seeded_secret_survives_anywhere_in_an_observation(secret: str, place: str) -> None:
    call = ToolCall(
        name=secret if place == "name" else "f", arguments=secret if place == "arguments" else "{}"
    )
    fields = {place: f"see {secret}"} if place in ("text", "reasoning", "refusal") else {}
    answer = Answer(choices=(Choice(tool_calls=(call,), **fields),))  # type: ignore[arg-type]
    seen = dataclasses.replace(observation(), answer=answer, raw=f"raw {secret}".encode())
    assert secret not in repr(redactor().observation(seen))


_leaves = st.sampled_from(SECRETS) | st.integers() | st.booleans() | st.none() | st.text(max_size=8)
_json = st.recursive(
    _leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@given(st.dictionaries(st.text(max_size=5), _json, max_size=3))
def test_no_seeded_secret_survives_anywhere_in_a_request(body: dict[str, Any]) -> None:
    try:
        data = orjson.dumps(body)
    except TypeError:
        return  # integers beyond 64 bits are no JSON of any client
    got, _ = redactor().request(request(body=data))
    text = orjson.loads(got.body)
    assert not any(secret in repr(text) for secret in SECRETS if "\n" not in secret)


@pytest.mark.parametrize(
    "text", ["a" * 200_000 + "@", "1 " * 100_000, "+1" + "(" * 50_000, "eyJ" + "a." * 50_000, "-" * 200_000]
)
def test_long_hostile_texts_take_linear_time(text: str) -> None:
    redactor().text(text)  # the suite's time limit is the assertion


def test_a_body_that_is_no_json_is_redacted_as_text() -> None:
    got, changed = redactor().request(request(body=b"write to ada@example.org \xff"))
    assert changed and b"ada@" not in got.body and got.body.endswith(b"\xff")


def test_the_conversation_is_not_stored_as_it_was_sampled() -> None:
    asked: Request = request()
    got, _ = redactor().request(asked)
    assert asked.conversation not in got.conversation


def test_an_observation_without_an_answer_passes() -> None:
    bare = dataclasses.replace(observation(), answer=None, raw=None)
    assert redactor().observation(bare) == bare


@pytest.mark.parametrize("depth", [1, 100, 199, 250, 1_000, 5_000])
def test_nesting_of_any_depth_hides_the_key_and_never_raises(depth: int) -> None:
    body = b'{"a":' * depth + b'"sk-proj-a1B2c3D4e5F6g7H8i9J0"' + b"}" * depth
    asked, changed = Redactor(Redact(), b"salt").request(request("r", at=1.0, body=body))
    assert changed and b"sk-proj" not in asked.body


def test_json_within_strings_within_json_hides_the_key_and_never_raises() -> None:
    text = "sk-proj-a1B2c3D4e5F6g7H8i9J0"
    for _ in range(8):
        value: Any = text
        for _ in range(120):
            value = {"b": value}
        text = orjson.dumps(value).decode()
        asked, changed = Redactor(Redact(), b"salt").request(request("r", at=1.0, body=text.encode()))
        assert changed and b"sk-proj" not in asked.body


def test_no_pattern_uses_what_old_pythons_get_wrong() -> None:
    """Possessive quantifiers and atomic groups of Python 3.11.0 to 3.11.4 miss matches: a key would stay."""
    found = [pattern for pattern in vars(sensitive).values() if isinstance(pattern, re.Pattern)]
    assert len(found) > 10
    for pattern in found:
        bare = re.sub(r"\\.|\[[^\]]*\]", "x", pattern.pattern)
        assert not re.search(r"[*+?}]\+|\(\?>", bare), pattern


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN PRIVATE KEY-----",
        "eyJ" + "a" * 5_000 + " ",
        "-----BEGIN PRIVATE KEY-----" + "A" * 100 + "-",
    ],
)
def test_hostile_repetition_takes_linear_time(text: str) -> None:
    hide = Redactor(Redact(), b"salt").text
    start = time.perf_counter()
    hide(text * (200_000 // len(text)))
    short = time.perf_counter() - start
    start = time.perf_counter()
    hide(text * (800_000 // len(text)))
    assert time.perf_counter() - start < 12 * short + 0.2
