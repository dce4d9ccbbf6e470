"""Pairs, findings and rules as pandas frames: nullable dtypes, units in the names, NA for what did not happen.

pandas is imported when a frame is made: everything else works without the extra ``pandas``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from reports.compare.model import Comparison
from reports.judgement import Finding, Measured, RuleResult
from reports.many import outcome
from reports.shown import Item

if TYPE_CHECKING:
    import pandas as pd

Column = tuple[str, Callable[[Any], Any]]
"""A dtype of pandas, and what is read from a row's value."""

_ARM: dict[str, Column] = {
    "outcome": ("string", lambda seen: seen.outcome.value),
    "error": ("string", lambda seen: seen.error_class),
    "e2e_s": ("Float64", lambda seen: seen.e2e_s),
    "ttft_s": ("Float64", lambda seen: seen.ttft_s),
    "output_tokens": ("Int64", lambda seen: seen.output_tokens),
    "cached_share": ("Float64", lambda seen: seen.cached),
    "attempts": ("Int64", lambda seen: seen.attempts),
}


def _of_arm(arm: str, read: Callable[[Measured], Any]) -> Callable[[Item], Any]:
    def found(item: Item) -> Any:
        seen = getattr(item.pair, arm)
        return None if seen is None else read(seen)

    return found


def _of_comparison(which: str, read: Callable[[Comparison], Any]) -> Callable[[Item], Any]:
    def found(item: Item) -> Any:
        comparison = getattr(item, which)
        return None if comparison is None else read(comparison)

    return found


def _label(name: str) -> Callable[[Item], str | None]:
    return lambda item: item.pair.labels.get(name)


def _of_finding(name: str) -> Callable[[tuple[Comparison, Finding]], str]:
    return lambda row: str(getattr(row[1], name))


PAIRS: dict[str, Column] = {
    "id": ("string", lambda item: item.pair.id),
    "at": ("datetime64[ns, UTC]", lambda item: round(item.pair.at * 1e9)),
    "session": ("string", lambda item: item.pair.session),
    "streamed": ("boolean", lambda item: item.pair.streamed),
    "severity": ("string", _of_comparison("comparison", lambda found: outcome(found).value)),
    "similarity": ("Float64", _of_comparison("comparison", lambda found: found.similarity)),
    "differs": ("boolean", lambda item: item.pair.differs),
    "repeat_severity": ("string", _of_comparison("repeat", lambda found: outcome(found).value)),
    "repeat_similarity": ("Float64", _of_comparison("repeat", lambda found: found.similarity)),
    "repeat_differs": ("boolean", lambda item: item.pair.repeat_differs),
    "not_comparable": ("string", lambda item: item.pair.not_comparable),
    **{
        f"{arm}_{name}": (dtype, _of_arm(arm, read))
        for arm in ("baseline", "candidate", "repeat")
        for name, (dtype, read) in _ARM.items()
    },
}
"""Columns of ``pairs`` in order; one ``label_NAME`` (string) for each label follows. Durations are seconds, shares 0 to 1."""

FINDINGS: dict[str, Column] = {
    "id": ("string", lambda row: row[0].request_id),
    **{
        name: ("string", _of_finding(name))
        for name in ("category", "severity", "side", "comparator", "message", "evidence")
    },
}
"""Columns of ``findings`` in order; ``id`` is that of the pair."""


def _of_rule(name: str) -> Callable[[RuleResult], Any]:
    return lambda rule: getattr(rule, name)


RULES: dict[str, Column] = {
    name: (dtype, _of_rule(name))
    for dtype, names in (
        ("string", ("rule", "verdict")),
        ("Float64", ("estimate", "low", "high", "margin", "noise", "baseline", "candidate")),
        ("string", ("unit",)),
        ("Int64", ("pairs", "missing")),
        ("boolean", ("required", "applies")),
        ("Float64", ("evidence_go", "evidence_rollback")),
        ("Int64", ("forecast_pairs",)),
        ("Float64", ("forecast_hours",)),
        ("string", ("reason",)),
    )
    for name in names
}
"""Columns of ``rules`` in order: fields of ``RuleResult``."""


def pair_columns(dimensions: Iterable[str]) -> dict[str, Column]:
    """``PAIRS``, and a column for each label of these dimensions."""
    return PAIRS | {f"label_{name}": ("string", _label(name)) for name in dimensions}


def finding_rows(comparisons: Iterable[Comparison]) -> list[tuple[Comparison, Finding]]:
    """What ``FINDINGS`` are read from, in order."""
    return [(one, finding) for one in comparisons for finding in one.findings]


def pairs(items: Iterable[Item], dimensions: Iterable[str] | None = None) -> pd.DataFrame:
    """One row a pair, with the columns of ``PAIRS`` and the labels of these dimensions (``None``: of all that there are). Raises
    ImportError without pandas."""
    rows = list(items)
    if dimensions is None:
        dimensions = sorted({name for item in rows for name in item.pair.labels})
    return _frame(rows, pair_columns(dimensions))


def findings(comparisons: Iterable[Comparison]) -> pd.DataFrame:
    """One row a finding, in order, with the columns of ``FINDINGS``. Raises ImportError without pandas."""
    return _frame(finding_rows(comparisons), FINDINGS)


def rules(results: Iterable[RuleResult]) -> pd.DataFrame:
    """One row a rule, in order, with the columns of ``RULES``. Raises ImportError without pandas."""
    return _frame(list(results), RULES)


def _frame(rows: list[Any], columns: dict[str, Column]) -> pd.DataFrame:
    import pandas as pd

    series = {
        name: pd.Series([_plain(read(row)) for row in rows], dtype=dtype)
        for name, (dtype, read) in columns.items()
    }
    return pd.DataFrame(series)


def _plain(value: Any) -> Any:
    """Without lone surrogates, which columns of text refuse."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
