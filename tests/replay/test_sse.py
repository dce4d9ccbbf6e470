"""Server-sent events: any cut of the same bytes gives the same events, and those of the standard."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.sse import Decoder, Event

STREAM = (
    "\ufeff: hello\r\ndata:a\r\rdata: caf\u00e9\u2028x\r\ndata:  two\r\n\n"
    "event: done\ndata\n\nid: 4\n\ndata: last\n\n"
).encode()
EVENTS: list[Event] = [
    (b"a", b""),
    ("caf\u00e9\u2028x\n two".encode(), b""),
    (b"", b"done"),
    (b"last", b""),
]
PIECES = st.lists(
    st.sampled_from(
        [
            b"\n",
            b"\r",
            b"\r\n",
            b"data",
            b"data:",
            b"data: ",
            b": c",
            b"event: e",
            b"x",
            b"\xe2\x80\xa8",
            b"\xef\xbb\xbf",
            b"id: 1",
        ]
    ),
    max_size=30,
).map(b"".join)


def decode(pieces: list[bytes], limit: int = 1_000) -> tuple[list[Event], dict[str, Any]]:
    """The events, and what was counted."""
    decoder = Decoder(limit)
    events = [event for piece in pieces for event in decoder.feed(piece)]
    names = ("comments", "joined", "too_long", "marked", "unknown")
    return [*events, *filter(None, [decoder.end()])], {name: getattr(decoder, name) for name in names}


def by_the_standard(stream: bytes) -> list[Event]:
    """The algorithm of the standard, line by line over the whole stream; with the event that its end cut off."""
    events: list[Event] = []
    data: list[bytes] = []
    name = b""
    for line in [*re.split(rb"\r\n|\n|\r", stream.removeprefix(b"\xef\xbb\xbf")), b""]:
        if not line:
            if data:
                events.append((b"\n".join(data), name))
            data, name = [], b""
        field, _, value = line.partition(b":")
        value = value[1:] if value.startswith(b" ") else value
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value
    return events


def test_whole_stream_follows_the_standard() -> None:
    assert decode([STREAM])[0] == by_the_standard(STREAM) == EVENTS


def test_one_byte_at_a_time_gives_the_same_events() -> None:
    assert decode([bytes([byte]) for byte in STREAM]) == decode([STREAM])


def test_split_at_every_position_gives_the_same_events() -> None:
    for at in range(len(STREAM) + 1):
        assert decode([STREAM[:at], STREAM[at:]]) == decode([STREAM]), at


@given(PIECES, st.lists(st.integers(0, 100), max_size=12), st.sampled_from([5, 20, 1_000]))
def test_any_bytes_in_any_cut_decode_by_the_standard(stream: bytes, cuts: list[int], limit: int) -> None:
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    whole = decode([stream], limit)
    assert decode([stream[a:b] for a, b in itertools.pairwise(edges)], limit) == whole
    if limit == 1_000:
        assert whole[0] == by_the_standard(stream)


def test_comments_are_counted_and_dispatch_nothing() -> None:
    events, counted = decode([b": wait\n\n: wait\n\n"])
    assert events == [] and counted["comments"] == 2 and counted["unknown"] is None


def test_a_line_of_no_known_field_is_kept_as_evidence() -> None:
    events, counted = decode([b'{"choices":[]}\n\nfoo: bar\n\n'])
    assert events == [] and counted["unknown"] == b'{"choices":[]}'


def test_event_without_blank_line_is_only_given_by_end() -> None:
    decoder = Decoder()
    assert decoder.feed(b"data: cut") == []
    assert decoder.end() == (b"cut", b"")
    assert decoder.end() is None


@pytest.mark.parametrize("ending", [b"\n\n", b"\r\n\r\n"])
def test_an_event_beyond_the_limit_is_lost_alone_and_counted(ending: bytes) -> None:
    stream = ending.join([b"data: a", b"data: " + b"x" * 2_000, b"data: b", b""])
    for step in (1, 7, len(stream)):
        events, counted = decode([stream[at : at + step] for at in range(0, len(stream), step)])
        assert events == [(b"a", b""), (b"b", b"")] and counted["too_long"] == 1


def test_keep_alives_without_end_are_no_event_that_grows() -> None:
    events, counted = decode([b": wait\n"] * 10_000 + [b"data: a\n\n"])
    assert events == [(b"a", b"")] and counted["too_long"] == 0


def test_a_long_line_in_many_pieces_costs_linear_work() -> None:
    decoder = Decoder()
    pieces = [b"data: "] + [b"x" * 64] * 100_000 + [b"\n\n"]
    events = [event for piece in pieces for event in decoder.feed(piece)]
    assert [len(data) for data, _ in events] == [6_400_000]
