"""Dates, days of the week and times of day: other spellings are one moment."""

from __future__ import annotations

import pytest

from reports.compare.guards.dates import guard_dates
from reports.compare.guards.moments import moments
from reports.compare.normal import normalise
from reports.judgement import Severity
from tests.reports.said import categories, compared


def found(old: str, new: str) -> str | None:
    finding = guard_dates(normalise(old), normalise(new))
    back = guard_dates(normalise(new), normalise(old))
    assert (finding is None) == (back is None)
    return None if finding is None else finding.category


SAME_DAY = (
    "due on March 3, 2025",
    "due on 3 March 2025",
    "due on the 3rd of March 2025",
    "due on Mar. 3, 2025",
    "due on 2025-03-03",
    "due on 2025/3/3",
    "due on 3/3/2025",
    "due on 03.03.2025",
    "due on MARCH 3RD, 2025",
)


class TestDates:
    @pytest.mark.parametrize("one", SAME_DAY)
    @pytest.mark.parametrize("two", SAME_DAY)
    def test_one_day_has_many_spellings(self, one: str, two: str) -> None:
        assert found(f"The invoice is {one} at the latest", f"The invoice is {two} at the latest") is None

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("It is due on March 3, 2025", "It is due on April 3, 2025"),
            ("It is due on March 3, 2025", "It is due on 2025-03-04"),
            ("It is due on March 3, 2025", "It is due on March 3, 2026"),
            ("It is due on 2025-03-03T10:00", "It is due on 2025-04-03T10:00"),
            ("It is due on March 3", "It is due on March 4"),
            ("It began in May 2020", "It began in June 2020"),
            ("Come on Monday", "Come on Tuesday"),
            ("Open Mon, 9 to 5", "Open Tue, 9 to 5"),
            ("It is due on 13/04/2025", "It is due on 14/04/2025"),
            ("It is due on March 3", "It is due soon"),
        ],
    )
    def test_another_day_is_blocked(self, old: str, new: str) -> None:
        assert found(old, new) == "text.date"

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("It is due on 03/04/2025", "It is due on March 4, 2025"),
            ("It is due on 03/04/2025", "It is due on 3 April 2025"),
            ("It is due on March 3", "It is due on March 3, 2025"),
            ("It is due in March 2025", "It is due on March 3, 2025"),
            ("It is due on Monday, March 3", "It is due on March 3"),
            ("It began in May", "It began in spring"),
            ("It runs from March 3 to March 5", "It runs March 3\u20135"),
            ("It runs from March 3 to March 5", "It runs from the 3rd to the 5th of March"),
            ("It runs from 3 to 5 March 2025", "It runs March 3-5, 2025"),
        ],
    )
    def test_a_part_fits_the_whole_and_both_orders_are_read(self, old: str, new: str) -> None:
        assert found(old, new) is None

    def test_the_numbers_of_a_date_are_no_numbers(self) -> None:
        assert (
            categories(
                compared("The 3rd of March 2025 is the day we chose", "The day we chose is 2025-03-03")
            )
            == []
        )

    def test_versions_and_addresses_are_no_dates(self) -> None:
        read = moments("version 1.2.3, 10.0.0.1, 1/2, 12-3, 2024-13-01, 99/99/2024", frozenset())
        assert (read.dates, read.times) == ((), ())

    def test_the_message_names_both_sides(self) -> None:
        finding = guard_dates(normalise("due on March 3, 2025"), normalise("due on 4 March"))
        assert finding is not None and finding.severity is Severity.BLOCK
        assert finding.message == "dates differ: the baseline has 2025-03-03, the candidate …-03-04"


class TestTimes:
    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("at 6 pm", "at 18:00"),
            ("at 6:30 p.m.", "at 18:30"),
            ("at 6:30PM", "at 6:30 pm"),
            ("at 18h30", "at 18:30"),
            ("at noon", "at 12:00"),
            ("at midnight", "at 00:00"),
            ("at 6:30", "at 6:30 pm"),
            ("at 6:30", "at 18:30"),
            ("at 12:30 am", "at 00:30"),
        ],
    )
    def test_one_time_has_many_spellings(self, old: str, new: str) -> None:
        assert found(f"It opens {old} today", f"It opens {new} today") is None
        assert categories(compared(f"It opens {old} on every day", f"It opens {new} on every day")) == []

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("at 6 pm", "at 6 am"),
            ("at 18:30", "at 18:45"),
            ("at 06:30", "at 18:30"),
            ("at noon", "at midnight"),
            ("at 9:00", "in the morning"),
            ("at 12:30 am", "at 12:30 pm"),
        ],
    )
    def test_another_time_is_blocked(self, old: str, new: str) -> None:
        assert found(f"It opens {old} today", f"It opens {new} today") == "text.time"

    def test_ratios_and_scores_are_no_times(self) -> None:
        assert moments("16:9 and 1:30000 and 25:61 and $5:30", frozenset()).times == ()
