"""Costs: each formula by hand, the laws they keep, and what is not known."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from reports.costing import (
    MONTH_DAYS,
    MOST_REQUESTS,
    GpuPrice,
    Quote,
    Tariff,
    TokenPrice,
    age_days,
    break_even,
    cheaper,
    ownership,
    payback_months,
    replica,
    request_usd,
    return_on_investment,
    rollback,
    saving,
)
from reports.doubts import Side, Terms
from reports.judgement import Measured
from reports.outlook import Outlook, outlook
from reports.render.cost_drawing import CostChart, cost_chart
from reports.render.costs import crossing, money, render_terminal
from reports.render.drawing import HEIGHT, WIDTH
from reports.render.html import render_html
from reports.render.json import render_json
from reports.spending import Throughput, Used, Using, mean, measured_throughput, spent
from tests.reports.builders import alike, document
from tests.reports.made import START, answer, failure

TOKENS = TokenPrice(input=0.50, cached_input=0.05, output=2.00)
RELAY = Tariff(usd_per_request=0.001)
APART = np.full(200, -1)
"""Requests that are each a conversation of its own."""
GPUS = replica(GpuPrice(per_hour=2.0, gpus=2), 1.5)
"""96 a day for each 129,600 requests."""


def test_a_request_costs_its_tokens():
    # 1000 prompt tokens, half of them cached, and 200 of output: 500 x 0.50 + 500 x 0.05 + 200 x 2.00 = 675 millionths
    assert request_usd(TOKENS, 1000, 200, 0.5) == pytest.approx(675e-6)
    assert request_usd(replace(TOKENS, cached_input=None), 1000, 200, 0.5) == pytest.approx(900e-6)
    assert request_usd(TOKENS, 1000, 200, None) == pytest.approx(900e-6), "an unknown cache is none"


@pytest.mark.parametrize(("prompt", "output"), [(None, 3), (3, None), (None, None)])
def test_unknown_tokens_cost_nobody_knows_what(prompt, output):
    assert request_usd(TOKENS, prompt, output, 0.5) is None


def test_gpus_are_paid_by_the_replica_busy_or_idle():
    assert GPUS.replica_requests_per_day == 129_600
    assert [GPUS.per_day(n) for n in (0, 1, 129_600, 129_601)] == [96, 96, 96, 192]
    assert GPUS.at_full_load() == pytest.approx(96 / 129_600)
    assert replica(GpuPrice(per_hour=2.0, gpus=2), 1.5, peak=3).per_day(129_600) == 3 * 96
    unknown = replica(GpuPrice(per_hour=2.0, gpus=2), None)
    assert unknown.per_day(1e9) == 96 and unknown.at_full_load() is None


def test_break_even_is_where_the_lines_cross():
    # 0.001 a request against 96 a day: 96,000 requests. The second replica is worth it from 192,000 on.
    first, *others = cheaper(RELAY, GPUS)
    assert (first.above, first.to) == (pytest.approx(96_000), 129_600)
    assert others[0].above == pytest.approx(192_000) and others[-1].to is None
    assert break_even(RELAY, GPUS) == pytest.approx(96_000) == break_even(GPUS, RELAY)


def test_no_break_even_where_one_is_always_the_cheaper():
    dear = replace(RELAY, usd_per_request=0.002)
    assert break_even(dear, RELAY) is None and cheaper(RELAY, dear) == ()
    (whole,) = cheaper(dear, RELAY)
    assert (whole.above, whole.to) == (0, None)
    assert cheaper(RELAY, RELAY) == ()


tariffs = st.builds(
    Tariff,
    usd_per_month=st.floats(0, 1e5),
    usd_per_request=st.sampled_from([0.0, 1e-5, 1e-3, 0.5]),
    replica_usd_per_day=st.sampled_from([0.0, 10.0, 96.0, 5000.0]),
    replica_requests_per_day=st.none() | st.floats(1e3, 1e7),
)


@given(tariffs, tariffs, st.floats(1, 1e6))
def test_stretches_are_where_the_candidate_costs_less(baseline, candidate, requests):
    difference = candidate.per_day(requests) - baseline.per_day(requests)
    assume(abs(difference) > 1e-6 * baseline.per_day(requests))
    found = cheaper(baseline, candidate)
    inside = any(one.above < requests <= (one.to or math.inf) for one in found)
    sizes = [one.replica_requests_per_day for one in (baseline, candidate) if one.replica_requests_per_day]
    assume(requests < 2_000 * min(sizes, default=MOST_REQUESTS))
    assume(all(abs(requests / size - round(requests / size)) > 1e-6 for size in sizes))
    assert inside == (difference < 0)


@given(st.floats(1e-5, 1), st.floats(1, 1e5), st.floats(1e3, 1e7))
def test_whoever_moves_the_lines_cross_at_the_same_traffic(request, replica_day, size):
    assume(
        abs(request * size / replica_day - 1) > 1e-6
    )  # a full replica costs what the tokens cost: they only touch
    tokens = Tariff(usd_per_request=request)
    fleet = Tariff(replica_usd_per_day=replica_day, replica_requests_per_day=size)
    assert break_even(tokens, fleet) == break_even(fleet, tokens)


def test_ownership_saving_return_and_payback():
    # 200,000 a day: 200 a day of tokens against two replicas for 192.
    month = 8 * MONTH_DAYS
    assert saving(RELAY, GPUS, 200_000) == pytest.approx(month)
    assert ownership(GPUS, 200_000, 12, once=1000) == pytest.approx(1000 + 365 * 192)
    assert return_on_investment(month, 12, 1000) == pytest.approx((8 * 365 - 1000) / 1000)
    assert payback_months(month, 1000) == pytest.approx(1000 / month)
    assert return_on_investment(month, 12, 0) is None and payback_months(-1.0, 1000) is None


def test_a_rollback_costs_the_migration_and_what_was_paid_twice():
    # From GPUs to tokens: the GPUs are kept ready and paid for, so that each day costs the tokens on top.
    assert rollback(GPUS, RELAY, 50_000, 7, 1000) == pytest.approx(1000 + 7 * 50)
    # From tokens to GPUs: what the tokens would have cost is saved meanwhile.
    assert rollback(RELAY, GPUS, 50_000, 7, 1000) == pytest.approx(1000 + 7 * (96 - 50))
    assert rollback(RELAY, GPUS, 50_000, 0, 0) == 0


def test_the_age_of_a_price():
    quote = Quote(price=TOKENS, date="2023-11-04")
    assert age_days(quote, START) == 10 and age_days(replace(quote, date=None), START) is None
    assert age_days(replace(quote, date="2023-11-15"), START) == -1


def test_what_states_no_tokens_is_counted_and_in_no_figure():
    stated = answer(prompt_tokens=1000, output_tokens=200, cached=0.5)
    seen = spent(used([("a", stated), ("b", answer()), ("c", failure()), ("d", None)]), TOKENS)
    assert (seen.answered, seen.counted, seen.failed) == (2, 1, 1)
    assert seen.usd == pytest.approx(675e-6) and seen.usd_per_request.low is None
    nothing = spent(used([("b", answer())]), TOKENS)
    assert nothing.usd is None and nothing.usd_per_request is None and nothing.prompt_tokens is None
    assert spent(used([("a", stated)]), None).usd is None


def test_the_interval_of_a_mean_is_students():
    found = mean(np.array([1.0, 2.0, 3.0, 4.0]), APART[:4])
    # 2.5 and t(3) = 3.18245 times a standard error of sqrt(5/3)/2
    assert (found.value, found.low) == (2.5, pytest.approx(2.5 - 3.18245 * math.sqrt(5 / 3) / 2, rel=1e-5))
    assert mean(np.array([1.0, 9.0]), np.array([3, 3])).low is None


def test_turns_of_one_conversation_do_not_count_as_many():
    values = np.repeat([1.0, 2.0, 4.0, 5.0], 50)
    names = np.repeat([3, 1, 4, 2], 50)
    together, apart = mean(values, names), mean(values, APART)
    assert together.high - together.low > 7 * (apart.high - apart.low)


def test_intervals_hold_what_they_promise():
    generator = np.random.default_rng(5)
    held = 0
    for _ in range(400):
        values = generator.lognormal(0, 0.8, 100)
        found = mean(values, APART[:100])
        held += found.low <= math.exp(0.32) <= found.high
    assert 0.90 <= held / 400 <= 0.98


def test_throughput_has_the_interval_of_a_count():
    found = measured_throughput(100, 10.0, "bench.json")
    # Garwood: chi-square quantiles with 200 and 202 degrees of freedom, halved
    assert (found.per_s, found.low, found.high) == (
        10,
        pytest.approx(8.1364, 1e-4),
        pytest.approx(12.1627, 1e-4),
    )


def used(answers: Iterable[tuple[str | None, Measured | None]]) -> Used:
    using = Using()
    for session, one in answers:
        using.add(session, one)
    return using.done()


def side(arm: str, price: TokenPrice | GpuPrice | None, **more: object) -> Side:
    seen = [(f"c{n}", answer(prompt_tokens=1000, output_tokens=150 + n, cached=0.5)) for n in range(101)]
    quote = None if price is None else Quote(price=price, date="2023-11-01", source="a test")
    paid = spent(used(seen), price if isinstance(price, TokenPrice) else None)
    return Side(arm=arm, name=f"the {arm}", quote=quote, spent=paid, **more)


def seen(baseline: Side, candidate: Side | None = None, **more: object) -> Outlook:
    terms = {
        "traffic_per_day": 50_000.0,
        "traffic_recorded": False,
        "run_s": 3600.0,
        "recorded_s": 3600.0,
    } | more
    return outlook((baseline, *([candidate] if candidate else [])), Terms(**terms), now=START)


def test_low_is_below_expected_is_below_high():
    rate = Throughput(per_s=1.5, low=1.2, high=1.8, source="a test")
    found = seen(
        side("baseline", TOKENS),
        side("candidate", GpuPrice(per_hour=2.0, gpus=2), throughput=rate),
        migration=500.0,
    )
    values = [one for row in found.rows for one in (row.baseline, row.candidate)]
    values += [joint.value for joint in found.joint]
    for one in values:
        ends = [end for end in (one.low, one.expected, one.high) if end is not None]
        assert ends == sorted(ends)
    assert {joint.name for joint in found.joint} >= {
        "saving",
        "break-even",
        "rollback",
        "return after 12 months",
    }


def test_missing_prices_and_traffic_are_said_and_never_nothing():
    found = seen(side("baseline", TOKENS), side("candidate", None), traffic_per_day=None)
    assert [row.name for row in found.rows] == ["this run", "at full load"] and not found.comparable
    assert not found.rows[0].candidate.known and found.joint == ()
    said = " ".join(found.notes)
    assert "--traffic 50k/day" in said and "candidate: no price is known; add price:" in said
    assert "cannot be said" in crossing(found) and "\u2013" in render_terminal(found, "r1")


def test_old_undated_and_future_prices_are_said():
    old = side("baseline", TOKENS)
    for day, word in (("2023-01-01", "stale"), (None, "no date"), ("2024-01-01", "still to come")):
        quote = replace(old.quote, date=day)
        assert any(word in note for note in seen(replace(old, quote=quote)).notes)
    assert not any("stale" in note for note in seen(old).notes)
    assert any("stale" in note for note in seen(old, stale_days=5.0).notes)


def test_a_fleet_that_nobody_measured_is_said():
    found = seen(side("baseline", TOKENS), side("candidate", GpuPrice(per_hour=2.0, gpus=2)))
    assert any("nobody measured what its GPUs carry" in note for note in found.notes)
    day = next(row for row in found.rows if row.name == "day").candidate
    assert (day.low, day.expected, day.high) == (96, 96, 96)


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "\u2013"), (0, "0"), (0.000675, "0.000675"), (1.234e-6, "1.234e-06"), (12.346, "12.35"), (-2836.4, "-2,836"),
     (1_599_918, "1.600 M"), (999.9e6, "999.900 M"), (2.5e9, "2.500 B")],
)  # fmt: skip
def test_money_is_short(value, text):
    assert money(value) == text and len(text) <= 12


def test_lines_fit_80_columns():
    found = seen(side("baseline", TOKENS), side("candidate", GpuPrice(per_hour=2.0, gpus=2)), migration=1e8)
    assert all(len(line) <= 80 for line in render_terminal(found, "20231114-221320-abcd").splitlines())


def drawn(found: Outlook) -> CostChart:
    chart = cost_chart(found)
    assert chart is not None
    return chart


def test_the_drawing_has_a_line_each_a_band_and_todays_marks():
    rate = Throughput(per_s=1.5, low=1.2, high=1.8, source="a test")
    found = seen(side("baseline", TOKENS), side("candidate", GpuPrice(per_hour=2.0, gpus=2), throughput=rate))
    chart = drawn(found)
    assert [line.arm for line in chart.lines] == ["baseline", "candidate"] and all(
        line.band for line in chart.lines
    )
    assert {x for _, x, _ in chart.marks} == {chart.today}
    places = [
        point
        for line in chart.lines
        for point in re.findall(r"[ML]([0-9.]+),([0-9.]+)", line.path + line.band)
    ]
    assert all(0 <= float(x) <= WIDTH and 0 <= float(y) <= HEIGHT for x, y in places)
    assert 2 <= len(chart.ticks) <= 6 and 2 <= len(chart.grid) <= 6


@pytest.mark.parametrize("traffic", [0.01, 1.0, 1e10])
@pytest.mark.parametrize("per_s", [1e-6, 1.5, 1e6])
def test_any_traffic_and_any_fleet_can_be_drawn(traffic, per_s):
    rate = Throughput(per_s=per_s, low=per_s / 2, high=per_s * 2, source="a test")
    candidate = side("candidate", GpuPrice(per_hour=2.0, gpus=2), throughput=rate)
    found = seen(side("baseline", TOKENS), candidate, traffic_per_day=traffic)
    assert len(max((line.path for line in drawn(found).lines), key=len)) < 20_000
    render_terminal(found, "r1")


def test_what_costs_nothing_or_nobody_knows_what_is_not_drawn():
    free = TokenPrice(input=0, output=0)
    assert cost_chart(seen(side("baseline", free), side("candidate", None))) is None
    assert cost_chart(seen(side("baseline", TOKENS), traffic_per_day=None)) is None
    assert [line.arm for line in drawn(seen(side("baseline", TOKENS), side("candidate", None))).lines] == [
        "baseline"
    ]


def test_the_report_has_a_section_on_costs_where_a_price_is_known():
    plain = document(alike(50))
    found = seen(side("baseline", TOKENS), side("candidate", GpuPrice(per_hour=2.0, gpus=2)))
    text = render_html(replace(plain, cost=found))
    section = text.split('<h2 id="cost">')[1].split("</section>")[0]
    assert "Cost</h2>" in section and "<svg" in section and money(found.rows[2].baseline.expected) in section
    assert "0.5 input, 0.05 cached" in section and "nobody measured what its GPUs carry" in section
    assert 'id="cost"' not in render_html(plain)
    first, other = (one.split("<nav")[0] for one in (text, render_html(plain)))
    assert first == other, "the first screen is as before"
    assert json.loads(render_json(replace(plain, cost=found)))["cost"]["rows"][2]["name"] == "request"
