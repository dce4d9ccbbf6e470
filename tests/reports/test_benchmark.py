"""The figures of a benchmark, computed by hand."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, fields
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from replay.exchange import (
    Answer,
    Arm,
    Choice,
    ErrorClass,
    Failure,
    Observation,
    Outcome,
    Timing,
    Usage,
)
from replay.prometheus import Reading, reading
from reports.benchmark import (
    DEFINITIONS,
    Benchmark,
    Client,
    Figures,
    Goodput,
    Latency,
    Load,
    Server,
    Steady,
)
from reports.figures import figures
from reports.render.benchmark import render_json, render_terminal
from reports.render.plot import svg
from reports.render.text import columns

OPEN = Load(rate_per_s=10.0, burstiness=1.0, time_s=1.0)
CLOSED = Load(concurrency=2, requests=4)
SOUND = Client(lag_limit_s=0.01, loop_lag_p99_s=0.001, cpu_share=0.2)


def answered(
    at: float,
    *times: float,
    e2e: float,
    tokens: int | None = None,
    lag: float = 0.0,
    connect: float | None = None,
    cached: int | None = None,
) -> Observation:
    usage = (
        None if tokens is None else Usage(prompt_tokens=10, completion_tokens=tokens, cached_tokens=cached)
    )
    return Observation(
        request_id="r",
        arm=Arm.BASELINE,
        at=at,
        outcome=Outcome.OK,
        answer=Answer(choices=(Choice(text="x", finish_reason="stop"),), usage=usage),
        timing=Timing(
            ttft_s=times[0] if times else None, e2e_s=e2e, content_times=times, lag_s=lag, connect_s=connect
        ),
    )


def failed(at: float, error: ErrorClass = ErrorClass.SERVER, e2e: float = 0.1) -> Observation:
    outcome = Outcome.HTTP_ERROR
    failure = Failure(outcome=outcome, error_class=error, message="no")
    return Observation(
        request_id="r", arm=Arm.BASELINE, at=at, outcome=outcome, failure=failure, timing=Timing(e2e_s=e2e)
    )


def left_out(at: float) -> Observation:
    return Observation(request_id="r", arm=Arm.BASELINE, at=at, outcome=Outcome.MIRROR_DROPPED)


def of(*seen: Observation | None, load: Load = OPEN, client: Client = SOUND, **more: Any) -> Figures:
    return figures(load, seen, client=client, **more)


def test_tpot_is_the_tokens_time_not_the_chunks() -> None:
    """Eight tokens in four chunks, 0.3 s from the first to the last: 0.3 / 7 a token, gaps of 0.1 s a chunk."""
    seen = of(answered(0, 0.1, 0.2, 0.3, 0.4, e2e=0.5, tokens=8))
    assert seen.latency["tpot_s"].mean == pytest.approx(0.3 / 7)
    assert seen.latency["itl_s"].samples == 3 and seen.latency["itl_s"].mean == pytest.approx(0.1)
    assert seen.tokens_per_chunk == 2.0
    assert seen.latency["ttft_s"].mean == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("times", "tokens"), [((0.1, 0.2), None), ((0.1,), 1), ((0.1,), 5), ((0.1, 0.2), 1), ((), 5)]
)
def test_what_cannot_be_divided_has_no_tpot_and_is_not_0(
    times: tuple[float, ...], tokens: int | None
) -> None:
    seen = of(answered(0, *times, e2e=0.5, tokens=tokens))
    assert seen.latency["tpot_s"] == Latency(
        samples=0,
        mean=None,
        max=None,
        answered=dict.fromkeys(("p50", "p90", "p95", "p99")),
        with_failures=dict.fromkeys(("p50", "p90", "p95", "p99")),
    )


def test_an_answer_that_was_not_streamed_has_no_ttft() -> None:
    seen = of(answered(0, e2e=0.5, tokens=5))
    assert seen.latency["ttft_s"].samples == 0 and seen.latency["ttft_s"].mean is None
    assert seen.latency["e2e_s"].samples == 1
    assert "1 of 1 answers were not streamed" in seen.notes[0]


def test_quantiles_are_nearest_ranks_and_need_their_values() -> None:
    e2e = of(*(answered(n, e2e=(n + 1) / 100) for n in range(20))).latency["e2e_s"]
    assert e2e.answered == {"p50": 0.10, "p90": 0.18, "p95": 0.19, "p99": None}
    assert e2e.max == 0.20 and e2e.mean == pytest.approx(0.105)
    e2e = of(*(answered(n, e2e=(n + 1) / 1000) for n in range(100))).latency["e2e_s"]
    assert e2e.answered["p99"] == 0.099
    assert of(answered(0, e2e=1.0)).latency["e2e_s"].answered["p50"] is None


def test_a_failure_is_infinitely_slow_in_the_second_column_and_absent_from_the_first() -> None:
    """18 answers of 10 to 180 ms and 2 failures: of 20 values the 19th is infinite, the 18th is 180 ms."""
    seen = of(*(answered(n, 0.005, e2e=(n + 1) / 100) for n in range(18)), failed(18), failed(19))
    e2e = seen.latency["e2e_s"]
    assert e2e.samples == 18 and e2e.answered["p90"] == pytest.approx(0.17)
    assert e2e.with_failures == {"p50": 0.10, "p90": 0.18, "p95": None, "p99": None}
    assert seen.latency["itl_s"].with_failures is None
    assert seen.errors == {"server_error": 2} and seen.failed == 2 and seen.answered == 18


def test_latency_counts_from_the_intended_moment_too() -> None:
    """A request 50 ms late, 30 of which went into its connection: the client is 20 ms to blame, the user waits 50."""
    late = answered(0, 0.1, e2e=0.2, lag=0.05, connect=0.03)
    seen = of(late)
    assert seen.latency["ttft_from_due_s"].mean == pytest.approx(0.15)
    assert seen.latency["e2e_from_due_s"].mean == pytest.approx(0.25)
    assert seen.latency["e2e_s"].mean == pytest.approx(0.2)
    assert seen.send_lag_p99_s == pytest.approx(0.02)
    assert "e2e_from_due_s" not in of(late, load=CLOSED).latency


def test_throughput_is_over_the_whole_window_failures_included() -> None:
    """Dispatched at 0, 1 and 2; the last byte at 4, a failure's."""
    seen = of(
        answered(0, 0.5, 1.0, e2e=1.0, tokens=4), answered(1, 0.5, e2e=1.0, tokens=6), failed(2, e2e=2.0)
    )
    assert seen.window_s == 4.0 and seen.requests_per_s == 0.5
    assert seen.output_tokens == 10 and seen.output_tokens_per_s == 2.5 and seen.prompt_tokens_per_s == 5.0
    assert seen.achieved_rate_per_s == 1.0
    assert seen.in_flight_mean == 1.0 and seen.in_flight_max == 1
    assert seen.finish_reasons == {"stop": 2}


