"""Server-sent events: any cut of the same bytes gives the same events."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from replay.sse import Decoder, Event

STREAM = (
    "\ufeff: hello\r\ndata:a\r\rdata: caf\u00e9\u2028x\r\ndata:  two\r\n\n"
    "event: done\ndata\n\nid: 4\n\ndata: last\n\n"
).encode()
EVENTS = [
    Event(data=b"a"),
    Event(data="caf\u00e9\u2028x\n two".encode()),
    Event(data=b"", name=b"done"),
    Event(data=b"last"),
]


def decode(pieces: list[bytes]) -> list[Event]:
    decoder = Decoder()
    return [event for piece in pieces for event in decoder.feed(piece)]


def test_whole_stream_follows_the_standard() -> None:
    assert decode([STREAM]) == EVENTS


def test_one_byte_at_a_time_gives_the_same_events() -> None:
    assert decode([bytes([byte]) for byte in STREAM]) == EVENTS


def test_split_at_every_position_gives_the_same_events() -> None:
    for at in range(len(STREAM) + 1):
        assert decode([STREAM[:at], STREAM[at:]]) == EVENTS, at


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_any_chunking_decodes_alike(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(STREAM)]
    assert decode([STREAM[a:b] for a, b in itertools.pairwise(edges)]) == EVENTS


def test_comments_are_counted_and_dispatch_nothing() -> None:
    decoder = Decoder()
    assert decoder.feed(b": wait\n\n: wait\n\n") == []
    assert decoder.comments == 2


def test_event_without_blank_line_is_only_given_by_end() -> None:
    decoder = Decoder()
    assert decoder.feed(b"data: cut") == []
    assert decoder.end() == Event(data=b"cut")
    assert decoder.end() is None


def test_a_long_line_in_many_pieces_costs_linear_work() -> None:
    decoder = Decoder()
    pieces = [b"data: "] + [b"x" * 64] * 100_000 + [b"\n\n"]
    events = [event for piece in pieces for event in decoder.feed(piece)]
    assert [len(event.data) for event in events] == [6_400_000]
