"""``migrate import``: the logs that people have, as captured requests."""

from __future__ import annotations

import hashlib
import secrets
import sys
import time
from collections.abc import Iterator
from pathlib import Path

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

from migrate.config import Config, Redact, load
from migrate.errors import ConfigError
from migrate.imports import Importer, Tally
from migrate.redact import Redactor
from migrate.store import Store, Writer
from replay.formats import FORMATS, Undetected, detect, read, vllm_log
from replay.formats.record import Item, Skip
from replay.formats.sources import Source

_EPILOG = """\b
Examples:
  migrate import litellm.jsonl.gz
  migrate import input.jsonl output.jsonl errors.jsonl     (an OpenAI Batch)
  zcat requests.gor.gz | migrate import -
  migrate import session.har --model harbor-7b --strict
\b
The same file again adds nothing. Secrets and personal data are replaced before anything is stored."""
_SHOWN = 5


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
@click.option("--strict", is_flag=True, help="Stop at the first record that cannot be used.")
@click.option("--quiet", is_flag=True, help="Say only what goes wrong.")
def import_(
    files: tuple[Path, ...],
    form: str,
    path: Path | None,
    url: str | None,
    model: str | None,
    strict: bool,
    quiet: bool,
) -> None:
    """Read logs into the store as captured requests, with the answers that they hold as the baseline's.

    The format is told by the content; gzip and zstd are read as they are; - is standard input. Files that belong together
    (an OpenAI Batch, the parts of a GoReplay recording) are given together. Each record that cannot be used is counted by
    its reason.
    """
    config = _config(path)
    sources = [_source(file) for file in files]
    name = _format(sources, form)
    address = url or (config.store.url if config else "sqlite:///migrate.db")
    with Store.open(address, create=True) as store:
        run = _run(store, config)
        before = store.count(run)
        writer = Writer(store, run)
        redactor = Redactor(config.redact if config else Redact(), secrets.token_bytes(32))
        importer = Importer(redactor, writer, key=_key(name, sources), model=model)
        try:
            _play(importer, read(sources, name), sources, strict=strict, quiet=quiet)
        finally:
            written = writer.close(60)
            added = store.count(run) - before
            _tell(importer.tally, added, name, address, run, quiet=quiet)
        if not written:
            raise ConfigError(f"the store took no more: {writer.status()['error']}")


def _config(path: Path | None) -> Config | None:
    if path is None and not Path("migrate.yaml").exists():
        return None
    return load(path or "migrate.yaml")


def _source(file: Path) -> Source:
    try:
        return Source(None if str(file) == "-" else file)
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from None


def _format(sources: list[Source], form: str) -> str:
    """The one format of all sources. Raises ConfigError."""
    if form != "auto":
        return form
    try:
        found = {detect(source) for source in sources}
    except Undetected as error:
        raise ConfigError(str(error)) from None
    if len(found) > 1:
        raise ConfigError(
            f"the files are of different formats ({', '.join(sorted(found))}); import them one after the other"
        )
    return found.pop()


def _run(store: Store, config: Config | None) -> str:
    """The run that holds imported requests; there is one, so that the same file again adds nothing."""
    known = [run.id for run in store.runs() if run.kind == "import"]
    if known:
        return known[-1]
    data = config.model_dump(mode="json", by_alias=True) if config else {}
    run = store.begin_run(
        kind="import", config=data, policy=data.get("policy", {}), seed=secrets.randbits(32), at=time.time()
    )
    store.end_run(run, at=time.time())
    return run


def _key(name: str, sources: list[Source]) -> bytes:
    """Names what is imported by its beginning, so that a log that has grown since goes on where it was."""
    first = b"".join(source.head[:4096].split(b"\n", 1)[0] for source in sources)
    return hashlib.blake2b(name.encode() + b"\0" + first, digest_size=32).digest()


def _play(
    importer: Importer, items: Iterator[Item], sources: list[Source], *, strict: bool, quiet: bool
) -> None:
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
    shown = 0
    with Progress(
        *columns, console=console, transient=True, disable=quiet or not console.is_terminal
    ) as progress:
        task = progress.add_task("importing", total=total)
        for number, item in enumerate(items, 1):
            skip = item if isinstance(item, Skip) else importer.take(item)
            if isinstance(item, Skip):
                importer.tally.skipped[item.reason] += 1
            if skip is not None and strict:
                raise ConfigError(f"record {skip.line}: {skip.reason}: {skip.detail}")
            if skip is not None and shown < _SHOWN and not quiet:
                shown += 1
                progress.console.print(
                    f"record {skip.line} skipped: {skip.reason}: {skip.detail}", markup=False, highlight=False
                )
            if number % 500 == 0:
                progress.update(task, completed=sum(source.done for source in sources))


def _tell(tally: Tally, added: int, name: str, address: str, run: str, *, quiet: bool) -> None:
    if quiet:
        return
    skipped = sum(tally.skipped.values())
    known = tally.taken - added
    rest = f", {known:,} were there already" if known else ""
    click.echo(
        f"{name}: {tally.taken + skipped:,} records; {added:,} requests added to run {run} of {address}{rest}",
        err=True,
    )
    click.echo(f"{tally.answered:,} with an answer; {skipped:,} skipped", err=True)
    for title, counts in (("skipped", tally.skipped), ("noted", tally.notes)):
        for reason, many in counts.most_common():
            click.echo(f"  {title} {reason}: {many:,}", err=True)
    if name == "vllm-log":
        click.echo(vllm_log.HINT, err=True)
    sys.stderr.flush()
