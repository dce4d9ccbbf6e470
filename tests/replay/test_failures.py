"""Retry-After in every dialect."""

from __future__ import annotations

import pytest

from replay.failures import retry_after


@pytest.mark.parametrize(
    ("name", "value", "seconds"),
    [
        ("Retry-After", "2", 2.0),
        ("retry-after", "1.5", 1.5),
        ("retry-after", "Wed, 02 Dec 2026 09:00:05 GMT", 5.0),
        ("retry-after", "Wed, 02 Dec 2026 08:00:00 GMT", 0.0),
        ("retry-after-ms", "750", 0.75),
        ("retry-after", "soon", None),
        ("retry-after", "-3", None),
        ("retry-after", "nan", None),
        ("x-other", "3", None),
    ],
)
def test_the_delay_is_read_from_any_dialect(name: str, value: str, seconds: float | None) -> None:
    now = 1_796_202_000.0  # 2026-12-02 09:00:00 UTC
    assert retry_after(((name, value),), now=now) == seconds
