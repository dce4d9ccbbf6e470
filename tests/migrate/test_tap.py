from __future__ import annotations

import json
from time import monotonic
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.channel import Admitted, Answered, Message
from migrate.config import Shadow
from migrate.tap import EVENTS, OUTCOMES, Tap, Ticket
from replay.exchange import Ending

CHAT = "/v1/chat/completions"
HEADERS = (
    (b"Content-Type", b"application/json"),
    (b"Authorization", b"Bearer sk-secret"),
    (b"X-Session", b"s"),
)


class Sink:
    """Keeps what it takes; refuses with ``reason`` when there is one."""

    def __init__(self, reason: str | None = None) -> None:
        self.reason = reason
        self.taken: list[Message] = []

    def __call__(self, message: Message) -> str | None:
        if self.reason is None:
            self.taken.append(message)
        return self.reason


def tap(sink: Sink | None = None, **shadow: Any) -> Tap:
    return Tap(Shadow.model_validate({"percent": 100, **shadow}), sink or Sink())


def offered(tap: Tap, body: object, *, path: str = CHAT, method: str = "POST") -> Ticket | None:
    """One request, decided."""
    ticket = tap.admit(method, path, HEADERS)
    if ticket is not None:
        ticket.body = body if isinstance(body, bytes) else json.dumps(body).encode()
        ticket.sent_at = monotonic()
        ticket.offer()
    return ticket


def outcome(tap: Tap) -> str:
    """What the one request was counted as."""
    (name,) = (name for name in OUTCOMES if tap.counters[name])
    assert tap.counters["passed"] == tap.counters[name] == 1
    return name


def question(text: str = "hi", **more: object) -> dict[str, object]:
    return {"messages": [{"role": "user", "content": text}], **more}


@pytest.mark.parametrize(
    ("name", "path", "body"),
    [
        ("mirrored", CHAT, question()),
        ("mirrored", CHAT + "?api-version=1", question(store=True)),
        ("not_eligible", "/v1/embeddings", question()),
        ("not_json", CHAT, b"{"),
        ("not_json", CHAT, b"[1]"),
        ("not_json", CHAT, b""),
        ("not_json", CHAT, b"\x1f\x8b\x08"),
        ("mirrored", CHAT, b'{"a":' + b"[" * 199 + b"]" * 199 + b"}"),
        ("not_json", CHAT, b'{"a":' + b"[" * 200 + b"]" * 200 + b"}"),
        ("not_json", CHAT, b'{"a":' + b"[" * 5_000 + b"]" * 5_000 + b"}"),
        ("stateful", CHAT, question(previous_response_id="r")),
    ],
)
def test_each_request_is_counted_once_by_its_reason(name: str, path: str, body: object) -> None:
    one = tap()
    offered(one, body, path=path)
    assert outcome(one) == name


def test_only_post_is_generation() -> None:
    one = tap()
    assert offered(one, question(), method="GET") is None
    assert outcome(one) == "not_eligible"


@pytest.mark.parametrize("reason", ["queue_full", "mirror_down"])
def test_what_the_channel_does_not_take_is_counted_and_not_recorded(reason: str) -> None:
    one = tap(Sink(reason))
    ticket = offered(one, question())
    assert outcome(one) == reason
    assert ticket is not None and not ticket.recording


def test_the_switch_stops_at_once_and_nothing_is_even_looked_at() -> None:
    one = tap()
    waiting = one.admit("POST", CHAT, HEADERS)
    one.mirroring = False
    assert one.admit("POST", CHAT, HEADERS) is None
    assert waiting is not None
    waiting.offer()
    assert one.counters["paused"] == 2


def test_at_zero_percent_nothing_is_sampled() -> None:
    one = tap(percent=0)
    assert offered(one, question()) is None
    assert outcome(one) == "not_sampled"


def test_the_sink_sees_no_credentials() -> None:
    sink = Sink()
    ticket = offered(
        tap(sink, sample_by="header:X-Session"), question(), path=CHAT + "?key=sk-secret&model=a"
    )
    assert ticket is not None
    ticket.head(1.0, 200, ((b"Set-Cookie", b"sk-secret"), (b"X-Request-Id", b"1")))
    ticket.end(2.0, Ending.COMPLETE)
    admitted, answered = sink.taken
    assert isinstance(admitted, Admitted) and isinstance(answered, Answered)
    assert admitted.request.headers == (("Content-Type", "application/json"), ("X-Session", "s"))
    assert admitted.request.path == CHAT + "?model=a"
    assert answered.recording.headers == (("X-Request-Id", "1"),)
    assert "sk-secret" not in repr(sink.taken)


