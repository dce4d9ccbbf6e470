"""The one search for signs of a secret never lets one pass: where it finds none, the patterns change nothing."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from migrate import sensitive
from migrate.config import Redact
from migrate.redact import Redactor
from replay.exchange import Answer, Choice, ToolCall
from tests.migrate.samples import observation, observations
from tests.migrate.test_redact import HARMLESS, SECRETS

REDACTOR = Redactor(Redact(), salt=b"0123456789abcdef")
STEPS = (sensitive.hide_keys, sensitive.hide_emails, sensitive.hide_cards, sensitive.hide_phones)
PATTERNS = [found for found in vars(sensitive).values() if isinstance(found, re.Pattern)]


def by_patterns(text: str) -> str:
    """What redaction makes of a text by definition."""
    for step in STEPS:
        text = step(text, REDACTOR.placeholder)
    return text


# Pieces of what the patterns look for, and of what they must not be fooled by.
_words = """
sk- sk_live_ gsk_ hs_ github_pat_ xoxb- hf_ r8_ key- eyJ AKIA AIza Bearer basic authorization api_key ACCESS-TOKEN passwd token
client_secret passphrase a1B2c3D4e5F6g7H8i9J0 0123456789ABCDEF abcdefgh hunter2hunter2 https:// user: example. org @ %40 + +4 ( )
020 7946 0958 555 123 4567 1 4111 1111 378282246310005 3782 822463 10005 phone WhatsApp 0301234567 [key:abcdefghijkl]
= : " ' \\ \\n / . - _ [ { } ,
"""
_letters = (
    "\n\t\x0b\x0c\x1d\x85\xa0\u2003 \u0131\u0130\u017f\u212a\u0663\uff11\U0001d7d9\u0966\ud800\xe9\u4e2d"
)
_pieces = st.sampled_from([*_words.split(), *_letters, " = ", "-----BEGIN PRIVATE KEY-----", "A" * 41])
_texts = (
    st.lists(_pieces | st.text(max_size=3), max_size=12).map("".join)
    | st.one_of([st.from_regex(pattern) for pattern in PATTERNS])
    | st.tuples(st.text(max_size=4), st.sampled_from(SECRETS + HARMLESS), st.text(max_size=4)).map("".join)
)


@settings(max_examples=1_000, deadline=None)
@given(_texts)
def test_a_text_becomes_what_the_patterns_make_of_it(text: str) -> None:
    assert REDACTOR.text(text) == by_patterns(text)


def _quoted(value: Any, how: int) -> str:
    """JSON of a value as one client or another writes it."""
    text = json.dumps(value, ensure_ascii=how % 2 == 0, separators=((",", ":"), (" , ", " : "))[how % 3 == 0])
    return text.replace("/", "\\/") if how % 5 == 0 else text


_quotings = st.integers(0, 29)
_names = _texts | st.sampled_from(["api_key", "password", "max_tokens", "content", "x-client-secret"])
_values = st.recursive(
    _texts | st.integers() | st.floats(allow_nan=False) | st.booleans() | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(_names, inner, max_size=3)
        | st.builds(_quoted, st.dictionaries(_names, inner, max_size=2), _quotings)
    ),
    max_leaves=5,
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(_names, _values, max_size=3), _quotings)
def test_a_body_is_left_alone_only_when_looking_through_it_changes_nothing(
    value: dict[str, Any], how: int
) -> None:
    body = _quoted(value, how).encode("utf-8", "surrogatepass")
    if REDACTOR._plain(body):
        read = orjson.loads(body)
        assert REDACTOR._value(read) == read


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("depth", range(4))
def test_a_secret_is_seen_through_every_quoting(secret: str, depth: int) -> None:
    for how in range(30):
        value: Any = {"content": f"use {secret} now"}
        for _ in range(depth):
            value = {"arguments": _quoted(value, how)}
        assert not REDACTOR._plain(_quoted(value, how).encode())


@settings(max_examples=300, deadline=None)
@given(_texts, st.sampled_from(["text", "reasoning", "refusal", "arguments", "name"]))
def test_an_answer_is_left_alone_only_when_looking_through_it_changes_nothing(text: str, place: str) -> None:
    call = ToolCall(name=text if place == "name" else "f", arguments=text if place == "arguments" else "{}")
    fields = {place: text} if place in ("text", "reasoning", "refusal") else {}
    answer = Answer(choices=(Choice(tool_calls=(call,), **fields),))  # type: ignore[arg-type]
    seen = dataclasses.replace(observation(), answer=answer, raw=None)
    assert REDACTOR.observation(seen).answer == REDACTOR._answer(answer)


@given(observations)
def test_any_observation_is_redacted_alike_with_its_raw_body_and_without(seen: Any) -> None:
    """Only without one is the whole of it searched at once."""
    with_raw = REDACTOR.observation(dataclasses.replace(seen, raw=b""))
    assert REDACTOR.observation(dataclasses.replace(seen, raw=None)) == dataclasses.replace(
        with_raw, raw=None
    )


def test_every_digit_and_white_space_of_this_python_is_known_to_the_search() -> None:
    """The automaton carries Unicode tables of its own."""
    everything = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    digits = [one for one in everything if re.match(r"\d", one)]
    spaces = [one for one in everything if re.match(r"\s", one)]
    assert len(digits) > 600 and len(spaces) > 20
    for text in (
        *(f"+44 20 7946 095{digit}" for digit in digits),
        *(f"password{space}= hunter2hunter2" for space in spaces),
    ):
        assert by_patterns(text) != text and REDACTOR.text(text) == by_patterns(text), ascii(text)


def test_letters_that_only_case_folding_makes_equal_are_known_to_the_search() -> None:
    everything = (chr(code) for code in range(128, sys.maxunicode + 1))
    alike = [one for one in everything if re.match("[a-z]", one, re.IGNORECASE)]
    assert {"\u017f", "\u212a"} <= set(alike)
    texts = (
        "api_key: hunter2hunter2",
        "access_token: hunter2hunter2 key",
        "password: hunter2hunter2 key",
        "client_secret: hunter2hunter2 key",
        "mobile 0301234567",
        "WhatsApp 0301234567",
        "bearer abcdef0123456789xyz",
        "authorization: basic abcdef0123456789",
    )
    for text in texts:
        for at in range(len(text)):
            for one in alike:
                changed = text[:at] + one + text[at + 1 :]
                assert REDACTOR.text(changed) == by_patterns(changed), ascii(changed)


@pytest.mark.parametrize("text", HARMLESS[:3] + HARMLESS[7:9])
def test_most_texts_show_no_sign(text: str) -> None:
    assert not sensitive.suspicious(text.encode())


def test_own_patterns_and_fields_are_looked_for_whatever_the_search_says() -> None:
    rules = Redactor(Redact(patterns=("harbour",), fields=("user",)), salt=b"0123456789abcdef")
    assert "harbour" not in rules.text("the harbour")
    assert b"harbour" not in rules._body(b'{"content":"the harbour"}')
    assert rules._body(b'{"user":"u"}').startswith(b'{"user":"[field:')
    kept = dataclasses.replace(observation(text="the harbour"), raw=None)
    redacted = rules.observation(kept).answer
    assert redacted is not None and "harbour" not in redacted.first.text
