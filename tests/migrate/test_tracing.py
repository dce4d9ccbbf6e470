"""Spans of a run as a collector gets them: which, with what in them, and what happens when nobody takes them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from migrate.config import parse
from migrate.errors import ConfigError
from migrate.tracing import headers, spans
from replay.exchange import (
    Answer,
    Arm,
    Choice,
    ErrorClass,
    Failure,
    Observation,
    Outcome,
    Request,
    Timing,
    Usage,
)
from tests.shadowing import MODEL, shadowing, simulator

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"
SECRET = "sk-planted0Secret0Of0Spans0123"
URLS = dict.fromkeys(Arm, "http://10.0.0.9:8000")


class Collector:
    """Remembers what it is sent."""

    def __init__(self) -> None:
        self.url = ""
        self.heads: list[dict[str, str]] = []
        self.spans: list[Span] = []


@contextmanager
def collecting(status: int = 200, delay_s: float = 0.0) -> Iterator[Collector]:
    found = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            time.sleep(delay_s)
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                import gzip

                body = gzip.decompress(body)
            found.heads.append({name.lower(): value for name, value in self.headers.items()})
            told = ExportTraceServiceRequest.FromString(body)
            found.spans += [one for r in told.resource_spans for s in r.scope_spans for one in s.spans]
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        found.url = f"http://127.0.0.1:{server.server_address[1]}/v1/traces"
        yield found
        server.shutdown()


def told(span: Span) -> dict[str, object]:
    values = {}
    for one in span.attributes:
        kind = one.value.WhichOneof("value")
        value = getattr(one.value, kind or "string_value")
        values[one.key] = [item.string_value for item in value.values] if kind == "array_value" else value
    return values


def request(*fields: tuple[str, str]) -> Request:
    body = b'{"model": "harbor-7b", "messages": [{"role": "user", "content": "Where is the ferry?"}]}'
    return Request(
        id="r1",
        at=1_700_000_000.0,
        method="POST",
        path="/v1/chat/completions",
        headers=fields,
        body=body,
        conversation="c1",
    )


SEEN = Observation(
    request_id="r1",
    arm=Arm.CANDIDATE,
    at=1_700_000_000.25,
    outcome=Outcome.OK,
    status=200,
    answer=Answer(
        model="harbor-7b-fp8",
        usage=Usage(prompt_tokens=9, completion_tokens=4),
        choices=(Choice(text="At pier two.", finish_reason="stop"),),
    ),
    timing=Timing(ttft_s=0.1, e2e_s=0.5),
)


def sent(url: str, *seen: tuple[Request, Observation]) -> None:
    made = spans(parse_traces(url), run="run-1", urls=URLS)
    for asked, one in seen:
        made.observed(asked, one)
    made.close()


def parse_traces(url: str, more: str = ""):  # type: ignore[no-untyped-def]
    return parse(f"baseline: {{kind: vllm, url: 'http://a:1'}}\ntraces: {{url: '{url}'{more}}}\n").traces


def test_a_span_is_of_the_clients_trace_and_says_who_answered_how_fast() -> None:
    with collecting() as found:
        sent(found.url, (request(("traceparent", PARENT)), SEEN))
    (span,) = found.spans
    assert span.trace_id.hex() == TRACE and span.parent_span_id.hex() == "00f067aa0ba902b7"
    assert span.name == "chat harbor-7b" and span.kind == Span.SPAN_KIND_CLIENT
    assert (span.start_time_unix_nano, span.end_time_unix_nano) == (
        1_700_000_000_250_000_000,
        1_700_000_000_750_000_000,
    )
    assert told(span) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "harbor-7b",
        "gen_ai.response.model": "harbor-7b-fp8",
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.usage.input_tokens": 9,
        "gen_ai.usage.output_tokens": 4,
        "server.address": "10.0.0.9",
        "server.port": 8000,
        "http.response.status_code": 200,
        "migrate.run": "run-1",
        "migrate.arm": "candidate",
        "migrate.pair": "r1",
        "migrate.outcome": "ok",
        "migrate.ttft_s": 0.1,
    }
    assert b"ferry" not in span.SerializeToString() and b"pier" not in span.SerializeToString()


def test_a_failure_is_one_and_what_was_not_sent_has_no_span() -> None:
    failure = Failure(outcome=Outcome.HTTP_ERROR, error_class=ErrorClass.OVERLOADED, message="busy")
    failed = Observation(
        request_id="r1", arm=Arm.CANDIDATE, at=1.0, outcome=Outcome.HTTP_ERROR, status=503, failure=failure
    )
    missing = Observation(request_id="r1", arm=Arm.CANDIDATE, at=1.0, outcome=Outcome.NOT_SENT)
    with collecting() as found:
        sent(found.url, (request(), failed), (request(), missing))
    (span,) = found.spans
    assert span.status.code == 2 and told(span)["error.type"] == "overloaded"


def test_a_trace_that_is_not_sampled_stays_so() -> None:
    with collecting() as found:
        sent(found.url, (request(("traceparent", PARENT[:-1] + "0")), SEEN))
    assert not found.spans


@pytest.mark.parametrize("parent", ["", "00-zz", "x" * 10_000])
def test_a_parent_that_is_none_begins_a_trace(parent: str) -> None:
    with collecting() as found:
        sent(found.url, (request(("traceparent", parent)), SEEN))
    assert len(found.spans) == 1 and not found.spans[0].parent_span_id


def test_headers_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTLP", f"x-key={SECRET}, X-Team = harbour")
    with collecting() as found:
        made = spans(parse_traces(found.url, ", headers_env: OTLP"), run="r", urls=URLS)
        made.observed(request(), SEEN)
        made.close()
    assert (found.heads[0]["x-key"], found.heads[0]["x-team"]) == (SECRET, "harbour")
    monkeypatch.setenv("OTLP", SECRET)
    with pytest.raises(ConfigError) as caught:
        headers(parse_traces(found.url, ", headers_env: OTLP"))
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("away", ["refused", "500", "hangs"])
def test_nobody_waits_for_a_collector_that_is_away(away: str, caplog: pytest.LogCaptureFixture) -> None:
    with collecting(500 if away == "500" else 200, 30.0 if away == "hangs" else 0.0) as found:
        url = "http://127.0.0.1:9/v1/traces" if away == "refused" else found.url
        made = spans(parse_traces(url), run="r", urls=URLS)
        start = time.monotonic()
        for _ in range(5_000):
            made.observed(request(), SEEN)
        assert time.monotonic() - start < 5
        made.close()
        assert time.monotonic() - start < 12
    assert sum("takes no spans" in record.getMessage() for record in caplog.records) <= 1


def test_a_run_gives_a_span_for_each_copy_and_repeat(tmp_path: Path) -> None:
    with collecting() as found, simulator() as one, simulator() as other:
        more = f"traces: {{url: '{found.url}'}}\n"
        with shadowing(tmp_path, baseline=one, candidate=other, policy=more) as shadow:
            for n in range(5):
                body = {"model": MODEL, "messages": [{"role": "user", "content": f"Pier {n}?"}]}
                httpx.post(f"{shadow.url}/v1/chat/completions", json=body, headers={"traceparent": PARENT})
            shadow.exchanges(5)
    arms = [told(span)["migrate.arm"] for span in found.spans]
    assert sorted(set(arms)) == ["baseline", "baseline_repeat", "candidate"] and len(arms) == 15
    assert {span.trace_id.hex() for span in found.spans} == {TRACE}