def test_one_answer_without_usage_leaves_no_token_figure() -> None:
    seen = of(answered(0, 0.1, 0.2, e2e=1.0, tokens=4), answered(1, 0.1, e2e=1.0))
    assert seen.output_tokens is None and seen.output_tokens_per_s is None and seen.prompt_tokens is None
    assert seen.latency["tpot_s"].samples == 1
    assert "1 of 2 answers do not state their usage" in seen.notes[0]


def test_the_steady_part_leaves_build_up_and_drain_out() -> None:
    """Dispatched at 0, 1, … 19, each 2 s long with a token after each: from 2 (a median later) to 19 (the last dispatch).

    Ends at 2, 3, … 21; those in (2, 19] are 17. A token a second from each of the two in flight.
    """
    seen = of(*(answered(n, 1.0, 2.0, e2e=2.0, tokens=2) for n in range(20)))
    assert seen.steady == Steady(time_s=17.0, requests_per_s=1.0, output_tokens_per_s=2.0)
    assert seen.requests_per_s == pytest.approx(20 / 21)
    assert seen.in_flight_max == 2
    assert of(*(answered(n, e2e=2.0) for n in range(9))).steady is None


def test_goodput_is_what_meets_every_limit() -> None:
    limits = {"ttft": 0.1, "tpot": 0.03, "e2e": 1.0}
    seen = of(
        answered(0, 0.05, 0.07, e2e=0.5, tokens=2),
        answered(1, 0.05, 0.07, e2e=1.5, tokens=2),
        answered(2, 0.05, 0.09, e2e=0.5, tokens=2),
        answered(3, 0.05, 0.07, e2e=0.5),
        answered(4, 0.05, 0.07, e2e=0.5, tokens=2, lag=0.2),
        failed(4.9),
        limits=limits,
    )
    assert seen.goodput == Goodput(limits_s=limits, met=1, per_s=0.2, share=1 / 6)
    assert of(answered(0, e2e=1.0)).goodput is None


