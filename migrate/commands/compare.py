"""``migrate compare``: many pairs of answers from anywhere, without a run."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from migrate.commands.options import Between
from migrate.commands.output import opened, screen
from migrate.comparing import Looked, Looker, Plan
from migrate.config import Config, load_any
from migrate.cores import cores
from migrate.crew import spread
from migrate.embedder import DEFAULT_MODEL, Embedder, missing
from migrate.errors import ConfigError
from migrate.imports import SHOWN, Batch, batched
from migrate.opinions import SecondOpinion
from migrate.redact import Redactor
from migrate.store import Store
from replay.formats.record import Skip
from replay.formats.sources import Source
from replay.values import compact
from reports.compare import Embed
from reports.compare.texts import FLOOR, decide
from reports.judgement import Severity
from reports.many import Tally, as_line, as_text

_PROCESSES = 8
"""At most; with more, the one that writes is what the others wait for."""
_EPILOG = """\b
A line is a pair: {"baseline": …, "candidate": …} and perhaps "id", "prompt", "request" (the body that was sent) and "repeat"
(the baseline asked again). An answer is a text, or a response body as a JSON object.
\b
Examples:
  migrate compare pairs.jsonl
  migrate compare pairs.jsonl --format json | jq -c 'select(.severity == "BLOCK")'
  zcat pairs.jsonl.gz | migrate compare - --format json --output findings.jsonl
