"""What a third party gets is said before it does; what stays within our trust is not spoken of."""

from __future__ import annotations

import orjson
import pytest

from migrate import leaving
from migrate.config import Config
from migrate.mirror.adapt import call_for
from migrate.servers import backends
from replay.exchange import Request

OURS = {"kind": "vllm", "url": "http://127.0.0.1:1"}
THEIRS = {"kind": "relay", "url": "https://relay.test", "api_key_env": "RELAY_KEY"}


def config(candidate: dict[str, object], **more: object) -> Config:
    return Config.model_validate({"baseline": OURS, "candidate": candidate, **more})


def replayed(made: Config, *bodies: bytes) -> list[str]:
    return list(leaving.replayed(made, [one for _, one in backends(made)], bodies))


def test_nothing_is_said_where_nothing_leaves() -> None:
    made = config(OURS | {"url": "http://127.0.0.1:2"})
    assert not list(leaving.mirrored(made)) and not replayed(made, b"{}")
    assert not list(leaving.mirrored(config(THEIRS | {"third_party": False})))
    assert not list(leaving.mirrored(Config.model_validate({"baseline": THEIRS})))


def test_a_mirror_says_whom_with_which_key_and_what_is_held_back() -> None:
    first, second = leaving.mirrored(config(THEIRS))
    assert "https://relay.test" in first and "the key in RELAY_KEY" in first
    assert "(keys, emails, cards, phones)" in second and "not_comparable.redaction" in second


def test_a_mirror_that_sends_redacted_copies_says_so() -> None:
    *_, last = leaving.mirrored(config(THEIRS, shadow={"send_redacted": True}, redact={"patterns": ["a+"]}))
    assert "placeholders" in last and "1 own pattern)" in last and "not compared" in last


def test_the_headers_that_it_names_are_those_that_leave() -> None:
    made = config(THEIRS)
    assert made.candidate is not None
    known = ("Content-Type", "Accept", "OpenAI-Beta", "User-Agent", "X-Request-Id")
    request = Request(
        id="a",
        conversation="c",
        at=0.0,
        method="POST",
        path="/v1/chat/completions",
        headers=tuple((name, "x") for name in known),
        body=b"{}",
    )
    call = call_for(request, made.candidate, names={}, key=None, shadow=made.shadow)
    left = {name.lower() for name, _ in call.headers} - {"x-llm-migrate-copy"}
    assert left == set(leaving._headers().removeprefix("its headers ").replace(" and ", ", ").split(", "))


def test_a_replay_counts_fields_and_placeholders() -> None:
    bodies = [orjson.dumps({"model": "m", "messages": [{"content": f"call {n}"}]}) for n in range(3)]
    hidden = b'{"model": "m", "prompt": "write to [email:abcdefghijkl]"}'
    _, fields, redacted = replayed(config(THEIRS), *bodies, hidden, b"no json", b"[1]")
    assert "among the first 6: model 4, messages 3, prompt 1" in fields
    assert redacted.endswith("1 of them hold placeholders")


@pytest.mark.parametrize("count", [0, 40])
def test_many_fields_are_not_listed_without_end(count: int) -> None:
    _, fields, _ = replayed(config(THEIRS), orjson.dumps({f"field{n}": 1 for n in range(count)}))
    assert len(fields) < 400 and ("28 more" in fields if count else fields.endswith("none"))