def test_what_is_unknown_is_counted_apart() -> None:
    seen = of(answered(0, 0.1, e2e=1.0), None, left_out(0.5))
    assert (seen.sent, seen.answered, seen.failed, seen.missing) == (3, 1, 0, 2)
    assert seen.latency["e2e_s"].with_failures is not None
    assert any("of 2 requests nothing is known" in note for note in seen.notes)


def test_the_cached_share_is_of_tokens_that_were_stated() -> None:
    seen = of(*(answered(0, e2e=1.0, tokens=1, cached=cached) for cached in (5, 0, None)))
    assert seen.cached_share == 0.25


def test_a_late_client_makes_a_step_invalid() -> None:
    slow = [answered(n, e2e=0.1, lag=0.02) for n in range(3)]
    assert "requests left 20.0 ms late (p99), at most 10 ms allowed" in of(*slow).invalid[0]
    busy = Client(lag_limit_s=0.01, loop_lag_p99_s=0.011)
    assert "event loop was 11.0 ms late" in of(answered(0, e2e=1.0), client=busy).invalid[0]
    held = Client(lag_limit_s=0.01, held_s=2.0)
    assert (
        "limits of the backend stretched the schedule by 2.0 s" in of(answered(0, e2e=1), client=held).invalid
    )
    assert of(failed(0)).invalid == ("no request was answered",)
    assert of(answered(0, e2e=1.0, lag=0.009)).invalid == ()


def test_nothing_at_all_is_no_figure() -> None:
    seen = of()
    assert seen.sent == 0 and seen.invalid == ("no request was answered",)
    numbers = (seen.window_s, seen.requests_per_s, seen.in_flight_max, seen.steady, seen.send_lag_p99_s)
    assert set(numbers) == {None}


READINGS = [
    Reading(
        at=0, running=2, waiting=0, kv_cache=0.9, prefix_queries=100, prefix_hits=50, queued=4, queued_s=1
    ),
    Reading(at=1, running=3, waiting=0, kv_cache=0.2),
    Reading(at=2, running=5, waiting=4, kv_cache=0.4),
    Reading(
        at=3, running=0, waiting=0, kv_cache=0, prefix_queries=300, prefix_hits=100, queued=8, queued_s=3
    ),
]


def test_the_servers_view_is_of_the_step_alone() -> None:
    seen = of(answered(0, e2e=1.0), readings=READINGS)
    assert seen.server == Server(
        readings=4,
        running_mean=4.0,
        running_max=5.0,
        waiting_mean=2.0,
        waiting_max=4.0,
        kv_cache_max=0.4,
        prefix_hit_share=0.25,
        queue_mean_s=0.5,
        preemptions=None,
    )
    assert any("busy with 2 other requests" in note for note in seen.notes)


def test_what_a_server_does_not_state_is_none_and_a_restart_in_between_too() -> None:
    restarted = [
        Reading(at=0, prefix_queries=100, prefix_hits=50),
        Reading(at=1),
        Reading(at=2, prefix_queries=1),
    ]
    seen = of(answered(0, e2e=1.0), readings=restarted).server
    assert seen is not None and seen.running_mean is None and seen.prefix_hit_share is None
    assert of(answered(0, e2e=1.0)).server is None


def test_readings_are_over_all_engines_and_what_is_no_number_is_not_stated() -> None:
    page = b"""# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a \\"b\\" {c}"} 2.0
vllm:num_requests_running{engine="1",model_name="m"} 3.0
vllm:num_requests_running_elsewhere 9
vllm:kv_cache_usage_perc{engine="0"} 0.25
vllm:kv_cache_usage_perc{engine="1"} 0.75
vllm:num_requests_waiting NaN
"""
    assert reading(1.0, page) == Reading(at=1.0, running=5.0, kv_cache=0.75)
    trtllm = b'trtllm_num_requests_running{model_name="undefined"} 7\ntrtllm_kv_cache_utilization 0.5\n'
    assert reading(1.0, trtllm) == Reading(at=1.0, running=7.0, kv_cache=0.5)


