"""One recorded pair side by side, for a terminal and for programs. Pure.

Whatever differs carries a sign of its own, so that colour is never the only one, and no line begins with what a model said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, zip_longest

from replay.decoding import parse_object
from replay.exchange import JSON, Exchange, Observation, Request
from reports.compare.judge_model import last_message
from reports.difference import MEANING, as_findings, decoded, finding_lines, paint
from reports.document import iso
from reports.render.text import clip, columns, plain, wrap
from reports.render.wording import Part, compared
from reports.render.words import NOTHING, moment, quantity
from reports.shown import Item, alike_until
from reports.trees import Row, tree
from reports.wanted import findings as findings_of
from reports.wanted import severity as severity_of

SCHEMA = {"name": "llm-migrate.pair", "version": 1}
_NARROW, _WIDE = 80, 160
_TEXT = 2_000
"""Characters of an answer that are shown, from shortly before the first difference."""
_PROMPT = 600
_BEFORE = 200
_SIGNS = {"same": "=", "changed": "~", "removed": "-", "added": "+", "inside": " "}
_MARKS = (("[-", "-]", "31"), ("{+", "+}", "32"))
"""Around words that only the baseline has, and only the candidate; the colours of both."""
_BLOCKS = "\u2582\u2584\u2586\u2588"
_PIECES = re.compile(r"\n|[^\S\n]+|\S+")


def as_json(item: Item, exchange: Exchange, run: str) -> JSON:
    """The pair for programs: all that is kept of it, and what was found. An arm that was never asked is None."""
    found = item.comparison
    return {
        "schema": dict(SCHEMA),
        "run": run,
        "id": item.pair.id,
        "at": iso(item.pair.at),
        "severity": severity_of(item).value,
        "differs": item.pair.differs,
        "similarity": found.similarity if found else None,
        "not_comparable": item.pair.not_comparable,
        "labels": item.pair.labels,
        "findings": as_findings(findings_of(item)),
        "request": _request(exchange.request),
        "baseline": _arm(exchange.baseline),
        "candidate": _arm(exchange.candidate),
        "repeat": _arm(exchange.repeat),
    }


def _request(asked: Request) -> JSON:
    return {
        "method": asked.method,
        "path": asked.path,
        "bytes": len(asked.body),
        "body": parse_object(asked.body) if asked.body else None,
    }


def _arm(seen: Observation | None) -> JSON | None:
    if seen is None:
        return None
    timing = seen.timing
    return decoded(seen) | {
        "reason": seen.reason,
        "attempts": seen.attempts,
        "timing": {
            "head_s": timing.head_s,
            "ttft_s": timing.ttft_s,
            "e2e_s": timing.e2e_s,
            "lag_s": timing.lag_s,
            "content_times_s": list(timing.content_times),
        },
    }


def render_terminal(
    item: Item, exchange: Exchange, run: str, *, width: int = 100, colour: bool = False
) -> str:
    """The pair for ``width`` columns (80 to 160): what was found, what was asked, both answers, their data and their times."""
    width = min(_WIDE, max(_NARROW, width))
    arms = exchange.baseline, exchange.candidate
    blocks = (
        _head(item, run, width, colour),
        _found(item, width, colour),
        _asked(exchange.request, width),
        _answers(*arms, width, colour),
        _data(tree(*arms), width),
        _times(*arms, width),
    )
    lines = "\n\n".join("\n".join(line.rstrip() for line in block) for block in blocks if block)
    return lines + "\n"


def _head(item: Item, run: str, width: int, colour: bool) -> list[str]:
    severity, pair = severity_of(item), item.pair
    excess = _excess(*(getattr(pair, arm).e2e_s for arm in ("baseline", "candidate")))
    labels = "; ".join(f"{name.replace('_', ' ')} {value}" for name, value in pair.labels.items())
    return [
        f" {paint(severity, colour)}  {MEANING[severity]}",
        *wrap(f"pair {pair.id}, {moment(iso(pair.at))}, run {run}", width, first="  ", rest="  "),
        *wrap(labels, width, first="  ", rest="  "),
        *([f"  candidate's end to end {excess}"] if excess else []),
        *([f"  {clip(pair.not_comparable, width - 2)}"] if pair.not_comparable else []),
    ]


def _excess(base: float | None, candidate: float | None) -> str:
    return "" if base is None or candidate is None else quantity(candidate - base, "s", signed=True)


def _found(item: Item, width: int, colour: bool) -> list[str]:
    lines = []
    for finding in findings_of(item):
        lines += finding_lines(finding, width, colour)
    if item.comparison and item.comparison.similarity is not None:
        lines.append(f"  similarity {item.comparison.similarity:.2f} (cosine, lowest part)")
    return lines or ["  nothing was found"]


def _asked(request: Request, width: int) -> list[str]:
    said = last_message(parse_object(request.body) or {}) if request.body else "(its body is no longer kept)"
    what = clip(f"{request.method} {request.path}", width - 30)
    return [
        f"  ASKED  {what}, {len(request.body):,} bytes",
        *wrap(plain(said, _PROMPT), width, first="  \u2502 ", rest="  \u2502 "),
    ]


def _answers(
    baseline: Observation | None, candidate: Observation | None, width: int, colour: bool
) -> list[str]:
    """Two columns: how each answer came, then what it said, with the words that differ marked."""
    each = (width - 7) // 2
    texts = [_said(arm) for arm in (baseline, candidate)]
    start = max(0, alike_until(*texts) - _BEFORE) if max(map(len, texts)) > _TEXT else 0
    cut = [plain(text[start:], _TEXT, lines=True) for text in texts]
    both = compared(*cut) if all(cut) else tuple((Part(text=text, differs=False),) for text in cut)
    heads = [
        wrap(f"{name}: {_how(arm)}", each) for name, arm in (("BASELINE", baseline), ("CANDIDATE", candidate))
    ]
    if start:
        heads = [[*head, f"({start:,} characters that are alike)"] for head in heads]
    bodies = [list(_wrapped(parts, each, mark, colour)) for parts, mark in zip(both, _MARKS, strict=True)]
    return [*_beside(each, *heads), *_beside(each, *bodies)]


def _said(seen: Observation | None) -> str:
    """All that the first choice says; an error's message where there is no answer."""
    if seen is None:
        return ""
    if seen.failure is not None:
        return f"{seen.failure.error_class.value}: {seen.failure.message}"
    if seen.answer is None:
        return seen.reason
    first = seen.answer.first
    reasoning = f"(reasoning) {first.reasoning}" if first.reasoning else ""
    calls = (f"{call.name}({call.arguments})" for call in first.tool_calls)
    return "\n".join(part for part in (reasoning, first.text, first.refusal, *calls) if part)


