"""Causes that no single pair can show: other prompts on one side, and answers drawn by chance on one side."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reports.causes import Cause
from reports.judgement import Pair, Traits
from reports.pairing import pair_up
from reports.slicing import has_system_prompt, prompt_of
from reports.whole import causes_of_run
from tests.reports.builders import exchange, gathered
from tests.reports.made import answer

PLAIN = Traits(
    characters=3,
    repetitive=False,
    truncated=False,
    refuses=False,
    calls_tools=False,
    valid_json=None,
    language=None,
)


def counted(before: int, after: int, n: int, **more: object) -> Pair:
    return Pair(
        id=f"{n:04d}",
        at=float(n),
        baseline=answer(prompt_tokens=before),
        candidate=answer(prompt_tokens=after),
        **more,
    )


def only(pairs: list[Pair]) -> Cause:
    (cause,) = causes_of_run(gathered(pairs))
    return cause


@pytest.mark.parametrize(
    ("more", "words"),
    [(1, "probably there twice"), (38, "system prompt or another chat template is added"), (-12, "missing")],
)
def test_one_number_of_tokens_more_or_less_in_every_prompt(more: int, words: str) -> None:
    cause = only([counted(50 + n % 7, 50 + n % 7 + more, n) for n in range(60)])
    assert cause.category == "prompt.offset" and words in cause.message and cause.count == 60


def test_a_system_prompt_that_does_not_arrive_is_told_from_which_prompts_are_shorter() -> None:
    pairs = [
        counted(80 + n % 9, 80 + n % 9 - (30 + n % 4) * (n % 2), n, system_prompt=bool(n % 2))
        for n in range(60)
    ]
    cause = only(pairs)
    assert cause.category == "prompt.shorter" and "system prompt, and no other" in cause.message
    assert cause.count == 30 and (cause.first_at, cause.last_at, cause.example) == (1.0, 59.0, "0001")


def test_a_context_that_is_cut_has_a_longest_prompt() -> None:
    cause = only([counted(100 * n, min(100 * n, 2_000), n) for n in range(1, 41)])
    assert cause.category == "prompt.shorter" and "none has more than 2,000" in cause.message


def test_half_of_every_history_is_missing() -> None:
    cause = only([counted(2 * n, n, n) for n in range(20, 60)])
    assert cause.category == "prompt.shorter" and "50% fewer in the median" in cause.message


def test_another_tokenizer_counts_some_longer_and_some_shorter() -> None:
    assert only([counted(90, 90 + n % 5 - 2, n) for n in range(40)]).category == "prompt.tokenizer"


def test_few_prompts_equal_ones_and_unknown_counts_say_nothing() -> None:
    assert not causes_of_run(gathered([counted(9, 10, n) for n in range(19)]))
    assert not causes_of_run(gathered([counted(9, 9, n) for n in range(100)]))
    assert not causes_of_run(gathered([counted(9, 9 + (n == 50), n) for n in range(100)]))
    assert not causes_of_run(
        gathered([replace(counted(9, 9, n), candidate=answer(prompt_tokens=None)) for n in range(100)])
    )


def drawn(kind: str, before: int, after: int, *, prompts: int = 30, times: int = 4) -> list[Pair]:
    """Each prompt ``times`` over; the arms choose among so many answers in turn."""
    pairs = []
    for n in range(prompts * times):
        prompt, turn = n % prompts, n // prompts
        old, new = f"{prompt} {turn % before}", f"{prompt} {turn % after}"
        pairs.append(
            Pair(
                id=f"{n:04d}",
                at=float(n),
                baseline=answer(traits=replace(PLAIN, answer=old)),
                candidate=answer(traits=replace(PLAIN, answer=new)),
                prompt=str(prompt),
                labels={"temperature": kind},
            )
        )
    return pairs


@pytest.mark.parametrize(
    ("kind", "before", "after", "category"),
    [
        ("0", 1, 3, "sampling.not_greedy"),
        ("up to 1", 3, 1, "sampling.diversity_lost"),
        ("not set", 1, 3, "sampling.default_drift"),
        ("not set", 3, 1, "sampling.default_drift"),
    ],
)
def test_who_draws_by_chance_and_who_does_not(kind: str, before: int, after: int, category: str) -> None:
    cause = only(drawn(kind, before, after))
    assert cause.category == category and "30 of 30 prompts" in cause.message


@pytest.mark.parametrize(
    ("kind", "before", "after"), [("0", 1, 1), ("0", 3, 1), ("0", 2, 2), ("up to 1", 3, 3)]
)
def test_what_is_the_same_on_both_sides_or_better_is_no_cause(kind: str, before: int, after: int) -> None:
    assert not causes_of_run(gathered(drawn(kind, before, after)))


def test_a_prompt_that_came_once_says_nothing_and_a_repeat_counts_for_the_baseline() -> None:
    assert not causes_of_run(gathered(drawn("0", 1, 3, times=1)))
    once = drawn("0", 1, 1, times=2)
    changing = [
        replace(pair, candidate=answer(traits=replace(PLAIN, answer=pair.id)), repeat=pair.baseline)
        for pair in once
    ]
    assert only(changing).category == "sampling.not_greedy"


@settings(deadline=None)
@given(st.integers(0, 10**6))
def test_a_copy_of_the_baseline_has_no_cause_and_order_does_not_matter(seed: int) -> None:
    chance = random.Random(seed)
    pairs = drawn("0", chance.randint(1, 3), chance.randint(1, 3)) + [
        counted(chance.randint(1, 99), chance.randint(1, 99), n) for n in range(500, 540)
    ]
    shuffled = chance.sample(pairs, len(pairs))
    assert causes_of_run(gathered(shuffled)) == causes_of_run(gathered(pairs))
    assert not causes_of_run(gathered([replace(pair, candidate=pair.baseline) for pair in pairs]))


def test_requests_ask_the_same_whoever_asks_and_however_it_is_delivered() -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "Ahoy?"}], "temperature": 0}
    assert (
        prompt_of(body)
        == prompt_of(body | {"user": "u", "stream": True})
        != prompt_of(body | {"temperature": 1})
    )
    assert prompt_of([]) == ""
    told = {"messages": [{"role": "developer", "content": "Be short."}, {"role": "user", "content": "Ahoy?"}]}
    assert has_system_prompt(told) and has_system_prompt({"instructions": "Be short."})
    assert not has_system_prompt(body) and not has_system_prompt(None)


def test_tokens_prompts_and_answers_are_read_from_exchanges() -> None:
    one, other = pair_up(exchange(1, "Yes.", "Yes.")), pair_up(exchange(2, "Yes.", "No."))
    assert one.prompt == other.prompt and not one.system_prompt and one.baseline.prompt_tokens is None
    said = [
        arm.traits.answer if arm.traits else None for arm in (one.baseline, one.candidate, other.candidate)
    ]
    assert said[0] == said[1] != said[2]
