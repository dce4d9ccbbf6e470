"""``migrate acknowledge``: a person took note of a ROLLBACK."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from migrate.commands.options import of_a_run
from migrate.commands.output import printed
from migrate.commands.recorded import Recorded, recorded
from migrate.commands.signing import reason, user
from migrate.config import Redact
from migrate.errors import ConfigError
from migrate.report import judge_run
from reports.acknowledgement import Acknowledgement
from reports.document import iso
from reports.judgement import Judgement, Verdict
from reports.render.words import moment

_EPILOG = """\b
Examples:
  migrate acknowledge 'node 7 had a bad disk; it is out of the pool'
  migrate acknowledge --run 20261201-081500-4f2a 'replaced the driver, see INC-4711'
\b
Exit codes: 0 acknowledged, 2 wrong use, also where there is nothing to acknowledge, 1 our own failure."""


@click.command(epilog=_EPILOG)
@click.argument("why")
@partial(of_a_run, named="Names the store and what is redacted. [default: migrate.yaml, when it is there]")
@click.option("--quiet", is_flag=True, help="No progress.")
def acknowledge(why: str, path: Path | None, url: str | None, run_id: str | None, quiet: bool) -> None:
    """Take note of a run's ROLLBACK, saying WHY it may be tried again.

    A ROLLBACK stays until somebody does. Pairs from before no longer make one; GO still has to hold with them. Who, when and
    why is kept with the run and is shown in every report on it.
    """
    with recorded(path, url, run_id, quiet=quiet) as found:
        said = reason(why, found.config.redact if found.config else Redact())
        judgement = judge_run(found.store, found.run, **found.asked()).judgement
        if judgement.verdict is not Verdict.ROLLBACK:
            raise ConfigError(_nothing(found, judgement))
        note = Acknowledgement(at=found.now, who=user(), why=said, code=judgement.code)
        found.store.acknowledge(found.run.id, note)
    printed(
        f"acknowledged ROLLBACK ({note.code}) of run {found.run.id} as {note.who} at {moment(iso(note.at))}\n"
    )
    click.echo(f"next: {_next(found)}", err=True)


def _nothing(found: Recorded, judgement: Judgement) -> str:
    return (
        f"run {found.run.id} is {judgement.verdict.value} ({judgement.code}), there is no ROLLBACK to acknowledge; see migrate "
        f"report --run {found.run.id}, and name another run with --run"
    )


def _next(found: Recorded) -> str:
    if found.run.ended_at is not None:
        return "record a new run; this one has ended and gets no new evidence"
    return f"mirroring goes on, and pairs from now on decide: migrate report --run {found.run.id}"
