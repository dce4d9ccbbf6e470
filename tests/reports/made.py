"""Measured pairs made to order: the same seed makes the same run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from replay.exchange import Outcome
from reports.judge import judge
from reports.judgement import Judgement, Measured, Pair, RuleResult, Verdict
from reports.policy import Policy

REHEARSAL = Policy(minimum_span=10, minimum_pairs=300, warmup=0, rehearsal=True, valid_for="3650d")
"""What a demonstration uses: everything else is the default, and it does not expire, since its runs lie in the past."""
QUICK = Policy(minimum_span=0, minimum_pairs=1, warmup=0, rehearsal=True)
"""Evidence alone decides."""
RANK = {Verdict.ROLLBACK: 0, Verdict.HOLD: 1, Verdict.GO: 2}
"""Adding harm may only ever go down."""
START = 1_700_000_000.0


def answer(e2e_s: float = 0.2, ttft_s: float | None = None, **more: object) -> Measured:
    return replace(Measured(outcome=Outcome.OK, e2e_s=e2e_s, ttft_s=ttft_s), **more)


def failure(outcome: Outcome = Outcome.HTTP_ERROR, e2e_s: float | None = 0.01, reason: str = "") -> Measured:
    return Measured(outcome=outcome, e2e_s=e2e_s, reason=reason)


WITHHELD = failure(Outcome.NOT_SENT, None, "breaker_open")
MISSING = failure(Outcome.NOT_SENT, None)
TIMEOUT = failure(Outcome.TIMEOUT, 60.0)


def same(count: int, *, rate: float = 20.0, start: float = START, **more: object) -> list[Pair]:
    """``count`` pairs of equal answers, each with an equal baseline repeat."""
    one = Pair(
        id="",
        at=start,
        baseline=answer(),
        candidate=answer(),
        repeat=answer(),
        differs=False,
        repeat_differs=False,
    )
    return [replace(one, id=f"{n:06d}", at=start + n / rate, **more) for n in range(count)]


def run(
    count: int,
    seed: int,
    *,
    rate: float = 20.0,
    repeats: float = 0.4,
    streamed: float = 0.6,
    spread: float = 0.3,
    slow: float = 0.0,
    wrong: float = 0.0,
    errors: float = 0.0,
    base_errors: float = 0.0,
    noise: float = 0.0,
) -> list[Pair]:
    """A run of two backends that are alike, log-normal and correlated, with faults planted into the candidate."""
    chance = np.random.default_rng(seed)
    at = START + np.cumsum(chance.exponential(1 / rate, count))
    shared, own = chance.normal(size=count), chance.normal(size=(3, count))
    seconds = 0.12 * np.exp(spread * (0.9 * shared + 0.44 * own))
    dice = chance.random((8, count))
    pairs = []
    for n in range(count):
        stream = dice[0, n] < streamed

        def arm(seconds: float, stream: bool = stream) -> Measured:
            return answer(float(seconds), 0.3 * float(seconds) if stream else None)

        late = 2.0 if dice[1, n] < slow else 0.0
        repeated = dice[2, n] < repeats
        pairs.append(
            Pair(
                id=f"{n:06d}",
                at=float(at[n]),
                baseline=failure() if dice[3, n] < base_errors else arm(seconds[0, n]),
                candidate=failure() if dice[4, n] < errors else arm(seconds[1, n] + late),
                repeat=arm(seconds[2, n]) if repeated else None,
                differs=bool(dice[5, n] < wrong + noise),
                repeat_differs=bool(dice[6, n] < noise) if repeated else None,
                streamed=bool(stream),
                session=f"s{n}",
            )
        )
    return pairs


def verdict(pairs: Sequence[Pair], policy: Policy = REHEARSAL, **more: object) -> Judgement:
    """The judgement of a run that has ended."""
    return judge(pairs, policy, now=START + 10**7, **{"final": True, **more})


def rule(judgement: Judgement, name: str) -> RuleResult:
    return next(rule for rule in judgement.rules if rule.rule == name)


def check(judgement: Judgement, code: str) -> bool:
    """Whether the check of that code passed."""
    return next(check.passed for check in judgement.checks if check.code == code)


def only(*names: str, policy: Policy = QUICK) -> Policy:
    """``policy`` with no other rule required."""
    rules = {name: getattr(policy, name) for name in RULE_NAMES}
    return policy.model_copy(
        update={name: rule.model_copy(update={"required": name in names}) for name, rule in rules.items()}
    )


RULE_NAMES = (
    "errors",
    "timeouts",
    "disagreement",
    "slow_share",
    "latency_median",
    "latency_p95",
    "ttft_median",
    "ttft_p95",
    "tpot_median",
    "tpot_p95",
    "itl_median",
    "itl_p95",
    "format_breaks",
    "refusals",
    "truncations",
    "tool_calls",
    "cost",
)


def with_margin(name: str, policy: Policy, **parts: object) -> Policy:
    return policy.model_copy(update={name: getattr(policy, name).model_copy(update=parts)})


def changed(pairs: Sequence[Pair], where: Callable[[int], bool], **parts: object) -> list[Pair]:
    """The pairs, with ``parts`` replaced at the places that ``where`` holds for."""
    return [replace(pair, **parts) if where(n) else pair for n, pair in enumerate(pairs)]
