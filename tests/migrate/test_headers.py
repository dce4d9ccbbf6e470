from __future__ import annotations

import pytest

from migrate.headers import (
    Framing,
    dropped,
    for_mirror,
    origin_form,
    request_head,
    response_head,
    trailers,
    without_credentials,
)


@pytest.mark.parametrize(
    ("target", "path"),
    [
        (b"/a?b", b"/a?b"),
        (b"*", b"*"),
        (b"http://host:80/a//b?c=%20", b"/a//b?c=%20"),
        (b"http://host", b"/"),
        (b"https://host?q=/x", b"/?q=/x"),
        (b"/p?u=http://a/b", b"/p?u=http://a/b"),
    ],
)
def test_the_target_is_the_path_as_the_client_wrote_it(target: bytes, path: bytes) -> None:
    assert origin_form(target) == path


def test_a_connection_field_cannot_name_away_what_a_message_needs() -> None:
    names = dropped([(b"Connection", b"close, X-A"), (b"connection", b"Content-Length, Host, authorization")])
    assert b"x-a" in names
    assert names.isdisjoint({b"content-length", b"host", b"authorization"})


def test_a_request_keeps_its_fields_and_gets_the_baselines_host_in_the_place_of_its_own() -> None:
    raw = (
        (b"X-A", b"1"),
        (b"hOST", b"gw"),
        (b"Expect", b"100-continue"),
        (b"content-LENGTH", b"9"),
        (b"x-a", b"2"),
    )
    head = request_head(b"POST", b"/x", raw, host=b"b:8000", length=3)
    assert head == b"POST /x HTTP/1.1\r\nX-A: 1\r\nhOST: b:8000\r\ncontent-LENGTH: 3\r\nx-a: 2\r\n\r\n"


def test_a_request_without_host_gets_one() -> None:
    assert request_head(b"GET", b"/", (), host=b"b", length=None) == b"GET / HTTP/1.1\r\nHost: b\r\n\r\n"


def test_a_client_that_reads_trailers_says_so_on_both_hops() -> None:
    head = request_head(b"GET", b"/", ((b"TE", b"gzip, trailers"),), host=b"b", length=None)
    assert head == b"GET / HTTP/1.1\r\nHost: b\r\nTE: trailers\r\nConnection: TE\r\n\r\n"


def test_an_answer_has_one_framing() -> None:
    raw = ((b"Content-Length", b"5"), (b"transfer-ENCODING", b"chunked"), (b"Connection", b"close"))
    chunked = response_head(200, b"OK", raw, framing=Framing.CHUNKED)
    assert chunked == b"HTTP/1.1 200 OK\r\ntransfer-ENCODING: chunked\r\n\r\n"
    closing = response_head(200, b"OK", raw[1:], framing=Framing.UNTIL_CLOSE, connection=b"close")
    assert closing == b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(
    ("tail", "section"),
    [
        (b"3\r\nabc\r\n0\r\n\r\n", b""),
        (b"3\r\nabc\r\n0\r\nX: 1\r\nY: 0\r\n\r\n", b"X: 1\r\nY: 0\r\n"),
        (b"5\r\n0\r\n\r\n\r\n0\r\nX: 1\r\n\r\n", b"X: 1\r\n"),
        (b"0\r\nX: 1\r\n\r\n", b"X: 1\r\n"),
        (b"3\r\nabc\r\n0\r\nX: cut", b""),
        (b"", b""),
        (b"1e\r\nab\r\n0\r\nSet-Cookie: no\r\ncd\r\n0;x=y\r\nX-Sum: 1\r\n\r\n", b"X-Sum: 1\r\n"),
        (b"18\r\n\r\n0\r\nSet-Cookie: no\r\n\r\n00\r\nX: 1\r\n\r\n", b"X: 1\r\n"),
    ],
)
def test_trailers_are_what_follows_the_last_chunk(tail: bytes, section: bytes) -> None:
    assert trailers(tail) == section


def test_validation_sees_no_credential_whatever_it_is_called() -> None:
    raw = [
        (b"Authorization", b"Bearer s"),
        (b"X-API-Key", b"s"),
        (b"api-key", b"s"),
        (b"Cookie", b"s"),
        (b"X-Tenant-Secret", b"s"),
        (b"Content-Type", b"application/json"),
        (b"OpenAI-Beta", b"x=1"),
        (b"X-Team", b"blue"),
    ]
    kept = for_mirror(raw, also="x-team")
    assert kept == (("Content-Type", "application/json"), ("OpenAI-Beta", "x=1"), ("X-Team", "blue"))
    assert for_mirror(raw, also="authorization") == for_mirror(raw, also="x-api-key") == kept[:2]


def test_keys_in_a_query_stay_out() -> None:
    assert without_credentials("/v1/x?api-version=1&api-key=s&KEY=s") == "/v1/x?api-version=1"
    for name in ("subscription-key", "api%5Fkey", "code", "k%65y", "client_secret", "anything"):
        assert without_credentials(f"/v1/x?{name}=s") == "/v1/x"
    assert without_credentials("/v1/x?access_token=s") == "/v1/x"
    assert without_credentials("/v1/x") == "/v1/x"
