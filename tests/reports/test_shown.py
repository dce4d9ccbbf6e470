"""Which pairs are shown, and what of them."""

from __future__ import annotations

from dataclasses import replace

from replay.exchange import Exchange
from reports.judgement import Severity
from reports.shown import WORST, readable, show, worst_first
from tests.reports.builders import exchange, item
from tests.reports.made import REHEARSAL


def shown(one: Exchange) -> object:
    return show(item(one), one, "now")


def ids(exchanges: list[Exchange], *, slow_first: bool = False) -> list[str]:
    found = worst_first([item(one) for one in exchanges], REHEARSAL, slow_first=slow_first)
    return [one.pair.id for one in found]


def test_equal_answers_at_equal_speed_are_not_shown() -> None:
    assert ids([exchange(n) for n in range(50)]) == []


def test_each_cause_is_shown_before_any_is_shown_twice() -> None:
    many = [exchange(n, "It costs 1.", "It costs 2.") for n in range(40)]
    rare = [exchange(50, failed="no"), exchange(51, "Yes, you may go.", "")]
    first = [n for n in ids([*many, *rare]) if n in ("r00050", "r00051")]
    assert len(first) == 2 and len(ids([*many, *rare])) == WORST


def test_slow_pairs_lead_when_the_verdict_rests_on_latency() -> None:
    mixed = [exchange(n, slower_s=1 + n / 100) for n in range(30)]
    mixed += [exchange(100 + n, "1 egg", "2 eggs") for n in range(30)]
    assert ids(mixed, slow_first=True)[0] == "r00029"
    assert ids(mixed)[0] == "r00100"
    assert {"r00029", "r00100"} <= set(ids(mixed)) & set(ids(mixed, slow_first=True))


def test_a_failure_is_not_called_slow() -> None:
    late = replace(exchange(0, failed="no", slower_s=9.0))
    assert item(late).comparison.severity is Severity.BLOCK  # type: ignore[union-attr]
    assert shown(late).excess_s is None  # type: ignore[attr-defined]


def test_a_long_text_is_cut_around_the_first_difference() -> None:
    same = "word " * 4_000
    pair = shown(exchange(0, f"{same}OLD tail", f"{same}CAND tail"))
    sides = (pair.baseline, pair.candidate)  # type: ignore[attr-defined]
    assert "OLD" in sides[0].text and "CAND" in sides[1].text
    assert sides[0].skipped == sides[1].skipped > 0
    assert all(len(side.text) <= 600 for side in sides) and sides[0].length == len(same) + 8


def test_a_text_that_ends_before_the_difference_of_the_other_shows_its_end() -> None:
    pair = shown(exchange(0, "word " * 4_000, "word " * 1_000))
    assert pair.candidate.text and pair.candidate.skipped < 5_000  # type: ignore[attr-defined]


def test_an_arm_that_was_not_observed_says_so() -> None:
    pair = shown(replace(exchange(0), candidate=None))
    assert (pair.candidate.outcome, pair.candidate.text) == ("not_sent", "")  # type: ignore[attr-defined]


def test_a_failure_shows_its_message() -> None:
    pair = shown(exchange(0, failed="out of memory"))
    assert pair.candidate.text == "server_error: out of memory"  # type: ignore[attr-defined]
    assert pair.candidate.status == 500  # type: ignore[attr-defined]


def test_the_prompt_is_the_last_message_whatever_its_shape() -> None:
    def prompt(body: bytes) -> str:
        one = exchange(0)
        return shown(replace(one, request=replace(one.request, body=body))).prompt  # type: ignore[attr-defined]

    assert prompt(b'{"messages":[{"content":"a"},{"content":[{"type":"text","text":"b"},"c"]}]}') == "b\nc"
    assert prompt(b'{"prompt":"once"}') == "once"
    assert prompt(b'{"prompt":[1,2]}') == "1\n2"
    assert prompt(b'{"messages":[{"content":null}]}') == ""
    assert prompt(b"") == "" and prompt(b"\xff{") == "\ufffd{" and prompt(b"[]") == "[]"


def test_readable_text_keeps_line_ends_and_replaces_what_cannot_be_printed() -> None:
    assert readable("a\r\nb\tc\x1b[1m\n\n\n\nd") == "a\nb c\ufffd[1m\n\nd"
    assert len(readable("x" * 10**6)) == 600
