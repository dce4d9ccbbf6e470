"""Spans for a tracing backend that is already there (extra ``otel``): one for each copy and each repeat, never a text.

A span joins the trace that the client's request named in ``traceparent``, and is dropped where that trace is not sampled.
Attributes have the names of OpenTelemetry's conventions for generative AI, and ``migrate.*`` for ours.
"""

from __future__ import annotations

import importlib.util
import logging
import os
from threading import Thread
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from pydantic import Field

from migrate.errors import ConfigError
from migrate.variables import Variable
from replay.decoding import parse_object
from replay.exchange import Arm, Observation, Request
from reports.policy import Section

if TYPE_CHECKING:
    from collections.abc import Mapping

_OPERATIONS = {
    "chat/completions": "chat",
    "completions": "text_completion",
    "embeddings": "embeddings",
    "responses": "chat",
}
_QUEUE = 2_048
"""Spans that may wait; more are dropped."""
_LIMIT_S = 5

log = logging.getLogger(__name__)


class Traces(Section):
    """Where spans go, by OTLP over HTTP. What they hold: times, models, counts of tokens, outcomes; no text and no key."""

    url: str = Field(pattern=r"^https?://")
    """The whole address, such as ``http://127.0.0.1:4318/v1/traces``."""
    headers_env: Variable | None = None
    """The environment variable with headers that are sent along, ``name=value,name=value``."""


class Spans(Protocol):
    """Takes note of what was observed."""

    def observed(self, request: Request, seen: Observation) -> None:
        """One answer, or its failure. Never raises and never waits."""

    def close(self) -> None:
        """Sends what is left, for some seconds at most."""


class NoSpans:
    """Nobody wants any."""

    def observed(self, request: Request, seen: Observation) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


def headers(section: Traces) -> dict[str, str]:
    """The headers in the environment. Raises ConfigError for a variable that is not set, or holds something else."""
    if section.headers_env is None:
        return {}
    pairs = [
        part.partition("=") for part in os.environ.get(section.headers_env, "").split(",") if part.strip()
    ]
    if not pairs or not all(name.strip() and mark for name, mark, _ in pairs):
        raise ConfigError(
            f"environment variable {section.headers_env} holds no headers: name=value,name=value"
        )
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def ready(section: Traces | None) -> None:
    """Raises ConfigError for spans that cannot be sent, before a run begins."""
    if section is None:
        return
    headers(section)
    if (
        importlib.util.find_spec("opentelemetry") is None
        or importlib.util.find_spec("opentelemetry.exporter") is None
    ):
        raise ConfigError("traces: needs the extra otel: pip install 'llm-migrate[otel]'")


def spans(section: Traces | None, *, run: str, urls: Mapping[Arm, str]) -> Spans:
    """What sends spans as the configuration says. ``urls``: of the backend that an arm asks."""
    return NoSpans() if section is None else _Otlp(section, run, urls)


class _Otlp:
    def __init__(self, section: Traces, run: str, urls: Mapping[Arm, str]) -> None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        theirs = logging.getLogger("opentelemetry")
        theirs.propagate = False
        theirs.handlers = [_FirstFailure(section.url)]
        exporter = OTLPSpanExporter(endpoint=section.url, headers=headers(section), timeout=_LIMIT_S)
        self._provider = TracerProvider(
            resource=Resource.create({"service.name": "llm-migrate"}), shutdown_on_exit=False
        )
        self._provider.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=_QUEUE))
        self._tracer = self._provider.get_tracer("llm-migrate")
        self._context = TraceContextTextMapPropagator()
        self._run, self._places = run, {arm: urlsplit(url) for arm, url in urls.items()}

    def observed(self, request: Request, seen: Observation) -> None:
        try:
            self._observed(request, seen)
        except Exception:
            log.exception("an answer has no span")

    def _observed(self, request: Request, seen: Observation) -> None:
        from opentelemetry.trace import SpanKind, Status, StatusCode

        if seen.outcome.missing:
            return
        carrier = {name.lower(): value for name, value in request.headers}
        told = self._attributes(request, seen)
        start = _nanoseconds(seen.at)
        span = self._tracer.start_span(
            f"{told['gen_ai.operation.name']} {told.get('gen_ai.request.model', '')}".strip(),
            context=self._context.extract(carrier),
            kind=SpanKind.CLIENT,
            attributes=told,
            start_time=start,
        )
        if seen.outcome.failed:
            span.set_status(Status(StatusCode.ERROR))
        span.end(start + _nanoseconds(seen.timing.e2e_s or 0.0))

    def close(self) -> None:
        ending = Thread(
            target=self._provider.shutdown, daemon=True
        )  # which waits for a collector as long as that likes
        ending.start()
        ending.join(_LIMIT_S)

    def _attributes(self, request: Request, seen: Observation) -> dict[str, Any]:
        body, answer, place = parse_object(request.body) or {}, seen.answer, self._places[seen.arm]
        usage = answer.usage if answer else None
        reasons = (
            [choice.finish_reason for choice in answer.choices if choice.finish_reason] if answer else []
        )
        model = body.get("model")
        told = {
            "gen_ai.operation.name": _operation(request.path),
            "gen_ai.request.model": model[:200] if isinstance(model, str) else None,
            "gen_ai.response.model": answer.model if answer else None,
            "gen_ai.response.finish_reasons": reasons or None,
            "gen_ai.usage.input_tokens": usage.prompt_tokens if usage else None,
            "gen_ai.usage.output_tokens": usage.completion_tokens if usage else None,
            "server.address": place.hostname,
            "server.port": place.port or (443 if place.scheme == "https" else 80),
            "http.response.status_code": seen.status,
            "error.type": (seen.failure.error_class.value if seen.failure else seen.outcome.value)
            if seen.outcome.failed
            else None,
            "migrate.run": self._run,
            "migrate.arm": seen.arm.value,
            "migrate.pair": request.id,
            "migrate.outcome": seen.outcome.value,
            "migrate.ttft_s": seen.timing.ttft_s,
        }
        return {name: value for name, value in told.items() if value is not None}


def _nanoseconds(seconds: float) -> int:
    """To the microsecond: a float has no more of today's time."""
    return round(seconds * 1e6) * 1000


def _operation(path: str) -> str:
    route = path.partition("?")[0].partition("/v1/")[2]
    return _OPERATIONS.get(route, route or "request")


class _FirstFailure(logging.Handler):
    """A backend that is away is said once, and not for every batch."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url, self._told = url, False

    def emit(self, record: logging.LogRecord) -> None:
        if not self._told:
            self._told = True
            log.warning("%s takes no spans (%s); all else goes on", self._url, record.getMessage()[:200])