@pytest.mark.parametrize(
    "page", [b"", b"[]", b"\xff\xfe", b"vllm:num_requests_running{", b"vllm:num_requests_running x"]
)
def test_a_page_that_is_none_states_nothing(page: bytes) -> None:
    assert reading(1.0, page) == Reading(at=1.0)


def benchmark(*steps: Figures) -> Benchmark:
    return Benchmark(
        url="http://127.0.0.1:8000",
        model="m<b>",
        started_at="2026-12-01T00:00:00Z",
        workload="demo",
        prompts=24,
        warmup=8,
        nonce=True,
        fields={"max_tokens": 5},
        seed=0,
        runs=(),
        steps=steps,
    )


def step(rate: float, e2e: float, **more: Any) -> Figures:
    seen = [answered(n / rate, e2e / 4, e2e / 2, e2e=e2e, tokens=2) for n in range(120)]
    return of(
        *seen, failed(1), load=Load(rate_per_s=rate, burstiness=1.0, time_s=60.0), readings=READINGS, **more
    )


STEPS = (
    step(2, 0.2, limits={"ttft": 0.5}),
    step(4, 0.4, limits={"ttft": 0.5}),
    step(8, 12.0, limits={"ttft": 0.5}, client=Client(lag_limit_s=0.01, loop_lag_p99_s=0.5)),
)


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("steps", [STEPS, STEPS[:1], (of(load=CLOSED),), ()])
def test_the_screen_fits(width: int, steps: tuple[Figures, ...]) -> None:
    text = render_terminal(benchmark(*steps), width=width)
    assert max(columns(line) for line in text.splitlines()) <= width
    assert "None" not in text and "nan" not in text


def test_the_screen_says_what_matters() -> None:
    text = " ".join(render_terminal(benchmark(*STEPS)).split())
    assert "Poisson arrivals" in text and "a nonce before each" in text and "8 warm-up requests" in text
    assert "8/s: INVALID: the client's event loop was 500.0 ms late" in text
    assert "1 of 121 failed: 1 server_error" in text and "\u221e" not in text
    assert "\u25b2 end to end p99" in text and "good: answered within ttft 500 ms" in text


def test_json_names_every_figure_and_holds_finite_numbers_only() -> None:
    data = json.loads(render_json(benchmark(*STEPS)))
    assert data["schema"] == {"name": "llm-migrate.bench", "version": 1}
    assert data["definitions"] == DEFINITIONS and len(data["steps"]) == 3
    assert data["steps"][0]["latency"]["e2e_s"]["answered"]["p50"] == 0.2


def test_every_figure_has_a_definition_and_every_definition_a_figure() -> None:
    told = {"load", "latency", "notes", "invalid"}
    named = {field.name for field in fields(Figures)} - told
    inner = {
        f"{name}.{field.name}"
        for name, kind in (("steady", Steady), ("goodput", Goodput), ("server", Server))
        for field in fields(kind)
    } - {"steady.time_s", "goodput.limits_s", "goodput.met", "server.readings"}
    latency = set(asdict(STEPS[0])["latency"]) | {
        "latency.samples",
        "latency.answered",
        "latency.with_failures",
    }
    assert set(DEFINITIONS) == named | inner | latency


def test_the_plot_is_xml_with_a_line_for_each_quantile_that_is_known() -> None:
    text = svg(benchmark(*STEPS))
    root = ET.fromstring(text)
    spaces = {"s": "http://www.w3.org/2000/svg"}
    marks = root.findall(".//s:circle", spaces)
    assert len(marks) == 7 and sum(mark.get("fill") == "#fff" for mark in marks) == 3, (
        "invalid ones are hollow"
    )
    assert len(root.findall(".//s:rect", spaces)) == 1 + 6
    assert "nothing was measured" in svg(benchmark())
    places = [float(x) for x in re.findall(r'cx="([0-9.]+)"', text)]
    assert all(0 <= x <= 720 for x in places)
