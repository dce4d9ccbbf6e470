"""What a server says of itself at ``/metrics``: the few figures that matter beside a load, from Prometheus text, or
TensorRT-LLM's statistics of iterations in JSON. Pure."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import orjson
from prometheus_client.parser import text_string_to_metric_families

_NAMES = {
    "vllm:num_requests_running": "running",
    "vllm:num_requests_waiting": "waiting",
    "vllm:kv_cache_usage_perc": "kv_cache",
    "vllm:request_queue_time_seconds_sum": "queued_s",
    "vllm:request_queue_time_seconds_count": "queued",
    "vllm:prefix_cache_queries_total": "prefix_queries",
    "vllm:prefix_cache_hits_total": "prefix_hits",
    "vllm:num_preemptions_total": "preemptions",
    "trtllm_num_requests_running": "running",
    "trtllm_num_requests_waiting": "waiting",
    "trtllm_kv_cache_utilization": "kv_cache",
    "trtllm_request_queue_time_seconds_sum": "queued_s",
    "trtllm_request_queue_time_seconds_count": "queued",
    "sglang:num_running_reqs": "running",
    "sglang:num_queue_reqs": "waiting",
    "sglang:token_usage": "kv_cache",
    "sglang:queue_time_seconds_sum": "queued_s",
    "sglang:queue_time_seconds_count": "queued",
    "llamacpp:requests_processing": "running",
    "llamacpp:requests_deferred": "waiting",
}
"""TensorRT-LLM states its cache's hit rate over the life of the server only, which says nothing of a step."""
_WANTED = re.compile(rb"\n((?:%s)[ \t{][^\n]*)" % b"|".join(re.escape(name.encode()) for name in _NAMES))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One look at a server, over all of its engines; what it does not state is ``None``."""

    at: float
    """On the clock of who looked."""
    running: float | None = None
    """Requests that it works on."""
    waiting: float | None = None
    """Requests in its queue."""
    kv_cache: float | None = None
    """Share of the KV cache in use, of the fullest engine."""
    queued_s: float | None = None
    """Seconds in the queue, of all requests so far."""
    queued: float | None = None
    """How many those were."""
    prefix_queries: float | None = None
    """Tokens looked up in the prefix cache so far."""
    prefix_hits: float | None = None
    """Tokens found there."""
    preemptions: float | None = None
    """Requests taken out of the batch so far."""


def wanted(text: bytes) -> bytes:
    """The part that ``reading`` needs: a page of 100 kB becomes one of 1 kB in about a millisecond.

    Of TensorRT-LLM's list of iterations in JSON the last one.
    """
    if text.lstrip()[:1] == b"[":
        entries = _json(text)
        last = entries[-1] if isinstance(entries, list) and entries else None
        return orjson.dumps(last) if isinstance(last, dict) else b""
    return b"\n".join(_WANTED.findall(b"\n" + text))


def reading(at: float, text: bytes) -> Reading:
    """The figures in a page, or in what ``wanted`` left of it. A page of neither kind states nothing."""
    text = text if text[:1] == b"{" else wanted(text)
    if text[:1] == b"{":
        return _of_iteration(at, _json(text))
    found: dict[str, float] = {}
    try:
        for family in text_string_to_metric_families(text.decode("utf-8", "replace")):
            for sample in family.samples:
                name, value = _NAMES.get(sample.name), float(sample.value)
                if name is not None and math.isfinite(value):
                    before = found.get(name, 0.0)
                    found[name] = max(before, value) if name == "kv_cache" else before + value
    except ValueError:
        return Reading(at=at)
    return Reading(at=at, **{name: value for name, value in found.items() if math.isfinite(value)})


def _of_iteration(at: float, data: Any) -> Reading:
    """TensorRT-LLM's names: ``numActiveRequests``, ``numQueuedRequests``, and of ``kvCacheStats`` used and all blocks."""
    blocks = data.get("kvCacheStats")
    used, most = (_figure(blocks, name) for name in ("usedNumBlocks", "maxNumBlocks"))
    return Reading(
        at=at,
        running=_figure(data, "numActiveRequests"),
        waiting=_figure(data, "numQueuedRequests"),
        kv_cache=used / most if used is not None and most else None,
    )


def _figure(data: Any, name: str) -> float | None:
    value = data.get(name) if isinstance(data, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and value >= 0 else None


def _json(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
