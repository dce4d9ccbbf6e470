"""The command line: options that all commands share, and one place where an error becomes one line and an exit code."""

from __future__ import annotations

import difflib
import importlib
import os
import sys
import traceback
from pathlib import Path
from typing import Any

import click

from migrate import __version__
from migrate.errors import MigrateError

COMMANDS = {
    "init": "write a commented configuration",
    "check": "both backends, before a run depends on them",
    "launch": "start a server, and wait until it answers",
    "plan": "how long a verdict will take, before anything runs",
    "shadow": "mirror a share of production to the candidate, and record",
    "capture": "record production without a candidate",
    "import": "logs that people have, as captured requests",
    "export": "captured requests, out again",
    "replay": "captured requests to both backends, on a schedule",
    "bench": "one server under several loads, in figures to compare servers by",
    "report": "the verdict, and what it rests on",
    "canary": "move real clients to the candidate in steps, and watch over it",
    "rollback": "the canary's share to 0: the baseline answers everybody",
    "weights": "the canary's share, for Envoy, nginx, HAProxy, Gateway API and LiteLLM",
    "notify": "try the receivers that are told of verdicts",
    "acknowledge": "take note of a ROLLBACK, so that it may be tried again",
    "cost": "what both backends cost, and from which traffic on one is the cheaper",
    "pairs": "pairs of a run by finding, severity or outcome",
    "show": "one pair of a run, side by side",
    "runs": "list recorded runs",
    "diff": "two saved responses, side by side",
    "compare": "many pairs of answers from anywhere, without a run",
    "judge": "a verdict on measured pairs from anywhere, without a run",
    "schema": "the JSON Schema of what other commands write for programs",
    "simulate": "an OpenAI-compatible server for rehearsals and tests",
    "doctor": "check the installation",
}
"""Each command is the click object of that name in ``migrate.commands``; it is imported when it is called, so that
``migrate --help`` and completion answer at once."""

_MODULES = {"capture": "shadow", "import": "import_"}

_NAMES = {"import": "import_"}

_EPILOG = """\b
First run:
  migrate init migrate.yaml
  migrate check
  migrate shadow --config migrate.yaml --percent 10
  migrate report --format terminal,html
\b
Completion for bash, zsh or fish:
  eval "$(_MIGRATE_COMPLETE=bash_source migrate)"
\b
Exit codes: 0 done or GO, 1 our own failure, 2 wrong use or configuration,
3 ROLLBACK or BLOCK, 4 HOLD or INVALID, 5 WARN, 130 interrupted."""


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = importlib.import_module(f"migrate.commands.{_MODULES.get(name, name)}")
        command: click.Command = getattr(module, _NAMES.get(name, name))
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and (near := difflib.get_close_matches(args[0], COMMANDS, 1)):
            ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_Commands, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="migrate")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.pass_context
def cli(ctx: click.Context, debug: bool) -> None:
    """Move LLM serving from a baseline to a candidate: mirror, compare, judge."""
    ctx.obj = {"debug": debug}


def main(arguments: list[str] | None = None) -> Any:
    """Runs the command line and exits with its code. Every expected error is one line on standard error."""
    words = sys.argv[1:] if arguments is None else arguments
    _heard()
    try:
        code = cli.main(args=words, prog_name="migrate", standalone_mode=False)
    except click.exceptions.Abort:
        code = 130
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except KeyboardInterrupt:
        code = 130
    except Exception as error:  # noqa: BLE001 - the one place where an error becomes a line
        code = _explained(error, debug="--debug" in words)
    sys.exit(code if isinstance(code, int) else 0)


def _heard() -> None:
    """Where a program was started without standard output or error (``>&-``) nobody reads, which is no failure."""
    nowhere = Path(os.devnull)
    sys.stdout = sys.stdout or nowhere.open("w", encoding="utf-8")
    sys.stderr = sys.stderr or nowhere.open("w", encoding="utf-8")


def _explained(error: Exception, *, debug: bool) -> int:
    """One line on standard error, the traceback with ``--debug``. Returns the exit code."""
    if debug:
        traceback.print_exception(error)
    if isinstance(error, MigrateError | OSError):
        click.echo(f"migrate: {error}", err=True)
    else:
        hint = "" if debug else "; this is a defect: run again with migrate --debug for the traceback"
        click.echo(f"migrate: unexpected {type(error).__name__}: {error}{hint}", err=True)
    return error.exit_code if isinstance(error, MigrateError) else 1
