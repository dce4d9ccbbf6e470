"""What each scenario plants into the candidate and which verdict it promises."""

from __future__ import annotations

from dataclasses import dataclass

from reports.judgement import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One rehearsal: candidate faults (flags of ``migrate simulate``), traffic, and the promised verdict."""

    name: str
    story: str
    verdict: Verdict
    faults: tuple[str, ...] = ()
    requests: int = 1_300
    rate: float = 26.0
    """Requests a second."""
    percent: float = 65.0
    paths: tuple[str, ...] = ("/v1/chat/completions", "/v1/completions")


SCENARIOS = (
    Scenario(
        name="good",
        story="the candidate says the same, now and then in other words, and as fast",
        verdict=Verdict.GO,
    ),
    Scenario(
        name="slow-tail",
        story="one answer in five is two seconds late",
        verdict=Verdict.ROLLBACK,
        faults=("--slow-share", "20%", "--slow-by", "2s"),
        requests=800,
    ),
    Scenario(
        name="wrong-answers",
        story="one answer in four says something else",
        verdict=Verdict.ROLLBACK,
        faults=("--wrong-share", "25%"),
        requests=900,
    ),
    Scenario(
        name="broken-tools",
        story="tool calls come back as prose or broken JSON",
        verdict=Verdict.ROLLBACK,
        faults=("--refuse-tools-share", "50%", "--break-tools-share", "50%"),
        requests=900,
    ),
    Scenario(
        name="crashing",
        story="the candidate's process dies after 150 answers",
        verdict=Verdict.ROLLBACK,
        faults=("--crash-after", "150"),
        requests=600,
    ),
    Scenario(
        name="unused-mirror",
        story="the mirror watches a path that no client uses",
        verdict=Verdict.HOLD,
        requests=200,
        paths=("/v1/unused",),
    ),
    Scenario(
        name="five-pairs",
        story="five requests are no evidence",
        verdict=Verdict.HOLD,
        requests=5,
        rate=5.0,
        percent=100.0,
    ),
)
"""Every scenario, the default first."""


def named(name: str) -> Scenario:
    """The scenario of that name. Raises KeyError listing the valid ones."""
    for scenario in SCENARIOS:
        if scenario.name == name:
            return scenario
    raise KeyError(f"no scenario {name!r}; valid: {', '.join(s.name for s in SCENARIOS)}")
