"""``migrate judge``: a verdict on measured pairs from anywhere, without a run."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import orjson
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn

from migrate.commands.options import span
from migrate.commands.output import opened, screen
from migrate.commands.report import EXIT_CODES
from migrate.config import load_policy
from migrate.errors import ConfigError
from migrate.judging import is_parquet, measured
from replay.formats.sources import Source
from reports.cells import InvalidNumber, Unreadable
from reports.columns import Columns
from reports.history import Look, history
from reports.judgement import Judgement
from reports.measured import unjudged
from reports.policy import Policy
from reports.render.judged import as_line, as_text
from reports.render.text import plain
from reports.standing import judge_standing

_MOST_LOOKS = 10_000
_EPILOG = """\b
A line is a pair: {"id", "at" (seconds, UTC epoch), "session"?, "baseline": {"outcome", "e2e_s", "ttft_s"?, "output_tokens"?},
"candidate": {…}, "baseline_repeat"?: {…}, "differs"?: true or false, "repeat_differs"?, "labels"?: {…}}.
Outcomes: ok, http_error, timeout, connect_error, protocol_error, client_cancelled, mirror_dropped, not_sent, unserved.
In CSV a column is named with a dot, baseline.outcome; in Parquet so, or baseline is a struct.
\b
Examples:
  migrate judge pairs.jsonl
  migrate judge monday.csv tuesday.parquet --policy policy.yaml --format json | jq -c '[.file, .verdict, .code]'
  zcat pairs.jsonl.gz | migrate judge - --every 1h
\b
Exit codes, of the worst verdict: 0 GO, 3 ROLLBACK, 4 HOLD; 2 wrong use, also a file that cannot be read; 1 our own failure."""


def _every(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    try:
        return None if value is None else span(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is no time above 0: write it as 5m or 1h") from None


@click.command(epilog=_EPILOG)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--policy",
    "path",
    type=click.Path(path_type=Path),
    help="YAML with the fields of a policy, or a configuration with policy:. [default: the default policy]",
)
@click.option(
    "--format", "form", type=click.Choice(["terminal", "json"]), default="terminal", show_default=True
)
@click.option(
    "--every",
    metavar="DURATION",
    callback=_every,
    help="Also say what the verdict would have been at a look this often, such as 1h.",
)
@click.option("--quiet", is_flag=True, help="No progress.")
def judge(files: tuple[Path, ...], path: Path | None, form: str, every: float | None, quiet: bool) -> None:
    """Say GO, ROLLBACK or HOLD of measured pairs, one verdict for each file. FILES are JSON Lines, CSV or Parquet, told by their
    content, and - is standard input; gzip and zstd are read as they are.

    Each file is a whole run that has ended. docs/verdicts.md says what a verdict promises, and what each code means.
    """
    policy = load_policy(path) if path else Policy()
    sources, codes = _sources(files), [0]
    with opened(None) as out:
        for source in sources:
            found = _found(source, policy, every, quiet=quiet)
            codes.append(found.code)
            if form == "json" and not found.judgement.rules:
                click.echo(f"migrate: {found.judgement.reason}", err=True)
            out.write(_json(found) if form == "json" else _text(found))
            out.flush()
    raise click.exceptions.Exit(max(codes, key=_GRAVER.index))


_GRAVER = (0, 4, 3, 2)
"""Exit codes; a file that could not be read is graver than any verdict on the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What is said of one file, and its exit code."""

    name: str
    judgement: Judgement
    looks: tuple[Look, ...] | None
    code: int


def _sources(files: Sequence[Path]) -> list[Source]:
    """All files, before any is judged. Raises ConfigError for one that cannot be opened."""
    if (twice := Counter(files)[Path("-")]) > 1:
        raise ConfigError(f"- is standard input, and was given {twice} times")
    return [_source(path) for path in files]


def _source(path: Path) -> Source:
    try:
        return Source(None if str(path) == "-" else path)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None


def _found(source: Source, policy: Policy, every: float | None, *, quiet: bool) -> _Found:
    console = Console(stderr=True)
    words = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn())
    with Progress(
        *words, console=console, transient=True, disable=quiet or not console.is_terminal
    ) as progress:
        task = progress.add_task(plain(_name(source)), total=source.size)
        try:
            table = measured(source, lambda pairs: _tell(progress, task, source, pairs))
        except Unreadable as error:
            return _unread(source, error)
        progress.update(task, description=f"judging {len(table):,} pairs", total=None)
        looks = None if every is None else history(table, policy, looks=_looks(table, every, source.name))
    now = float(table.at[-1]) if len(table) else 0.0
    judgement = judge_standing(table, policy, now=now, final=True)
    return _Found(name=_name(source), judgement=judgement, looks=looks, code=EXIT_CODES[judgement.verdict])


def _tell(progress: Progress, task: TaskID, source: Source, pairs: int) -> None:
    progress.update(task, completed=source.done, description=f"{plain(_name(source))}: {pairs:,} pairs")


def _unread(source: Source, error: Unreadable) -> _Found:
    """No verdict on half a file. A number that nothing can have measured is HOLD; what is no pair at all is wrong use."""
    reason = plain(f"{_name(source)}{_PLACES[is_parquet(source)].format(error.line)}: {error.what}")
    code = 4 if isinstance(error, InvalidNumber) else 2
    return _Found(name=_name(source), judgement=unjudged(error.code, reason), looks=None, code=code)


_PLACES = {False: ":{}", True: ": row {}"}


def _looks(table: Columns, every: float, name: str) -> list[float]:
    """The times of looking: from the first pair on, the last one when all pairs were dispatched."""
    if not len(table):
        return []
    first, last = float(table.at[0]), float(table.at[-1])
    many = max(1, math.ceil((last - first) / every))
    if many > _MOST_LOOKS:
        raise ConfigError(
            f"--every would be {many:,} looks at {name}, at most {_MOST_LOOKS:,}: look less often"
        )
    return [first + every * number for number in range(1, many + 1)]


def _name(source: Source) -> str:
    """The file as it was given, in characters that can be written."""
    name = "-" if source.size is None and not source.stem else source.name
    return os.fsencode(name).decode("utf-8", "replace")


def _json(found: _Found) -> bytes:
    return orjson.dumps(as_line(found.name, found.judgement, found.looks)) + b"\n"


def _text(found: _Found) -> bytes:
    width, colour = screen()
    return as_text(found.name, found.judgement, found.looks, width=width, colour=colour).encode() + b"\n"
