"""`make calibrate` in small: its runs are what their names say, its rivals follow their rules, its looks are the judge's."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import calibrate
from benchmarks.calibration import replayed
from benchmarks.calibration.families import AT_MARGIN, AT_ONCE, FAMILIES, FOUND, HOLD, KEPT, NO_HARM, Family
from benchmarks.calibration.generator import START, TIMEOUT_S, Harm, Traffic, made
from benchmarks.calibration.rivals import RIVALS, Seen, high, kayenta
from benchmarks.calibration.scoring import Answer, Score, answer, kept
from benchmarks.calibration.watching import POLICY, first_rollback
from replay.exchange import Outcome
from reports.columns import Columns
from reports.history import history
from reports.judgement import Verdict
from reports.stats import Floats

DAY = Traffic(hours=48, steady=True)


def run(traffic: Traffic = DAY, harm: Harm = Harm(), seed: int = 1) -> Columns:  # noqa: B008 - a value
    return made(traffic, harm, np.random.SeedSequence(seed))


def excess(of: Floats) -> tuple[float, float]:
    """Mean and its standard error."""
    return float(of.mean()), float(of.std() / np.sqrt(of.size))


def failed(table: Columns) -> Floats:
    return table.candidate.failed.astype(float) - table.baseline.failed


def test_arms_without_harm_are_alike() -> None:
    table = run()
    assert len(table) == pytest.approx(86_400, rel=0.02)
    both = table.take(table.baseline.answered & table.candidate.answered)
    for difference in (
        failed(table),
        np.sign(both.candidate.e2e - both.baseline.e2e),
        both.candidate.e2e - both.baseline.e2e,
    ):
        mean, error = excess(difference)
        assert abs(mean) < 4 * error
    assert np.median(both.baseline.e2e) == pytest.approx(0.8, rel=0.03)
    assert table.baseline.failed.mean() == pytest.approx(0.005, rel=0.2)
    assert table.repeated.mean() == pytest.approx(0.2, rel=0.05)
    assert 0.5 < np.corrcoef(np.log(both.baseline.e2e), np.log(both.candidate.e2e))[0, 1] < 0.75


@pytest.mark.parametrize(("errors", "after_h"), [(0.01, 0.0), (0.05, 24.0)])
def test_planted_errors_are_found_in_the_mean(errors: float, after_h: float) -> None:
    table = run(harm=Harm(errors=errors, after_h=after_h))
    late = table.at >= START + 3600 * after_h
    mean, error = excess(failed(table)[late])
    assert mean == pytest.approx(errors, abs=4 * error)
    assert not after_h or abs(failed(table)[~late].mean()) < 0.002


def test_planted_timeouts_and_disagreement_are_found_in_the_mean() -> None:
    table = run(harm=Harm(timeouts=0.05))
    mean, error = excess(table.candidate.having(Outcome.TIMEOUT).astype(float))
    assert mean == pytest.approx(0.05 * 0.995, abs=4 * error)
    table = run(harm=Harm(differs=0.03))
    asked = table.take((table.differs >= 0) & (table.repeat_differs >= 0))
    mean, error = excess(asked.differs.astype(float) - asked.repeat_differs)
    assert mean == pytest.approx(0.03, abs=4 * error)
    assert asked.repeat_differs.mean() == pytest.approx(0.06, abs=0.01)


def test_planted_latency_moves_the_median_and_the_tail_by_what_it_says() -> None:
    plain, slow, tail = run(), run(harm=Harm(e2e_s=0.05)), run(harm=Harm(tail=0.10))
    both = plain.baseline.answered & plain.candidate.answered
    assert np.allclose((slow.candidate.e2e - plain.candidate.e2e)[both], 0.05)
    for level, factor in ((0.5, 1.0), (0.95, 1.1), (0.99, 1.1)):
        before, after = (np.nanquantile(table.candidate.e2e[both], level) for table in (plain, tail))
        assert after / before == pytest.approx(factor, rel=0.01)


def test_outages_and_truncation_are_total() -> None:
    assert run(harm=Harm(outage="error")).candidate.failed.all()
    assert not run(harm=Harm(outage="hang")).candidate.answered.any()
    table = run(harm=Harm(truncated=True))
    both = table.take(table.baseline.answered & table.candidate.answered)
    assert both.candidate.traits[:, both.traits.index("truncation")].all()
    assert np.median(both.candidate.tokens / both.baseline.tokens) == pytest.approx(0.3, abs=0.02)


def test_traffic_does_what_its_names_say() -> None:
    assert run(Traffic(missing=0.05)).candidate.missing.mean() == pytest.approx(0.05, rel=0.1)
    sizes = np.unique(run(Traffic(sessions=True)).session, return_counts=True)[1]
    assert (sizes.min(), sizes.max()) == (1, 30)
    cold = run(Traffic(cold_minutes=10))
    first = (cold.at < START + 600) & cold.candidate.answered & cold.baseline.answered
    assert np.median((cold.candidate.e2e / cold.baseline.e2e)[first]) == pytest.approx(3, rel=0.2)
    per_minute = np.bincount(((run(Traffic(bursty=True)).at - START) // 60).astype(int))
    assert per_minute.var() > 10 * per_minute.mean()
    incidents = run(Traffic(incidents=3))
    blocks = np.bincount(((incidents.at - START) // 60).astype(int), incidents.candidate.failed)
    assert 0.15 < blocks.max() / 30 < 0.9


def test_the_real_log_against_itself_is_no_harm_and_planted_harm_shows() -> None:
    seed = np.random.SeedSequence(1)
    table, slow = replayed.resampled(seed), replayed.resampled(seed, slower_s=0.1)
    assert len(table) == 86_400 and 0.15 < table.repeated.mean() < 0.25
    for difference in (failed(table), np.nan_to_num(np.sign(table.candidate.e2e - table.baseline.e2e))):
        assert abs(difference.mean()) < 0.02
    answered = table.candidate.answered
    assert np.allclose((slow.candidate.e2e - table.candidate.e2e)[answered], 0.1)
    looks = [START + 3600.0 * hour for hour in (1, 2, 3)]
    assert first_rollback(table, looks) is None and first_rollback(slow, looks) is not None


@pytest.mark.parametrize(
    ("experiment", "control", "rolled_back"),
    [
        ([0, 1, 2, 1, 0, 0], [0] * 6, False),  # kayenta issue 426
        ([0] * 20 + [30] * 5, [0] * 25, False),  # issue 799: a fifth of the minutes fail
        ([1, 4, 2, 3, 1], [0] * 5, True),  # issue 799: errors in every minute
        ([100] * 7 + [1] * 3, [1] * 10, False),  # issue 780: a hundredfold at seven of ten points
        ([100] * 8 + [1] * 2, [1] * 10, True),  # issue 780: at eight of ten
    ],
)
def test_kayenta_decides_as_was_published(
    experiment: list[float], control: list[float], rolled_back: bool
) -> None:
    assert high(np.array(experiment, dtype=float), np.array(control, dtype=float)) is rolled_back


@pytest.mark.parametrize(("failing", "rolled_back"), [(0.40, False), (0.48, True), (0.55, False)])
def test_kayenta_does_not_get_stricter_with_the_minutes_that_fail(failing: float, rolled_back: bool) -> None:
    minutes = np.where(np.arange(60) < round(failing * 60), 1.0, 0.0)
    assert high(minutes, np.zeros(60)) is rolled_back


def test_rivals_roll_back_an_outage_and_most_do_so_without_harm() -> None:
    looks = [START + 3600.0 * hour for hour in range(1, 49)]
    outage = Seen.of(run(Traffic(hours=3, steady=True), Harm(errors=0.9)))
    assert all(rival(outage, looks[:3]) is not None for rival in RIVALS.values())
    plain = Seen.of(run(seed=3))
    assert RIVALS["5 bad windows"](plain, looks) is not None
    assert kayenta(plain, looks) is None


def test_looks_that_are_passed_over_would_have_said_nothing() -> None:
    looks = [START + 900.0 * number for number in range(1, 25)]
    for traffic, harm in (
        (Traffic(hours=6.5, incidents=6), Harm()),
        (Traffic(hours=6.5, sessions=True), Harm(errors=0.03)),
        (Traffic(hours=6.5), Harm(after_h=3, e2e_s=0.15)),
        (Traffic(hours=6.5), Harm(after_h=2, outage="error")),
    ):
        table = run(traffic, harm)
        asked = history(table, POLICY, looks=looks, timeout_s=TIMEOUT_S)
        found = [(look.at, look.code) for look in asked if look.verdict is Verdict.ROLLBACK]
        assert first_rollback(table, looks) == (found[0] if found else None)


def test_without_harm_go_comes_after_a_day_and_at_a_margin_not_at_all() -> None:
    going, never = KEPT[0], AT_MARGIN[0]
    hours = answer(going, calibrate.seed_of(going, 0))[0].hours
    assert hours is not None and 24 < hours <= 26
    assert answer(never, calibrate.seed_of(never, 0))[0].hours is None


def test_scores_have_exact_intervals_and_keep_their_targets() -> None:
    none = Score.of([Answer(None)] * 400)
    assert none.interval == pytest.approx((0.0, 0.00918), abs=1e-4)
    assert kept(NO_HARM[0], none)
    assert not kept(FOUND[0], none)
    assert not kept(FOUND[0], Score.of([Answer(4.0)] * 10))
    assert kept(FOUND[0], Score.of([Answer(2.0)] * 10))


@pytest.mark.parametrize("family", [*AT_ONCE[::2], *HOLD], ids=lambda family: family.name)
def test_what_has_to_be_certain_is(family: Family) -> None:
    for number in range(2):
        assert answer(family, calibrate.seed_of(family, number))[0].hours is not None


def test_a_small_calibration_is_the_same_again(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--seeds", "2", "--families", "five pairs,twice a margin: median", "--strict"]
    assert calibrate.main(words) == 0
    first = capsys.readouterr().out
    assert calibrate.main(words) == 0
    assert capsys.readouterr().out == first
    assert "| five pairs: HOLD with its code | ≥ 100% | 100 % (15.8 % to 100 %) |" in first


def test_the_page_has_a_line_for_every_family() -> None:
    rows = [line for line in calibrate.PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    missing = [one.name for one in FAMILIES if not any(row.startswith(f"| {one.name}: ") for row in rows)]
    assert not missing
