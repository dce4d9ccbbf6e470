"""A percentage as people write it."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer


def _percent(value: object) -> float:
    """A percentage as `shadow.percent` takes it: 0 to 100; ``0.5`` is half a percent. Returns the share."""
    text = str(value).strip().removesuffix("%").strip()
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number <= 100:
        raise ValueError(f"{value!r} is not a percentage: write a number from 0 to 100, such as 10 or 0.5")
    return number / 100


Percent = Annotated[
    float,
    BeforeValidator(_percent),
    PlainSerializer(lambda share: float(f"{share * 100:.10g}"), when_used="json"),
]
"""A share, written as the percentage it is: 10 means 10 %."""
