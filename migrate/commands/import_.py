"""``migrate import``: the logs that people have, as captured requests."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from migrate.config import Config, Redact, load_any
from migrate.cores import cores
from migrate.crew import spread
from migrate.errors import ConfigError, MigrateError, StoreError
from migrate.imports import SHOWN, Importer, Part, Plan, Taken, Tally, batched, batches, unread
from migrate.prompts import Prompts, prompted
from migrate.salt import key_file, lasting_salt
from migrate.store import Store, Writer
from replay.formats import FORMATS, Undetected, detect, groups, read, sources_of, vllm_log
from replay.formats.record import Skip
from replay.formats.sources import Source

_EPILOG = """\b
Examples:
  migrate import litellm.jsonl.gz
  migrate import input.jsonl output.jsonl errors.jsonl     (an OpenAI Batch)
  zcat requests.gor.gz | migrate import -
  migrate import session.har --model harbor-7b --strict
  migrate import azure.csv --prompts prompts.jsonl --model harbor-7b
\b
The same file again adds nothing. Secrets and personal data are replaced before anything is stored.
\b
Exit codes: 0 done, also where some records could not be used; 1 a compressed file is cut off or damaged (what came
before is stored), or our own failure; 2 wrong use, also where no record could be used or a file is of another format;
130 interrupted (what was read is stored)."""
_PROCESSES = 2
"""At most; with more, the one that writes is what the others wait for."""
_QUEUED = 32
"""Batches that wait for the store."""


@click.command(name="import", epilog=_EPILOG)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(["auto", *FORMATS]),
    default="auto",
    show_default=True,
    help="Of all files.",
)
@click.option(
    "--config",
    "path",
    type=click.Path(path_type=Path),
    envvar="MIGRATE_CONFIG",
    help="Names the store and what is redacted. [default: migrate.yaml, when there is one]",
)
@click.option(
    "--store", "url", metavar="URL", help="Where to record; default: store.url of the configuration."
)
@click.option("--model", metavar="NAME", help="What to ask for where a record names no model.")
@click.option(
    "--prompts",
    "prompts_path",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Requests, one JSON object a line, for logs of times and lengths alone: taken in order, over and over.",
)
@click.option(
    "--timezone", "zone", metavar="NAME", help="Of times that name none, such as Europe/Oslo. [default: UTC]"
)
@click.option("--strict", is_flag=True, help="Stop at the first record that cannot be used.")
@click.option("--quiet", is_flag=True, help="Say only what goes wrong.")
def import_(
    files: tuple[Path, ...],
    form: str,
    path: Path | None,
    url: str | None,
    model: str | None,
    prompts_path: Path | None,
    zone: str | None,
    strict: bool,
    quiet: bool,
) -> None:
    """Read logs into the store as captured requests, with the answers that they hold as the baseline's.

    The format is told by the content; gzip and zstd are read as they are; - is standard input. Files that belong together
    (an OpenAI Batch, the parts of a GoReplay recording) are given together. Each record that cannot be used is counted by
    its reason.
    """
    config, when = load_any(path), _zone(zone)
    sources = _sources(files)
    name = _format(sources, form)
    prompts = Prompts(prompts_path, model) if prompts_path else None
    with Store.open(url or (config.store.url if config else "sqlite:///migrate.db"), create=True) as store:
        run = _run(store, config)
        plan = Plan(
            form=name,
            run=run,
            rules=config.redact if config else Redact(),
            salt=_salt(run),
            model=model,
            zone=when,
            strict=strict,
            unread=prompts is None and unread(name),
        )
        tally = _into(store, plan, sources, prompts, quiet=quiet)
    _refuse_incomplete(sources)
    _refuse_fruitless(sources, name, tally)


def _into(
    store: Store, plan: Plan, sources: Sequence[Source], prompts: Prompts | None, *, quiet: bool
) -> Tally:
    """Takes everything into the store, and says at the end, however it comes, what was."""
    before, tally = store.count(plan.run), Tally()
    writer = Writer(store, plan.run, capacity=_QUEUED)
    try:
        _play(plan, _batches(plan, sources, prompts), sources, writer, tally, quiet=quiet)
    finally:
        written = writer.close(60)
        if not quiet:
            _tell(plan, tally, store.count(plan.run) - before, store.name, written=written)
            _tell_prompts(plan.form, prompts)
    refused = writer.status()["refused"]
    if not written or refused:
        why = writer.status()["error"] or f"{refused:,} batches were refused"
        raise StoreError(f"the store took not everything: {why}; import the same again")
    return tally


def _refuse_incomplete(sources: Sequence[Source]) -> None:
    """Raises MigrateError where compressed data stopped early: what was to be imported is not all there."""
    found = [f"{source.name} is {source.incomplete}" for source in sources if source.incomplete]
    if found:
        more = f"; so are {len(found) - SHOWN:,} more files" if len(found) > SHOWN else ""
        raise MigrateError(
            f"{'; '.join(found[:SHOWN])}{more}. What came before is stored; get the whole file and import it again: what is "
            "there is not added twice"
        )


def _refuse_fruitless(sources: Sequence[Source], form: str, tally: Tally) -> None:
    """Raises ConfigError where a file gave no request because it is of another format, or nothing gave one."""
    silent = [] if tally.taken[""] else [source for source in sources if not tally.taken[source.name]]
    other = next(
        ((source, found) for source in silent if (found := _looks(source)) not in (None, form)), None
    )
    if other:
        source, found = other
        raise ConfigError(
            f"no request was found in {source.name} as {form}: it looks like {found}; leave --format out"
        )
    if not tally.taken:
        skipped = ", ".join(f"{reason}: {many:,}" for reason, many in tally.skipped.most_common(SHOWN))
        why = f"no record could be used ({skipped})" if skipped else f"nothing in there is a record of {form}"
        raise ConfigError(f"no request was imported: {why}")


def _looks(source: Source) -> str | None:
    """The format that a source has by its content; ``None``: none alone, or it is empty."""
    try:
        return detect(source)
    except Undetected:
        return None


def _batches(plan: Plan, sources: Sequence[Source], prompts: Prompts | None) -> Iterator[Part]:
    if prompts is None:
        return batches(sources, plan.form, zone=plan.zone)
    items = (item for group in groups(sources, plan.form) for item in read(group, plan.form, plan.zone))
    return map(Part, batched(prompted(items, prompts)))


def _salt(run: str) -> bytes:
    """The salt of the run's placeholders; one of this import alone where no key can be kept."""
    try:
        return lasting_salt(run)
    except OSError as error:
        click.echo(
            f"{key_file()}: {error.strerror}; a value that is imported again gets another placeholder",
            err=True,
        )
        return secrets.token_bytes(32)