\b
Exit codes: 0 nothing reaches WARN, 5 WARN, 3 BLOCK, 4 no BLOCK but a pair or line that nothing can be said of,
2 wrong use, 1 our own failure, 130 interrupted (what was done is kept)."""


@click.command(epilog=_EPILOG)
@click.argument("pairs", type=click.Path(path_type=Path))
@click.option(
    "--format", "form", type=click.Choice(["terminal", "json"]), default="terminal", show_default=True
)
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="File; default: standard output."
)
@click.option(
    "--similarity",
    type=Between(0, 1),
    help=f"Floor for differing texts. [default: policy.disagreement.similarity of the configuration, else {FLOOR}]",
)
@click.option(
    "--config",
    "path",
    type=click.Path(path_type=Path),
    envvar="MIGRATE_CONFIG",
    help="[default: migrate.yaml, when there is one]",
)
@click.option("--strict", is_flag=True, help="Stop at the first line that is no pair.")
@click.option("--quiet", is_flag=True, help="Say only what goes wrong.")
def compare(
    pairs: Path,
    form: str,
    output: Path | None,
    similarity: float | None,
    path: Path | None,
    strict: bool,
    quiet: bool,
) -> None:
    """Say of each pair of answers whether a user would be served differently, and why. PAIRS is JSON lines, or - for standard
    input; gzip and zstd are read as they are.

    --format json writes a line for each pair, in order, as they are compared; the summary then goes to standard error. Each line
    that is no pair is counted by its reason. docs/findings.md explains every finding.
    """
    config, source = load_any(path), _source(pairs)
    floor = similarity if similarity is not None else _floor(config)
    embed, problem = _embed(config)
    plan = Plan(
        strict=strict,
        prompts=config is not None and config.judge is not None,
        extractors=config.policy.compare if config else (),
    )
    tally, skipped = Tally(), Counter[str]()
    try:
        with _second(config, quiet=quiet) as second, opened(output) as out:
            try:
                for looked in _looked(source, plan, quiet=quiet, skipped=skipped):
                    _take(looked, embed, floor, second, tally, out if form == "json" else None)
            finally:
                if form == "terminal" and tally.pairs:
                    width, colour = screen() if output is None else (100, False)
                    out.write(as_text(tally, width=width, colour=colour).encode())
    finally:
        _tell(tally, skipped, problem, summary=form == "json" and not quiet)
    if not tally.pairs:
        raise ConfigError(f"{source.name}: holds no pair that could be compared")
    raise click.exceptions.Exit(_code(tally, skipped))


def _floor(config: Config | None) -> float:
    return config.policy.disagreement.similarity if config else FLOOR


def _embed(config: Config | None) -> tuple[Embed | None, str | None]:
    """The embedding function; ``None`` and why where it is not installed."""
    model = config.embeddings.model if config else DEFAULT_MODEL
    problem = missing(model)
    return (Embedder(model), None) if problem is None else (None, problem)


@contextlib.contextmanager
def _second(config: Config | None, *, quiet: bool) -> Iterator[SecondOpinion | None]:
    """The judge model of the configuration, with the store as its memory; at the end what it did is said."""
    if config is None or config.judge is None:
        yield None
        return
    with Store.open(config.store.url, create=True) as store:
        redactor = Redactor(config.redact, secrets.token_bytes(32))
        second = SecondOpinion(
            config.judge, clean=redactor.text, read=store.opinions, write=store.put_opinions
        )
        try:
            yield second
        finally:
            for note in () if quiet else second.notes:
                click.echo(note, err=True)


def _source(path: Path) -> Source:
    try:
        return Source(None if str(path) == "-" else path)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None


def _looked(source: Source, plan: Plan, *, quiet: bool, skipped: Counter[str]) -> Iterator[list[Looked]]:
    """The pairs of batch after batch, in order, compared by rules. Lines that are none are counted, the first ones told.

    Raises ConfigError for the first of them where ``plan.strict``.
    """
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    processes = min(_PROCESSES, cores())
    began, count, read = time.monotonic(), 0, 0
    sizes: deque[int] = deque()
    with (
        Progress(
            *columns, console=console, transient=True, disable=quiet or not console.is_terminal
        ) as progress,
        contextlib.closing(spread(Looker, plan, _sized(source, sizes), processes=processes)) as batches,
    ):
        task = progress.add_task("comparing", total=source.size)
        for batch in batches:
            for skip in (one for one in batch if isinstance(one, Skip)):
                if plan.strict:
                    raise ConfigError(f"{source.name}: {_words(skip)}")
                if not quiet and skipped.total() < SHOWN:
                    progress.console.print(
                        f"skipped: {_words(skip)}", markup=False, highlight=False, soft_wrap=True
                    )
                skipped[skip.reason] += 1
            looked = [one for one in batch if isinstance(one, Looked)]
            yield looked
            count, read = count + len(looked), read + sizes.popleft()
            rate = count / max(1e-9, time.monotonic() - began)
            progress.update(
                task,
                completed=min(read or source.done, source.done),
                description=f"{count:,} pairs, {rate:,.0f} a second",
            )


def _sized(source: Source, sizes: deque[int]) -> Iterator[Batch]:
    """The batches of a source, and how many bytes each has: what is read from the disk runs far ahead of a small file, and what
    is compressed has fewer bytes there."""
    for batch in batched(source.objects()):
        sizes.append(sum(len(row) + 1 for _, row in batch if isinstance(row, bytes)))
        yield batch


def _words(skip: Skip) -> str:
    return f"record {skip.line}: {skip.reason}: {skip.detail}"


def _take(
    looked: list[Looked],
    embed: Embed | None,
    floor: float,
    second: SecondOpinion | None,
    tally: Tally,
    out: IO[bytes] | None,
) -> None:
    """Decides a batch, in one call of the model, counts it, and writes a line for each pair."""
    before = [one.look for one in looked]
    after = decide(before, embed, floor)
    if second is not None:
        after = second(before, after, [one.prompt for one in looked])
    lines: list[str] = []
    for one, (first, repeat) in zip(looked, after, strict=True):
        tally.add(one.line, first, repeat)
        if out is not None:
            lines.append(compact(as_line(one.name, first, repeat)) + "\n")
    if out is not None:
        out.write("".join(lines).encode())
        out.flush()


def _tell(tally: Tally, skipped: Counter[str], problem: str | None, *, summary: bool) -> None:
    """What goes to standard error at the end, however it comes."""
    if summary and tally.pairs:
        click.echo(as_text(tally), nl=False, err=True)
    if skipped:
        click.echo(f"{skipped.total():,} records are no pair", err=True)
    for reason, many in skipped.most_common():
        click.echo(f"  skipped {reason}: {many:,}", err=True)
    if problem is not None and tally.severities[Severity.INVALID]:
        click.echo(f"migrate: {problem}", err=True)


def _code(tally: Tally, skipped: Counter[str]) -> int:
    """A pair that is served differently is one whatever else could not be compared."""
    if tally.severities[Severity.BLOCK]:
        return 3
    if tally.severities[Severity.INVALID] or skipped:
        return 4
    return 5 if tally.severities[Severity.WARN] else 0
