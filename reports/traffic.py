"""Traffic before there is any: what is known or assumed of it, and pairs made up in its image. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from replay.exchange import Outcome
from reports.arrays import of_arrays
from reports.columns import CODE, RATES, Answers, Columns
from reports.policy import SLOW_BY_DEFINITION
from reports.sessions import design_effect, units
from reports.stats import Floats

PAIRS_LIKE = 2**14
_BEYOND = 1_000.0
"""Times slower: beyond every yardstick."""
_SHAPES = (
    ("truncation", "truncations", 1),
    ("refusal", "refusals", 1),
    ("tool_calls", "tool_calls", 0),
    ("valid_json", "format_breaks", 0),
)
"""A trait, the rule that reads it, and the value that serves a user worse."""
_FEWEST = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What a run will see. It comes evenly, day and night. Times in seconds, shares from 0 to 1."""

    pairs_per_hour: float
    repeats: float = 0.10
    """Share of pairs whose baseline is asked twice."""
    turns: float = 1.0
    """Requests of one conversation within an hour: together they count as one."""
    error_rate: float = 0.005
    """Of each arm; also how often an answer is a refusal, is cut off, makes no tool call, or is not the JSON asked for."""
    noise: float = 0.06
    """How often the baseline differs from its own repeat."""
    latency_s: float = 0.8
    """Median, end to end. TTFT, time per token and cost are spread as it is."""
    spread: float = 0.6
    """Standard deviation of the latency's logarithm: at 0.6, two thirds lie between 0.55 and 1.8 times the median."""
    alike: float = 0.0
    """Correlation of the logarithms of the two arms' latencies."""
    ttft_s: float = 0.2
    tokens: float = 100.0
    """Output tokens of an answer."""
    timeout_s: float = 600.0
    """Pairs younger than this do not count yet."""


Harm = Mapping[str, float]
"""Rules, and by how much the candidate is worse by each, in the rule's unit."""


def pairs_like(traffic: Traffic, harm: Harm, *, seed: int) -> Columns:
    """16,384 pairs in the image of ``traffic``, one a second, all with a repeat if any has one; the candidate has ``harm``.

    Chance is spread evenly (scrambled Sobol points): a share of them is nearer to that of the traffic than one of as many
    random draws.
    """
    points = qmc.Sobol(13, rng=np.random.default_rng(seed)).random_base2(PAIRS_LIKE.bit_length() - 1).T
    fail, time, word, shape, slow = points[:3], ndtri(points[3:6]), points[6:9], points[9:12], points[12]
    core, rest = time[0], math.sqrt(1 - traffic.alike**2)
    baseline = _arm(traffic, {}, fail[0], core, slow)
    candidate = _arm(traffic, harm, fail[1], traffic.alike * core + rest * time[1], slow)
    repeat = _arm(traffic, {}, fail[2], traffic.alike * core + rest * time[2], slow)
    table = of_arrays(
        np.arange(PAIRS_LIKE, dtype=np.float64),
        baseline=baseline,
        candidate=candidate,
        repeat=repeat if traffic.repeats else None,
        differs=(word[1] < traffic.noise + harm.get("disagreement", 0.0)).astype(np.int8),
        repeat_differs=(word[2] < traffic.noise).astype(np.int8),
    )
    return replace(
        table,
        baseline=_seen(table.baseline, traffic, {}, shape[0]),
        candidate=_seen(table.candidate, traffic, harm, shape[1]),
        repeat=_seen(table.repeat, traffic, {}, shape[2]),
    )


def _arm(traffic: Traffic, harm: Harm, fail: Floats, normal: Floats, slow: Floats) -> dict[str, Any]:
    """An arm for ``of_arrays``. ``fail`` and ``slow`` are uniform."""
    e2e = traffic.latency_s * np.exp(traffic.spread * normal)
    ttft = e2e * min(1.0, traffic.ttft_s / traffic.latency_s)
    after = e2e - ttft + _total(harm, "tpot_median", "tpot_p95") * (traffic.tokens - 1)
    ttft = ttft + _total(harm, "ttft_median", "ttft_p95")
    share = max(0.0, _total(harm, "slow_share") - SLOW_BY_DEFINITION) / (1 - SLOW_BY_DEFINITION)
    e2e = (ttft + after + _total(harm, "latency_median", "latency_p95")) * np.where(slow < share, _BEYOND, 1)
    errors = traffic.error_rate + _total(harm, "errors")
    late = errors + _total(harm, "timeouts")
    failed, timeout, ok = (CODE[one] for one in (Outcome.HTTP_ERROR, Outcome.TIMEOUT, Outcome.OK))
    outcome = np.where(fail < errors, failed, np.where(fail < late, timeout, ok))
    return {
        "outcome": outcome.astype(np.int8),
        "e2e_s": e2e,
        "ttft_s": ttft,
        "output_tokens": np.full(e2e.size, traffic.tokens),
    }


def _seen(arm: Answers, traffic: Traffic, harm: Harm, shape: Floats) -> Answers:
    """With what else is known of answers: their shape, gaps and cost."""
    traits = arm.traits.copy()
    for trait, rule, bad in _SHAPES:
        found = np.where(shape < traffic.error_rate + harm.get(rule, 0.0), bad, 1 - bad)
        traits[:, RATES.index(trait)] = np.where(arm.answered, found, -1)
    return replace(
        arm,
        traits=traits,
        itl=arm.tpot + _total(harm, "itl_median", "itl_p95"),
        cost=arm.e2e * (1 + harm.get("cost", 0.0)),
    )


def _total(harm: Harm, *rules: str) -> float:
    return sum(harm.get(rule, 0.0) for rule in rules)


def measured(table: Columns) -> dict[str, float]:
    """The fields of ``Traffic`` that recorded pairs tell of; absent what they do not, or what fewer than 100 of them do."""
    base, again = table.baseline, table.repeat if table.repeated.any() else table.candidate
    known = ~base.missing & (base.answered | base.failed)
    found: dict[str, float] = {}
    if known.sum() >= _FEWEST:
        found["error_rate"] = float(base.failed[known].mean())
        found["turns"] = design_effect(units(table.session, table.at))
    seconds = base.e2e[base.answered & (base.e2e > 0)]
    if seconds.size >= _FEWEST:
        low, found["latency_s"], high = (float(one) for one in np.quantile(seconds, _ONE_DEVIATION))
        found["spread"] = math.log(high / low) / 2
    both = base.answered & again.answered & (base.e2e > 0) & (again.e2e > 0)
    if both.sum() >= _FEWEST and found.get("spread"):
        between = np.corrcoef(np.log(base.e2e[both]), np.log(again.e2e[both]))[0, 1]
        found["alike"] = min(0.999, max(0.0, float(np.nan_to_num(between))))
    for name, values in (("ttft_s", base.ttft[base.answered]), ("tokens", base.tokens[base.answered])):
        some = values[values > 0]
        if some.size >= _FEWEST:
            found[name] = float(np.median(some))
    if table.repeated.any():
        found["repeats"] = float(table.repeated.mean())
    return found


_ONE_DEVIATION = (0.1587, 0.5, 0.8413)
"""Levels of a normal variable at its mean and one standard deviation around it."""
