"""``migrate report``: the verdict, and what it rests on."""

from __future__ import annotations

import difflib
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from migrate.commands.notify import named, tell_all
from migrate.commands.options import of_a_run
from migrate.commands.output import for_a_log, github, height, printed, screen
from migrate.commands.recorded import Recorded, recorded, to_find
from migrate.commands.watch import watch
from migrate.errors import ConfigError
from migrate.explaining import explained
from migrate.gathering import in_parts
from migrate.report import report as make_report
from migrate.tables import TABLES, ready, write
from reports.document import Document, iso
from reports.explain import NAMES
from reports.judgement import Verdict
from reports.render import RENDERERS
from reports.render import explained as render
from reports.render.github import render_github
from reports.render.json import indented
from reports.render.screen import render_screen
from reports.render.terminal import render_terminal
from reports.render.words import moment

FORMATS = ("terminal", *RENDERERS, *TABLES)
EXIT_CODES = {Verdict.GO: 0, Verdict.ROLLBACK: 3, Verdict.HOLD: 4}
_SUFFIXES = {"html": ".html", "json": ".json", "markdown": ".md", "terminal": ".txt", "junit": ".xml"}

_EPILOG = """\b
Examples:
  migrate report
  migrate report --format terminal,html --output report.html
  migrate report --format json | jq .verdict
  migrate report --format markdown >> "$GITHUB_STEP_SUMMARY"
  migrate report --format junit,csv --output report.xml
  migrate report --explain errors
  migrate report --watch
\b
Exit codes: 0 GO, 3 ROLLBACK, 4 HOLD or a GO that has expired, 2 wrong use, 1 our own failure,
130 when --watch is interrupted."""


def _rule(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """The name of a rule, or the nearest ones in an error."""
    if value is None or value in NAMES:
        return value
    near = difflib.get_close_matches(value, NAMES, n=3, cutoff=0.5)
    raise ConfigError(f"--explain {value!r} is no rule; {_either(near or NAMES)}")


def _rules(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in NAMES if name.startswith(incomplete)]


def _either(names: Sequence[str]) -> str:
    return f"did you mean {' or '.join(names)}?" if len(names) <= 3 else f"rules are {', '.join(names)}"


@click.command(epilog=_EPILOG)
@of_a_run
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
    "csv and parquet are two files each: report.csv becomes report.pairs.csv and report.findings.csv. "
    "[default: standard output; report-RUN.html and the like for several formats and for tables]",
)
@click.option(
    "--explain",
    "rule",
    callback=_rule,
    shell_complete=_rules,
    metavar="RULE",
    help="Why this rule says what it says: its evidence over time, and the blocks, pairs and sessions that carry it. "
    "As terminal or json.",
)
@click.option(
    "--watch",
    "watching",
    is_flag=True,
    help="Judge again every few seconds until the run ends: one screen at a terminal, else a line each time.",
)
@click.option(
    "--notify", "telling", is_flag=True, help="Also tell those whom notify: names what they do not know yet."
)
@click.option("--quiet", is_flag=True, help="No progress.")
def report(
    path: Path | None,
    url: str | None,
    run_id: str | None,
    formats: tuple[str, ...],
    output: Path | None,
    rule: str | None,
    watching: bool,
    telling: bool,
    quiet: bool,
) -> None:
    """Judge a run and say GO, ROLLBACK or HOLD. A run that still goes on is judged as it stands.

    A verdict is a pure function of what was recorded and of the policy: the policy of --config when one is given, else the
    one the run was started under. At a terminal the report is as long as the screen; elsewhere it is whole.
    """
    wanted = _formats(formats, output)
    if telling and (watching or rule is not None):
        raise ConfigError("--notify tells of a whole report: leave out --watch and --explain")
    if watching:
        if rule is not None or output is not None or wanted != ["terminal"]:
            raise ConfigError("--watch is for the terminal: leave out --format, --output and --explain")
        document = watch(path, url, run_id, _encoding())
        raise click.exceptions.Exit(_code(document, iso(time.time())))
    if rule is not None and wanted not in (["terminal"], ["json"]):
        raise ConfigError("--explain is shown as one format: --format terminal or --format json")
    with recorded(path, url, run_id, quiet=quiet) as found:
        if rule is not None:
            raise click.exceptions.Exit(_explain(found, rule, wanted[0], output))
        people = named(found.config, path) if telling else ()
        document = make_report(found.store, found.run, notes=found.notes, **found.asked())
        stands = _as_it_stands(document, iso(found.now))
        for form in wanted:
            if form in TABLES:
                _tabulate(found, form, output or Path(f"report-{found.run.id}.{form}"))
        tell_all(found.store, stands, people)
    for form in wanted:
        if form not in TABLES:
            said = stands if form == "junit" else document
            _emit(said, form, _target(document, form, wanted, output), to_find(path, url, run_id))
    if github():
        click.echo(render_github(stands), err=True, nl=False)
    raise click.exceptions.Exit(_code(document, iso(found.now)))


