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
from migrate.errors import ConfigError
from migrate.report import embedder
from migrate.report import report as make_report
from migrate.store import Store
from reports.document import Document
from reports.judgement import Verdict
from reports.render import RENDERERS
from reports.render.terminal import render_terminal

FORMATS = ("terminal", *RENDERERS)
EXIT_CODES = {Verdict.GO: 0, Verdict.ROLLBACK: 3, Verdict.HOLD: 4}
_SUFFIXES = {"html": ".html", "json": ".json", "markdown": ".md", "terminal": ".txt"}

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
    default="terminal",
    show_default=True,
    help=f"One or more of {', '.join(FORMATS)}, comma-separated.",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File for the formats other than terminal.",
)
@click.option("--quiet", is_flag=True, help="No progress.")
def report(
    path: Path | None, url: str | None, run_id: str | None, formats: str, output: Path | None, quiet: bool
) -> None:
    """Judge a run and say GO, ROLLBACK or HOLD.

    A verdict is a pure function of what was recorded and of the policy: the policy of --config when one is given, else the
    one the run was started under.
    """
    wanted = _formats(formats, output)
    config = _config(path)
    document = _document(config, url, run_id, explicit=path is not None, quiet=quiet)
    for form in wanted:
        _emit(document, form, output)
    raise click.exceptions.Exit(EXIT_CODES[document.verdict])


def _formats(text: str, output: Path | None) -> list[str]:
    wanted = [word.strip() for word in text.split(",") if word.strip()]
    for word in wanted:
        if word not in FORMATS:
            raise ConfigError(f"--format {word!r} is none of {', '.join(FORMATS)}")
    files = [word for word in wanted if word != "terminal"]
    if output is None and len(wanted) > 1:
        raise ConfigError("several formats at once need --output FILE for those that are not the terminal")
    if output is not None and output.parent and not output.parent.is_dir():
        raise ConfigError(f"--output {output}: there is no folder {output.parent}")
    return wanted if files or wanted else ["terminal"]


def _config(path: Path | None) -> Config | None:
    if path is None and not Path("migrate.yaml").exists():
        return None
    return load(path or "migrate.yaml")


def _document(
    config: Config | None, url: str | None, run_id: str | None, *, explicit: bool, quiet: bool
) -> Document:
    address = url or (config.store.url if config else "sqlite:///migrate.db")
    policy = config.policy if config and explicit else None
    with (
        Store.open(address) as store,
        Progress(console=Console(stderr=True), transient=True, disable=quiet) as progress,
    ):
        run = store.run(run_id)
        model = (config.embeddings.model if config else None) or run.config["embeddings"]["model"]
        task = progress.add_task("comparing answers", total=None)
        embed, notes = embedder(
            store,
            model,
            lambda what, done, total: progress.update(task, description=what, completed=done, total=total),
        )
        return make_report(store, run, policy=policy, now=time.time(), embed=embed, notes=notes)


def _emit(document: Document, form: str, output: Path | None) -> None:
    if form == "terminal":
        width = min(120, shutil.get_terminal_size((100, 24)).columns)
        click.echo(render_terminal(document, width=width, colour=_colour()), nl=False)
        return
    text = RENDERERS[form](document)
    if output is None:
        click.echo(text)
        return
    target = (
        output
        if output.suffix == _SUFFIXES[form] or not output.suffix
        else output.with_suffix(_SUFFIXES[form])
    )
    target.write_text(text, encoding="utf-8", errors="replace")
    click.echo(f"wrote {target}", err=True)


def _colour() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ
