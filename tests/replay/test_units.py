"""Durations, shares, sizes and counts: what is accepted, what is refused, and in which words."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.units import parse_count, parse_duration, parse_share, parse_size


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("50ms", 0.05),
        ("30s", 30.0),
        (" 1.5 s ", 1.5),
        ("15m", 900.0),
        ("24h", 86_400.0),
        ("7d", 604_800.0),
        ("250us", 0.00025),
        (2, 2.0),
        (0.5, 0.5),
        ("0", 0.0),
    ],
)
def test_durations(written: object, seconds: float) -> None:
    assert parse_duration(written) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "wrong", ["", "ms", "5 weeks", "-1s", "1M", "1e3s", "50 ms 3", None, True, math.nan, -1, [1]]
)
def test_wrong_durations_name_the_value_and_the_forms(wrong: object) -> None:
    with pytest.raises(ValueError, match="write it as 50ms") as caught:
        parse_duration(wrong)
    assert repr(wrong) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("bare", "said"),
    [
        ("24", "24 has no unit: write 24s, 24m or 24h"),
        (" 0.5 ", "0.5 has no unit: write 0.5s, 0.5m or 0.5h"),
    ],
)
def test_a_duration_in_text_has_a_unit(bare: str, said: str) -> None:
    with pytest.raises(ValueError, match=f"^{said}$"):
        parse_duration(bare)


@pytest.mark.parametrize(
    ("bare", "said"),
    [
        ("1", "1 has no unit: write 1 %, or 100 % for the whole"),
        ("5", "5 has no unit: write 5 %"),
        ("100", "100 has no unit: write 100 %"),
    ],
)
def test_a_share_in_text_that_may_be_percent_says_so(bare: str, said: str) -> None:
    with pytest.raises(ValueError, match=f"^{said}$"):
        parse_share(bare)


@pytest.mark.parametrize(
    ("written", "share"),
    [
        ("10 %", 0.1),
        ("10%", 0.1),
        (0.1, 0.1),
        ("0.5", 0.5),
        ("0.5 %", 0.005),
        (0, 0.0),
        ("100%", 1.0),
        (1, 1.0),
    ],
)
def test_shares(written: object, share: float) -> None:
    assert parse_share(written) == pytest.approx(share)


@pytest.mark.parametrize(
    "wrong", ["110", 10, "101 %", "nan", math.nan, math.inf, -0.1, "-5%", "a tenth", "", True, "5%%"]
)
def test_wrong_shares(wrong: object) -> None:
    with pytest.raises(ValueError, match="is not a share: write it as 10 % or"):
        parse_share(wrong)


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("32 MiB", 32 * 2**20),
        ("512KiB", 512 * 1024),
        ("1.5 kb", 1500),
        ("10 MB", 10_000_000),
        (4096, 4096),
        ("7 b", 7),
    ],
)
def test_sizes(written: object, size: int) -> None:
    assert parse_size(written) == size


@pytest.mark.parametrize("wrong", ["32 M iB", "-1", "0.5", "1.0001 kB", "lots", math.inf, False, None])
def test_wrong_sizes(wrong: object) -> None:
    with pytest.raises(ValueError, match="is not a size: write it as 32 MiB"):
        parse_size(wrong)


@pytest.mark.parametrize(
    ("written", "count"),
    [("20M", 20_000_000), ("1.5k", 1500), ("1_000", 1000), (12, 12), ("1G", 10**9), (3.0, 3)],
)
def test_counts(written: object, count: int) -> None:
    assert parse_count(written) == count


@pytest.mark.parametrize("wrong", ["20 MiB", "0.5", 1.5, "ten", "-3", None, "1.0005k5"])
def test_wrong_counts(wrong: object) -> None:
    with pytest.raises(ValueError, match="is not a count: write it as 1000"):
        parse_count(wrong)


@given(st.text(max_size=12) | st.floats() | st.integers())
def test_any_input_is_a_number_or_a_value_error(found: object) -> None:
    for parse in (parse_duration, parse_share, parse_size, parse_count):
        assert parsed(parse, found) >= 0


def parsed(parse: Callable[[object], float], found: object) -> float:
    try:
        return parse(found)
    except ValueError:
        return 0
