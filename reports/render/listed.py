"""Some pairs of a run, two lines each for a person, as one document for a program. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from replay.exchange import JSON
from reports.difference import as_findings, paint
from reports.document import iso
from reports.judgement import Measured
from reports.render.text import clip, columns
from reports.render.words import from_to
from reports.shown import Item
from reports.wanted import findings, matches, severity

SCHEMA = {"name": "llm-migrate.pairs", "version": 1}
_ARROW = " \u2192 "
_ARMS = ("baseline", "candidate", "repeat")


def as_json(items: Iterable[Item], run: str, *, complete: bool) -> JSON:
    """``complete``: no other pair of the run fits."""
    return {
        "schema": dict(SCHEMA),
        "run": run,
        "complete": complete,
        "pairs": [_row(item) for item in items],
    }


def _row(item: Item) -> JSON:
    return {
        "id": item.pair.id,
        "at": iso(item.pair.at),
        "severity": severity(item).value,
        "differs": item.pair.differs,
        "similarity": item.comparison.similarity if item.comparison else None,
        "labels": item.pair.labels,
        "findings": as_findings(findings(item)),
        **{arm: _measured(getattr(item.pair, arm)) for arm in _ARMS},
    }


def _measured(seen: Measured | None) -> JSON | None:
    if seen is None:
        return None
    return {
        "outcome": seen.outcome.value,
        "error": seen.error_class,
        "e2e_s": seen.e2e_s,
        "ttft_s": seen.ttft_s,
        "output_tokens": seen.output_tokens,
    }


def render_terminal(
    items: Sequence[Item], *, pattern: str | None = None, width: int = 80, colour: bool = False
) -> str:
    """A pair: its severity and id, what became of both requests, how long they took; below, its gravest finding that is of the
    pattern."""
    return "".join(f"{line.rstrip()}\n" for item in items for line in _lines(item, pattern, width, colour))


def _lines(item: Item, pattern: str | None, width: int, colour: bool) -> Iterable[str]:
    word, pair = severity(item), item.pair
    outcomes = dict.fromkeys(seen.outcome.value for seen in (pair.baseline, pair.candidate))
    head = f"  {_ARROW.join(outcomes)}  {from_to(pair.baseline.e2e_s, pair.candidate.e2e_s)}"
    yield f"{paint(word, colour)}{' ' * (8 - len(word))}{clip(pair.id, width - 8 - columns(head))}{head}"
    of_pattern = [one for one in findings(item) if pattern is None or matches(one, pattern)]
    if of_pattern:
        more = f" (and {len(of_pattern) - 1} more)" if len(of_pattern) > 1 else ""
        told = f"{of_pattern[0].category}: {of_pattern[0].message}"
        yield f"{'':8}{clip(told, width - 8 - len(more))}{more}"
