"""Small rules for what an embedding cannot see. A BLOCK of one of them decides, whatever the cosine; a WARN is shown beside it.

A guard takes the two normalised texts and is blind to which is whose, except in its message.
"""

from __future__ import annotations

from collections.abc import Callable

from reports.compare.guards.characters import guard_characters
from reports.compare.guards.choices import guard_choices
from reports.compare.guards.code import guard_code
from reports.compare.guards.comparisons import guard_comparisons
from reports.compare.guards.dates import guard_dates
from reports.compare.guards.languages import guard_languages
from reports.compare.guards.links import guard_links
from reports.compare.guards.loops import guard_loops
from reports.compare.guards.markup import guard_markup
from reports.compare.guards.names import guard_names
from reports.compare.guards.negation import guard_negation
from reports.compare.guards.numbers import guard_numbers
from reports.compare.guards.roles import guard_roles
from reports.compare.guards.yes_no import guard_yes_no
from reports.compare.normal import Plain
from reports.judgement import Finding

Guard = Callable[[Plain, Plain], Finding | None]

GUARDS: tuple[Guard, ...] = (
    guard_markup,
    guard_characters,
    guard_loops,
    guard_languages,
    guard_choices,
    guard_yes_no,
    guard_dates,
    guard_numbers,
    guard_comparisons,
    guard_links,
    guard_code,
    guard_names,
    guard_roles,
    guard_negation,
)
"""In the order in which their findings are shown: what is broken first, then what is said."""
