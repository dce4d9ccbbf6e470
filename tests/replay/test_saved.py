"""Responses as ``curl -si`` saves them."""

from __future__ import annotations

import gzip

import pytest

from replay.exchange import Ending
from replay.saved import NotSaved, read_saved

BODY = b'{"choices":[]}'
CHUNKED = b"7\r\n" + BODY[:7] + b"\r\n7;x=y\r\n" + BODY[7:] + b"\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n",
        b"HTTP/2 200 \r\ncontent-type: application/json\r\n\r\n",
        b"HTTP/1.1 200 OK\nContent-Type: application/json\n\n",
        (
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
        ),
        b"HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n",
        b"\xef\xbb\xbf\r\nHTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n",
    ],
)
def test_any_head_that_curl_prints(head: bytes) -> None:
    found = read_saved(head + BODY)
    assert (found.status, [(name.lower(), value) for name, value in found.headers]) == (
        200,
        [("content-type", "application/json")],
    )
    assert found.chunks == ((0.0, BODY),) and found.ending is Ending.COMPLETE


def test_a_response_without_header_fields() -> None:
    found = read_saved(b"HTTP/1.1 204 No Content\r\n\r\n")
    assert (found.status, found.headers, found.chunks) == (204, (), ())


@pytest.mark.parametrize(
    "body", [BODY, CHUNKED, CHUNKED.replace(b"\r\n", b"\n")], ids=["taken out", "--raw", "--raw with LF"]
)
def test_chunk_framing_may_be_there_or_not(body: bytes) -> None:
    found = read_saved(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body)
    assert b"".join(data for _, data in found.chunks) == BODY and found.ending is Ending.COMPLETE


@pytest.mark.parametrize("body", [CHUNKED[:9], CHUNKED[:14], CHUNKED[:-5]])
def test_a_chunked_body_that_was_cut(body: bytes) -> None:
    found = read_saved(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body)
    assert found.ending is Ending.RESET and found.detail


def test_a_body_shorter_than_its_length_was_cut_and_a_line_end_at_its_end_is_nothing() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n"
    assert read_saved(head + BODY[:5]).ending is Ending.RESET
    assert read_saved(head + BODY + b"\n").ending is Ending.COMPLETE


def test_a_coding_that_curl_has_undone_already_is_dropped() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 9999\r\n\r\n"
    found = read_saved(head + BODY)
    assert found.headers == () and found.ending is Ending.COMPLETE
    packed = gzip.compress(BODY)
    kept = read_saved(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + packed)
    assert kept.headers == (("Content-Encoding", "gzip"),)


@pytest.mark.parametrize("data", [b"", b'{"a":1}', b"<html>", b"HTTP/1.1 OK\r\n\r\n", b"\xff\x00"])
def test_what_is_no_response_is_said_to_be_none(data: bytes) -> None:
    with pytest.raises(NotSaved, match="curl -si"):
        read_saved(data)


def test_times_come_from_the_file_beside_it() -> None:
    head = b"HTTP/1.1 200 OK\r\n\r\n"
    found = read_saved(head + BODY, "0.5\t4\n\n1.25\t10\n")
    assert found.chunks == ((0.5, BODY[:4]), (1.25, BODY[4:])) and found.ended_at == 1.25
    framed = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKED
    assert read_saved(framed, f"1\t5\n2\t{len(CHUNKED) - 5}").chunks == ((2.0, BODY[:7]), (2.0, BODY[7:]))
    assert [at for at, _ in read_saved(framed, f"1\t12\n2\t{len(CHUNKED) - 12}").chunks] == [1.0, 2.0]


@pytest.mark.parametrize("timing", ["1\t3", "soon\t14", "1 14", "-1\t14", "nan\t14", "1\t-14"])
def test_times_that_cannot_be_are_refused(timing: str) -> None:
    with pytest.raises(NotSaved, match="timing file"):
        read_saved(b"HTTP/1.1 200 OK\r\n\r\n" + BODY, timing)


def test_trailers_that_curl_writes_behind_the_body_are_not_the_body() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum, X-Time\r\n\r\n"
    for tail in (b"X-Sum: abc\r\nX-Time: 3\r\n", b"\r\nX-Time: 3\r\n", b""):
        assert read_saved(head + BODY + tail).chunks == ((0.0, BODY),)


@pytest.mark.parametrize("coding", ["br", "deflate", "zstd"])
def test_a_plain_body_of_any_kind_under_a_coding_was_decoded_by_curl(coding: str) -> None:
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\n\r\n".encode()
    for body in (b"id: 1\ndata: {}\n\n", b"<html>busy</html>"):
        assert read_saved(head + body).headers == ()


def test_a_file_that_a_shell_saved_as_utf_16() -> None:
    text = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + BODY.decode()
    found = read_saved(text.encode("utf-16"))
    assert found.status == 200 and found.chunks == ((0.0, BODY),)


def test_a_text_that_looks_like_a_chunk_size_is_a_text() -> None:
    found = read_saved(b"HTTP/1.1 400 X\r\nTransfer-Encoding: chunked\r\n\r\nbad\nrequest")
    assert found.chunks == ((0.0, b"bad\nrequest"),) and found.ending is Ending.COMPLETE


def test_a_header_field_may_hold_any_byte() -> None:
    found = read_saved(b"HTTP/1.1 200 OK\r\nX-Region: \xc3\x85land\r\nX-Next: 1\r\n\r\n")
    assert [name for name, _ in found.headers] == ["X-Region", "X-Next"] and found.headers[0][1].endswith(
        "land"
    )
