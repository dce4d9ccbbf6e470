"""Content codings: any cut of the same bytes gives the same text, and what is not what it says it is said to be so."""

from __future__ import annotations

import gzip
import zlib

import brotli
import pytest

from replay.coding import plain, zstd
from replay.exchange import ErrorClass, Outcome
from tests.replay.wire import DONE, SSE, codes, delta, recording, seen

TEXT = b"".join(
    [
        delta(role="assistant", content=""),
        *(delta(content=f"tide {n} ") for n in range(200)),
        delta(finish="stop"),
        DONE,
    ]
)
BARE = zlib.compressobj(wbits=-15)
CODED = {
    "gzip": gzip.compress(TEXT),
    "x-gzip": gzip.compress(TEXT[:100]) + gzip.compress(TEXT[100:]) + b"\0" * 8,
    "deflate": zlib.compress(TEXT),
    "deflate bare": BARE.compress(TEXT) + BARE.flush(),
    "br": brotli.compress(TEXT),
    "zstd": zstd.compress(TEXT),
    "zstd frames": zstd.compress(TEXT[:100]) + zstd.compress(TEXT[100:]),
    "gzip, br": brotli.compress(gzip.compress(TEXT)),
    "identity": TEXT,
}


@pytest.mark.parametrize("name", CODED)
@pytest.mark.parametrize("step", [1, 7, 100_000])
def test_every_coding_in_any_cut(name: str, step: int) -> None:
    data = CODED[name]
    chunks = tuple((n * 0.1, data[at : at + step]) for n, at in enumerate(range(0, len(data), step)))
    found, problem = plain(chunks, name.removesuffix(" bare").removesuffix(" frames"))
    assert (b"".join(piece for _, piece in found), problem) == (TEXT, "")
    assert {at for at, _ in found} <= {at for at, _ in chunks}


@pytest.mark.parametrize("name", ["gzip", "deflate", "br", "zstd"])
def test_a_cut_or_false_coding_is_said_to_be_one(name: str) -> None:
    headers = (*SSE, ("Content-Encoding", name))
    for body in (CODED[name][: len(CODED[name]) // 2], TEXT, b"\xff" * 50):
        got = seen(recording([body], headers=headers))
        assert got.outcome is Outcome.PROTOCOL_ERROR and got.failure is not None
        assert (got.failure.error_class, got.failure.code) == (ErrorClass.MALFORMED, "envelope.coding")
        assert name in got.failure.message


def test_a_coding_of_another_name_is_said_to_be_unknown() -> None:
    got = seen(recording([TEXT], headers=(*SSE, ("Content-Encoding", "lz9"))))
    assert got.failure is not None and "unknown content coding 'lz9'" in got.failure.message


@pytest.mark.parametrize(
    "pack",
    [gzip.compress, zlib.compress, brotli.compress, zstd.compress],
    ids=["gzip", "deflate", "br", "zstd"],
)
def test_a_small_body_that_unpacks_without_end_is_refused(
    pack: object, request: pytest.FixtureRequest
) -> None:
    name = request.node.callspec.id
    packed = pack(b"\0" * 50_000_000)  # type: ignore[operator]
    found, problem = plain(((0.0, packed),), name, limit=1_000_000)
    assert "unpacks to more than" in problem and sum(len(data) for _, data in found) <= 1_000_000


def test_a_coded_stream_that_was_cut_shows_its_beginning() -> None:
    """The transport broke, which is the failure; what had come is still shown."""
    from replay.exchange import Ending

    cut = CODED["gzip"][: len(CODED["gzip"]) // 2]
    got = seen(recording([cut], headers=(*SSE, ("Content-Encoding", "gzip")), ending=Ending.RESET))
    assert got.failure is not None and got.failure.error_class is ErrorClass.RESET
    assert got.answer is not None and got.answer.first.text.startswith("tide 0 tide 1")
    assert "stream.done_missing" not in codes(got)