def test_a_conversation_is_mirrored_whole() -> None:
    sink = Sink()
    one = tap(sink, percent=30)
    for turn in range(5):
        for name in range(200):
            history = [
                {"role": "user", "content": f"opening {name}"},
                *({"role": "user", "content": "more"},) * turn,
            ]
            offered(one, {"messages": history})
    sizes: dict[str, int] = {}
    for message in sink.taken:
        assert isinstance(message, Admitted)
        sizes[message.request.conversation] = sizes.get(message.request.conversation, 0) + 1
    assert set(sizes.values()) == {5}
    assert 30 <= len(sizes) <= 90


def test_an_answer_is_recorded_with_its_times() -> None:
    sink = Sink()
    ticket = offered(tap(sink), question())
    assert ticket is not None and ticket.recording
    ticket.head(10.0, 200, ())
    ticket.feed(10.5, b"a")
    ticket.feed(11.0, b"b")
    ticket.end(11.5, Ending.COMPLETE)
    ticket.end(12.0, Ending.RESET)
    answered = sink.taken[1]
    assert isinstance(answered, Answered) and len(sink.taken) == 2
    recording = answered.recording
    assert (recording.sent_at, recording.head_at, recording.ended_at) == (ticket.sent_at, 10.0, 11.5)
    assert recording.chunks == ((10.5, b"a"), (11.0, b"b"))


def test_an_answer_beyond_its_limit_is_given_up_and_its_memory_freed() -> None:
    sink = Sink()
    one = tap(sink, max_answer=1000)
    ticket = offered(one, question())
    assert ticket is not None
    ticket.head(1.0, 200, ())
    for _ in range(5):
        ticket.feed(2.0, b"x" * 300)
    ticket.end(3.0, Ending.COMPLETE)
    answered = sink.taken[1]
    assert isinstance(answered, Answered)
    assert answered.recording.ending is Ending.OVERSIZE
    assert (answered.recording.status, answered.recording.chunks) == (200, ())
    assert one.counters["answers_oversize"] == 1
    assert one.hold(one.shadow.queue)


def test_unfinished_answers_are_bounded_all_together() -> None:
    sink = Sink()
    one = tap(sink, queue=1000)
    first, second = offered(one, question("a")), offered(one, question("b"))
    assert first is not None and second is not None
    first.feed(1.0, b"x" * 800)
    second.feed(1.0, b"x" * 300)
    first.end(2.0, Ending.COMPLETE)
    second.end(2.0, Ending.COMPLETE)
    endings = [message.recording.ending for message in sink.taken if isinstance(message, Answered)]
    assert endings == [Ending.COMPLETE, Ending.OVERSIZE]
    assert one.hold(1000)


def test_an_answer_that_does_not_fit_is_reported_as_lost() -> None:
    class Tight(Sink):
        def __call__(self, message: Message) -> str | None:
            big = isinstance(message, Answered) and message.recording.chunks
            return "queue_full" if big else super().__call__(message)

    sink = Tight()
    one = tap(sink)
    ticket = offered(one, question())
    assert ticket is not None
    ticket.feed(1.0, b"x")
    ticket.end(2.0, Ending.COMPLETE)
    answered = sink.taken[1]
    assert isinstance(answered, Answered) and answered.recording.ending is Ending.OVERSIZE
    assert one.counters["answers_dropped"] == 1


def test_a_defect_of_the_tap_reaches_nobody(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Sink):
        def __call__(self, message: Message) -> str | None:
            raise ValueError("a defect")

    one = tap(Broken())
    offered(one, question())
    assert outcome(one) == "tap_failed"
    assert "a defect" in caplog.text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["messages", "input", "prompt", "user", "tools", "role", "content", "file_id", "audio", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(
    JSON | st.binary(max_size=20), st.sampled_from(["conversation", "user", "request", "header:X-Session"])
)
def test_whatever_a_client_sends_is_counted_once_and_never_fails(body: object, by: str) -> None:
    one = tap(sample_by=by, percent=50)
    offered(one, body)
    assert outcome(one) != "tap_failed"
    assert set(one.counters) == {*EVENTS, *OUTCOMES}
