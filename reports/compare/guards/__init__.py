"""Small rules for what an embedding cannot see: any difference that one finds is a BLOCK, whatever the cosine.

A guard takes the two normalised texts and is blind to which is whose, except in its message.
"""

from __future__ import annotations

from collections.abc import Callable

from reports.compare.guards.dates import guard_dates
from reports.compare.guards.negation import guard_negation
from reports.compare.guards.numbers import guard_numbers
from reports.compare.guards.yes_no import guard_yes_no
from reports.compare.normal import Plain
from reports.judgement import Finding

Guard = Callable[[Plain, Plain], Finding | None]

GUARDS: tuple[Guard, ...] = (guard_yes_no, guard_dates, guard_numbers, guard_negation)
"""In the order in which their findings are shown."""
