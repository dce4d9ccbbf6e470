"""The laws of a canary's state, whatever is done to it in whatever order."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.canary import shift
from migrate.canary.section import Step
from migrate.canary.shift import Evidence, Phase, Shift
from migrate.errors import ConfigError
from reports.judgement import Verdict

STEPS = tuple(Step(percent=percent) for percent in (1, 5, 25, 50, 100))
COOL_DOWN = 100.0
RISES = {"advance", "set", "resume"}

Deed = Callable[[Shift, float], Shift | None]


def by(at: float) -> dict[str, object]:
    return {"at": at, "who": "ana", "why": "because"}


def begun() -> Shift:
    return shift.started("c", STEPS, at=0.0, who="gateway", why="GO", run="r")


def judged(whole: Verdict, step: Verdict, *, old: bool = False, manual: bool = False) -> Deed:
    def deed(now: Shift, at: float) -> Shift | None:
        seen = Evidence(whole=whole, step=step, reason="so", since=now.since - old)
        return shift.decided(
            now, seen, STEPS, manual=manual, cool_down=COOL_DOWN, at=at, who="gateway", run="r"
        )

    return deed


def deeds() -> st.SearchStrategy[Deed]:
    verdicts = st.sampled_from(Verdict)
    return st.one_of(
        st.builds(judged, verdicts, verdicts, old=st.booleans(), manual=st.booleans()),
        st.just(judged(Verdict.GO, Verdict.GO)),
        st.floats(0, 1).map(lambda share: lambda now, at: shift.set_to(now, share, STEPS, **by(at))),
        st.just(lambda now, at: shift.rolled_back(now, cool_down=COOL_DOWN, **by(at))),
        st.just(lambda now, at: shift.paused(now, **by(at))),
        st.just(lambda now, at: shift.resumed(now, STEPS, **by(at))),
        st.just(lambda now, at: shift.approved(now, STEPS, **by(at))),
        st.just(lambda now, at: shift.finished(now, **by(at))),
        st.just(lambda now, at: shift.noted(now, "join", **by(at))),
    )


def lived(done: list[tuple[Deed, float]]) -> list[Shift]:
    """Every row after these deeds; what is refused leaves none."""
    rows, at = [begun()], 0.0
    for deed, later in done:
        at += later
        try:
            after = deed(rows[-1], at)
        except ConfigError:
            continue
        rows += [after] if after else []
    return rows


lives = st.lists(st.tuples(deeds(), st.floats(0.001, 1_000)), max_size=40).map(lived)


@given(lives)
def test_rows_are_numbered_without_a_gap_and_a_share_is_one(rows: list[Shift]) -> None:
    assert [row.number for row in rows] == list(range(1, len(rows) + 1))
    assert all(0 <= row.share <= 1 and 0 <= row.step < len(STEPS) for row in rows)


@given(lives)
def test_the_share_rises_by_a_step_or_by_hand_alone(rows: list[Shift]) -> None:
    for before, after in pairwise(rows):
        if after.share > before.share:
            assert after.action in RISES
        if after.action == "advance":
            assert before.phase is Phase.SHIFTING
            assert (after.step, after.share) == (before.step + 1, STEPS[before.step + 1].percent)
        if after.share != before.share:
            assert after.since == after.at
        if after.action in ("join", "pause", "approve", "finish"):
            assert (after.share, after.since) == (before.share, before.since)


@given(lives)
def test_a_rollback_is_at_0_until_somebody_resumes_and_it_has_cooled_down(rows: list[Shift]) -> None:
    for before, after in pairwise(rows):
        if before.phase is Phase.ROLLED_BACK:
            assert after.action in ("resume", "join")
            assert after.action == "join" or (before.until is not None and after.at >= before.until)
            assert after.action == "join" or after.share == STEPS[0].percent
    assert all(row.share == 0 and row.until is not None for row in rows if row.phase is Phase.ROLLED_BACK)


@given(lives)
def test_from_everywhere_a_rollback_leads_to_0(rows: list[Shift]) -> None:
    back = shift.rolled_back(rows[-1], cool_down=COOL_DOWN, **by(1e6))  # type: ignore[arg-type]
    assert (back or rows[-1]).share == 0
    assert (back is None) == (rows[-1].phase is Phase.ROLLED_BACK)


@given(lives, st.sampled_from(Verdict), st.sampled_from(Verdict), st.booleans(), st.booleans())
def test_nothing_advances_without_a_go_of_its_own_step(
    rows: list[Shift], whole: Verdict, step: Verdict, old: bool, manual: bool
) -> None:
    now = rows[-1]
    after = judged(whole, step, old=old, manual=manual)(now, now.at + 1)
    if after is not None and after.action == "advance":
        assert step is Verdict.GO and whole is not Verdict.ROLLBACK and not old
        assert now.phase is Phase.SHIFTING and (now.approved or not manual) and not after.approved
    if not old and now.phase in (Phase.SHIFTING, Phase.PAUSED) and Verdict.ROLLBACK in (whole, step):
        assert after is not None and after.action == "rollback"
    if now.phase in (Phase.ROLLED_BACK, Phase.FINISHED):
        assert after is None


def test_good_evidence_leads_through_every_step_and_then_a_person_finishes() -> None:
    now, go = begun(), judged(Verdict.HOLD, Verdict.GO)
    shares = [now.share]
    while (after := go(now, now.at + 10)) is not None:
        now = after
        shares.append(now.share)
    assert shares == [0.01, 0.05, 0.25, 0.5, 1.0]
    with pytest.raises(ConfigError, match="no step to approve"):
        shift.approved(now, STEPS, **by(99))  # type: ignore[arg-type]
    assert shift.finished(now, **by(100)).phase is Phase.FINISHED  # type: ignore[arg-type]


def test_what_is_paused_stays_but_for_a_rollback() -> None:
    now = shift.paused(begun(), **by(1))  # type: ignore[arg-type]
    assert judged(Verdict.GO, Verdict.GO)(now, 2) is None
    back = judged(Verdict.ROLLBACK, Verdict.HOLD)(now, 2)
    assert back is not None and back.phase is Phase.ROLLED_BACK


def test_each_cool_down_is_twice_as_long_up_to_a_week() -> None:
    now, rests = begun(), []
    for _ in range(2_000):
        back = shift.rolled_back(now, cool_down=COOL_DOWN, **by(now.at + 1))  # type: ignore[arg-type]
        assert back is not None and back.until is not None
        rests.append(round(back.until - back.at, 3))
        with pytest.raises(ConfigError, match="cools down for another"):
            shift.resumed(back, STEPS, **by(back.until - 0.5))  # type: ignore[arg-type]
        now = shift.resumed(back, STEPS, **by(back.until))  # type: ignore[arg-type]
        assert now.share == 0.01
    assert rests[:4] == [100, 200, 400, 800]
    assert rests[-1] == 7 * 86_400


def test_a_share_by_hand_is_no_way_around_a_cool_down() -> None:
    back = shift.rolled_back(begun(), cool_down=COOL_DOWN, **by(1))  # type: ignore[arg-type]
    assert back is not None
    for share in (0.0, 0.5):
        with pytest.raises(ConfigError, match="is rolled back"):
            shift.set_to(back, share, STEPS, **by(2))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("share", "step", "on"), [(0.0, 0, 0.01), (0.005, 0, 0.01), (0.03, 0, 0.03), (0.25, 2, 0.25), (1, 4, 1)]
)
def test_a_share_by_hand_pauses_and_goes_on_from_there_or_from_the_first_step(
    share: float, step: int, on: float
) -> None:
    now = shift.set_to(begun(), share, STEPS, **by(1))  # type: ignore[arg-type]
    assert (now.phase, now.share, now.step) == (Phase.PAUSED, share, step)
    after = shift.resumed(now, STEPS, **by(2))  # type: ignore[arg-type]
    assert (after.phase, after.share) == (Phase.SHIFTING, on)


def test_an_approval_is_for_one_step() -> None:
    go = judged(Verdict.HOLD, Verdict.GO, manual=True)
    assert go(begun(), 1) is None
    after = go(shift.approved(begun(), STEPS, **by(1)), 2)  # type: ignore[arg-type]
    assert after is not None and after.share == 0.05 and go(after, 3) is None