def _explain(found: Recorded, rule: str, form: str, output: Path | None) -> int:
    """Writes why a rule says what it says. Returns the exit code, which is the verdict's."""
    explanation, shown, verdict = explained(found.store, found.run, rule, **found.asked())
    width, colour = (120, False) if output else screen()
    if form == "json":
        text = indented(render.render_json(explanation, found.run.id))
    else:
        text = for_a_log(render.render_terminal(explanation, found.run.id, shown, width=width, colour=colour))
    if output is None:
        printed(text, _encoding())
    else:
        _save(output, text)
    return EXIT_CODES[verdict]


def _tabulate(found: Recorded, form: str, base: Path) -> None:
    """Writes all pairs and all findings of a run, a file each."""
    parts = in_parts(found.store, found.run, found.rules, found.embed, found.second)
    try:
        made = write(parts, base, form)
    except OSError as error:
        raise ConfigError(f"--output {base}: cannot be written: {error.strerror}") from None
    for file in made:
        click.echo(f"wrote {file}", err=True)


def _code(document: Document, now: str) -> int:
    """The verdict's exit code. A GO that has expired is none any more, and standard error says so."""
    stands = _as_it_stands(document, now)
    if stands is not document:
        click.echo(f"migrate: {stands.reason}: {stands.advice}", err=True)
    return EXIT_CODES[stands.verdict]


def _as_it_stands(document: Document, now: str) -> Document:
    """For a pipeline, which goes by the verdict alone: a GO that has expired is HOLD."""
    if document.verdict is not Verdict.GO or now <= document.valid_until:
        return document
    return replace(
        document,
        verdict=Verdict.HOLD,
        code="expired",
        reason=f"this GO expired at {moment(document.valid_until)} (policy.valid_for)",
        advice=f"record a new run with migrate {_RENEWED.get(document.run['kind'], 'shadow')} and report on it",
    )


_RENEWED = {"replay": "replay"}


def _formats(words: tuple[str, ...], output: Path | None) -> list[str]:
    """The formats, each once. Raises ConfigError before any work for what could not be written."""
    wanted = list(dict.fromkeys(word.strip() for text in words for word in text.split(",") if word.strip()))
    for word in wanted:
        if word not in FORMATS:
            raise ConfigError(f"--format {word!r} is none of {', '.join(FORMATS)}")
        ready(word)
    if not wanted:
        raise ConfigError(f"--format names no format; valid: {', '.join(FORMATS)}")
    if output is not None and not output.parent.is_dir():
        raise ConfigError(f"--output {output}: there is no folder {output.parent}")
    return wanted


def _target(document: Document, form: str, wanted: list[str], output: Path | None) -> Path | None:
    """The file that a format goes into; ``None`` is standard output."""
    if form == "terminal" and len(wanted) > 1:
        return None
    if output is None:
        return Path(f"report-{document.run['id']}{_SUFFIXES[form]}") if len(wanted) > 1 else None
    files = [word for word in wanted if word not in ("terminal", *TABLES)]
    return output if len(files) <= 1 else output.with_suffix(_SUFFIXES[form])


def _emit(document: Document, form: str, target: Path | None, options: str) -> None:
    if target is None:
        if form == "terminal":
            printed(for_a_log(_terminal(document, options)), _encoding())
        else:
            printed(RENDERERS[form](document))
        return
    text = render_terminal(document, width=120) if form == "terminal" else RENDERERS[form](document)
    _save(target, text)


def _save(target: Path, text: str) -> None:
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
    try:
        whole.write_text(text, encoding="utf-8")
        whole.replace(target)
    finally:
        whole.unlink(missing_ok=True)


def _terminal(document: Document, options: str) -> str:
    """One screen at a terminal, else all there is to say."""
    width, colour = screen()
    if sys.stdout.isatty():
        return render_screen(document, width=width, height=height(), colour=colour, options=options)
    return render_terminal(document, width=width, colour=colour)


def _encoding() -> str:
    """Of the screen."""
    return sys.stdout.encoding or "utf-8"