def _how(seen: Observation | None) -> str:
    if seen is None:
        return "not asked"
    parts = [seen.outcome.value if seen.status is None else f"{seen.outcome.value} {seen.status}"]
    if seen.answer is not None:
        parts.append(f"finish {seen.answer.first.finish_reason}")
    if seen.output_tokens is not None:
        parts.append(f"{seen.output_tokens:,} tokens")
    if seen.attempts > 1:
        parts.append(f"attempt {seen.attempts}")
    return ", ".join(parts)


def _beside(each: int, left: Sequence[str], right: Sequence[str]) -> list[str]:
    return [f"  {_padded(old, each)} \u2502 {new}" for old, new in zip_longest(left, right, fillvalue="")]


def _padded(text: str, width: int) -> str:
    return text + " " * (width - columns(_ESCAPE.sub("", text)))


_ESCAPE = re.compile(r"\x1b\[[0-9]*m")


def _wrapped(parts: Iterable[Part], width: int, mark: tuple[str, str, str], colour: bool) -> Iterator[str]:
    """Lines of at most ``width`` columns; each run of differing words stands between marks, on every line anew."""
    line: list[tuple[str, bool]] = []
    for piece, differs in _pieces(parts, width - 4):
        if piece == "\n" or columns(_line([*line, (piece, differs)], mark)) > width:
            yield _line(line, mark, colour=colour)
            line = []
        if piece != "\n" and (line or not piece.isspace()):
            line.append((piece, differs))
    yield _line(line, mark, colour=colour)


def _pieces(parts: Iterable[Part], longest: int) -> Iterator[tuple[str, bool]]:
    """Words, spaces and line ends; an endless word in pieces that fit however wide its letters are."""
    for part in parts:
        for piece in _PIECES.findall(part.text):
            step = longest if columns(piece) == len(piece) else longest // 2
            for start in range(0, len(piece), step):
                yield piece[start : start + step], part.differs


def _line(line: Iterable[tuple[str, bool]], mark: tuple[str, str, str], *, colour: bool = False) -> str:
    runs = (("".join(text for text, _ in run), differs) for differs, run in groupby(line, lambda one: one[1]))
    return "".join(
        _marked(text, mark, colour) if differs and text.strip() else text for text, differs in runs
    )


def _marked(text: str, mark: tuple[str, str, str], colour: bool) -> str:
    before, after, code = mark
    return f"\x1b[{code}m{before}{text}{after}\x1b[0m" if colour else f"{before}{text}{after}"


def _data(rows: Sequence[Row], width: int) -> list[str]:
    """The tree of tool calls and JSON: a sign, a name, and both values."""
    if not rows:
        return []
    each = (width - 8) // 3
    lines = ["  DATA   = same, ~ changed, - only the baseline, + only the candidate"]
    for row in rows:
        name = clip(f"{'  ' * min(row.depth, 8)}{plain(row.name)}", each)
        values = [clip(value or "", each) for value in (row.baseline, row.candidate)]
        lines.append(
            f"  {_SIGNS[row.mark]} {_padded(name, each)} {_padded(values[0], each)} \u2502 {values[1]}"
        )
    return lines


def _times(baseline: Observation | None, candidate: Observation | None, width: int) -> list[str]:
    """When each answer came, in numbers and as a strip in which all columns last equally long."""
    arms = [(name, arm) for name, arm in (("baseline", baseline), ("candidate", candidate)) if arm]
    longest = max((arm.timing.e2e_s or 0.0 for _, arm in arms), default=0.0)
    if not longest:
        return []
    cells = width - 13
    lines = [f"  {'TIMES':<10}{'headers':>11}{'TTFT':>11}{'longest wait':>14}{'end to end':>12}{'chunks':>8}"]
    for name, arm in arms:
        seen = arm.timing
        waits = [
            later - earlier
            for earlier, later in zip(seen.content_times, seen.content_times[1:], strict=False)
        ]
        cut = [
            quantity(value, "s") for value in (seen.head_s, seen.ttft_s, max(waits, default=None), seen.e2e_s)
        ]
        chunks = str(len(seen.content_times)) if seen.content_times else NOTHING
        lines.append(f"  {name:<10}{cut[0]:>11}{cut[1]:>11}{cut[2]:>14}{cut[3]:>12}{chunks:>8}")
    lines += [
        f"  {name:<10}{_strip(arm.timing.content_times, arm.timing.e2e_s or 0.0, longest, cells)}"
        for name, arm in arms
    ]
    return [
        *lines,
        f"  {'':<10}a column is {quantity(longest / cells, 's')}; \u00b7 waiting, {_BLOCKS} chunks with tokens",
    ]


def _strip(times: Sequence[float], end: float, longest: float, cells: int) -> str:
    counts = [0] * cells
    for at in times:
        counts[min(cells - 1, max(0, int(at / longest * cells)))] += 1
    most = max(counts)
    last = max(1, round(end / longest * cells))
    return "".join(
        _BLOCKS[-(-count * len(_BLOCKS) // most) - 1] if count else "\u00b7" if cell < last else " "
        for cell, count in enumerate(counts)
    )