def _zone(name: str | None) -> tzinfo:
    try:
        return UTC if name is None else ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        raise ConfigError(f"--timezone {name}: no such time zone; write it as Europe/Oslo") from None


def _sources(files: Sequence[Path]) -> list[Source]:
    found: list[Source] = []
    for file in files:
        try:
            found += [Source(None)] if str(file) == "-" else sources_of([file])
        except OSError as error:
            raise ConfigError(f"{error.filename or file}: cannot be read: {error.strerror}") from None
    return found


def _format(sources: list[Source], form: str) -> str:
    """The one format of all sources that hold anything. Raises ConfigError."""
    if form != "auto":
        return form
    try:
        found = {detect(source) for source in sources if source.head.strip()}
    except Undetected as error:
        _refuse_incomplete(sources)
        raise ConfigError(str(error)) from None
    if not found:
        _refuse_incomplete(sources)
        raise ConfigError("there is nothing to import: what was named is empty")
    if len(found) > 1:
        raise ConfigError(
            f"the files are of different formats ({', '.join(sorted(found))}); import them one after the other"
        )
    return found.pop()


def _run(store: Store, config: Config | None) -> str:
    """The run that holds imported requests; there is one, so that the same file again adds nothing."""
    data = config.model_dump(mode="json", by_alias=True) if config else {}
    return store.only_run(
        kind="import", config=data, policy=data.get("policy", {}), seed=secrets.randbits(32), at=time.time()
    )


def _play(
    plan: Plan,
    work: Iterator[Part],
    sources: Sequence[Source],
    writer: Writer,
    tally: Tally,
    *,
    quiet: bool,
) -> None:
    """Takes batch after batch, in order, so that the first record that cannot be used is the first that is told."""
    console = Console(stderr=True)
    sizes = [source.size for source in sources]
    total = None if None in sizes else sum(size or 0 for size in sizes)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    hidden = quiet or not console.is_terminal
    processes = min(_PROCESSES, cores())
    with (
        Progress(*columns, console=console, transient=True, disable=hidden) as progress,
        contextlib.closing(spread(Importer, plan, work, processes=processes)) as done,
    ):
        task = progress.add_task("importing", total=total)
        for taken in done:
            writer.put(taken.rows)
            for line in () if quiet or plan.strict else _told(taken, SHOWN - sum(tally.skipped.values())):
                progress.console.print(line, markup=False, highlight=False, soft_wrap=True)
            tally.add(taken.tally)
            progress.update(task, completed=sum(source.done for source in sources))
            if plan.strict and taken.skips:
                skip = taken.skips[0]
                raise ConfigError(f"{_placed(taken, skip)}: {skip.reason}: {skip.detail}")


def _placed(taken: Taken, skip: Skip) -> str:
    return f"{taken.source} record {skip.line}".lstrip()


def _told(taken: Taken, most: int) -> list[str]:
    return [
        f"{_placed(taken, skip)} skipped: {skip.reason}: {skip.detail}"
        for skip in taken.skips[: max(most, 0)]
    ]


def _tell(plan: Plan, tally: Tally, added: int, store: str, *, written: bool) -> None:
    skipped = sum(tally.skipped.values())
    taken = tally.taken.total()
    known = taken - added
    rest = f", {known:,} were there already" if known > 0 else ""
    if not written:
        rest = f", {known:,} were there already or could not be written"
    click.echo(
        f"{plan.form}: {taken + skipped:,} records; {added:,} requests added to run {plan.run} of {store}{rest}",
        err=True,
    )
    click.echo(f"{tally.answered:,} with an answer; {skipped:,} skipped", err=True)
    for reason, many in tally.skipped.most_common():
        click.echo(f"  skipped {reason}: {many:,} ({_at(tally.places[reason], many)})", err=True)
    for note, many in tally.notes.most_common():
        click.echo(f"  noted {note}: {many:,}", err=True)
    if plan.form == "vllm-log":
        click.echo(vllm_log.HINT, err=True)


def _at(places: Sequence[str], many: int) -> str:
    return ", ".join(places) + (", …" if many > len(places) else "")


def _tell_prompts(name: str, prompts: Prompts | None) -> None:
    if prompts is None:
        return
    over = f", each {prompts.turns:.1f} times over" if prompts.turns else ""
    click.echo(f"{prompts.used:,} requests made with the prompts of {prompts.path}{over}", err=True)
    if name == "mooncake":
        click.echo("the shared prefixes that hash_ids describes are not rebuilt", err=True)
