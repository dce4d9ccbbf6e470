"""``migrate report``: the verdict, and what it rests on."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress

from migrate.config import Config, load
from migrate.embedder import DEFAULT_MODEL
from migrate.errors import ConfigError, StoreError
from migrate.report import embedder, second_opinion, stored_judge
from migrate.report import report as make_report
from migrate.store import Run, Store
from reports.document import Document
from reports.judgement import Verdict
from reports.render import RENDERERS
from reports.render.terminal import render_terminal

FORMATS = ("terminal", *RENDERERS)
EXIT_CODES = {Verdict.GO: 0, Verdict.ROLLBACK: 3, Verdict.HOLD: 4}
_SUFFIXES = {"html": ".html", "json": ".json", "markdown": ".md", "terminal": ".txt"}
_DEFAULT = Path("migrate.yaml")

_EPILOG = """\b
Examples:
  migrate report
  migrate report --format terminal,html --output report.html
  migrate report --format json | jq .verdict
\b
Exit codes: 0 GO, 3 ROLLBACK, 4 HOLD, 2 wrong use, 1 our own failure."""


@click.command(epilog=_EPILOG)
@click.option(
    "--config",
    "path",
    type=click.Path(path_type=Path),
    envvar="MIGRATE_CONFIG",
    help="[default: migrate.yaml, when it is there]",
)
@click.option("--store", "url", help="Database URL; default: store.url of the configuration.")
@click.option("--run", "run_id", help="A run's id (see migrate runs); default: the latest.")
@click.option(
    "--format",
    "formats",
    multiple=True,
    default=("terminal",),
    help=f"One or more of {', '.join(FORMATS)}, comma-separated or repeated. [default: terminal]",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File for the formats other than terminal (for terminal too, when it is the only one). "
    "[default: standard output; report-RUN.html and the like for several formats]",
)
@click.option("--quiet", is_flag=True, help="No progress.")
def report(
    path: Path | None,
    url: str | None,
    run_id: str | None,
    formats: tuple[str, ...],
    output: Path | None,
    quiet: bool,
) -> None:
    """Judge a run and say GO, ROLLBACK or HOLD. A run that still goes on is judged as it stands.

    A verdict is a pure function of what was recorded and of the policy: the policy of --config when one is given, else the
    one the run was started under.
    """
    wanted = _formats(formats, output)
    config = _config(path)
    document = _document(config, url, run_id, explicit=path is not None, quiet=quiet)
    for form in wanted:
        _emit(document, form, _target(document, form, wanted, output))
    raise click.exceptions.Exit(EXIT_CODES[document.verdict])


def _formats(words: tuple[str, ...], output: Path | None) -> list[str]:
    """The formats, each once. Raises ConfigError before any work for what could not be written."""
    wanted = list(dict.fromkeys(word.strip() for text in words for word in text.split(",") if word.strip()))
    for word in wanted:
        if word not in FORMATS:
            raise ConfigError(f"--format {word!r} is none of {', '.join(FORMATS)}")
    if not wanted:
        raise ConfigError(f"--format names no format; valid: {', '.join(FORMATS)}")
    if output is not None and not output.parent.is_dir():
        raise ConfigError(f"--output {output}: there is no folder {output.parent}")
    return wanted


def _config(path: Path | None) -> Config | None:
    if path is None and not _DEFAULT.exists():
        return None
    return load(path or _DEFAULT)


def _document(
    config: Config | None, url: str | None, run_id: str | None, *, explicit: bool, quiet: bool
) -> Document:
    policy = config.policy if config and explicit else None
    console = Console(stderr=True)
    with (
        _opened(url or (config.store.url if config else "sqlite:///migrate.db")) as store,
        Progress(console=console, transient=True, disable=quiet or not console.is_terminal) as progress,
    ):
        run = _chosen(store, run_id)
        task = progress.add_task("comparing answers", total=None)

        def tell(what: str, done: int, total: int) -> None:
            progress.update(task, description=what, completed=done, total=total)

        embed, notes = embedder(store, _model(config if explicit else None, run), tell)
        second = second_opinion(store, config.judge if config and explicit else stored_judge(run), tell)
        return make_report(
            store, run, policy=policy, now=time.time(), embed=embed, second=second, notes=notes
        )


def _opened(url: str) -> Store:
    """A store that is not there, or not one, is wrong use: nothing was started."""
    try:
        return Store.open(url)
    except StoreError as error:
        raise ConfigError(str(error)) from None


def _chosen(store: Store, run_id: str | None) -> Run:
    try:
        return store.run(run_id)
    except StoreError as error:
        raise ConfigError(str(error)) from None


def _model(config: Config | None, run: Run) -> str:
    """The embedding model of the configuration, else the one that the run was started with."""
    recorded = run.config.get("embeddings", {}).get("model", DEFAULT_MODEL)
    return config.embeddings.model if config else str(recorded)


def _target(document: Document, form: str, wanted: list[str], output: Path | None) -> Path | None:
    """The file that a format goes into; ``None`` is standard output."""
    if form == "terminal" and len(wanted) > 1:
        return None
    if output is None:
        return Path(f"report-{document.run['id']}{_SUFFIXES[form]}") if len(wanted) > 1 else None
    files = [word for word in wanted if word != "terminal"]
    return output if len(files) <= 1 else output.with_suffix(_SUFFIXES[form])


def _emit(document: Document, form: str, target: Path | None) -> None:
    if target is None:
        click.echo(_terminal(document) if form == "terminal" else RENDERERS[form](document), nl=False)
        return
    text = render_terminal(document, width=120) if form == "terminal" else RENDERERS[form](document)
    try:
        _write(target.resolve(), text)
    except OSError as error:
        raise ConfigError(f"--output {target}: cannot be written: {error.strerror}") from None
    click.echo(f"wrote {target}", err=True)


def _write(target: Path, text: str) -> None:
    """A file whole or not at all; a pipe or device as it is."""
    if target.exists() and not target.is_file():
        target.write_text(text, encoding="utf-8")
        return
    whole = target.with_name(f".{target.name}.part")
    whole.write_text(text, encoding="utf-8")
    whole.replace(target)


def _terminal(document: Document) -> str:
    """The screen for where it goes; what its encoding does not know becomes ``?``, and no verdict depends on it."""
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    width = min(120, shutil.get_terminal_size((100, 24)).columns)
    text = render_terminal(document, width=width, colour=colour)
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)
