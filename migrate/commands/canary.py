"""``migrate canary``: real clients move to the candidate in steps; and what a person sees and does of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from migrate.canary import shift
from migrate.canary.section import CanarySection
from migrate.canary.shift import Phase, Shift
from migrate.commands.options import duration, percent
from migrate.commands.output import for_a_log, printed
from migrate.commands.rollback import rollback
from migrate.commands.signing import harmless
from migrate.commands.steering import BY_HAND, of_a_canary, steered
from migrate.errors import ConfigError

_ROLLED_BACK = 3
_EPILOG = """\b
Examples:
  migrate canary --config migrate.yaml
  migrate canary --config migrate.yaml --manual
  migrate canary status
  migrate canary set 25 'more traffic before the weekend'
  migrate rollback 'tickets about empty answers'
\b
Exit codes: 0 done, 2 wrong use, also without a GO that holds, 1 our own failure, 130 Ctrl-C; of status also
3 rolled back."""


@click.group(invoke_without_command=True, epilog=_EPILOG)
@click.option("--quiet", is_flag=True, help="Say only what goes wrong.")
@click.option("--duration", callback=duration, metavar="TIME", help="End after this time, such as 48h.")
@click.option("--manual", is_flag=True, help="A step waits for migrate canary approve, too (canary.manual).")
@click.option("--force", metavar="REASON", help="Begin without a GO that holds. The reason is kept.")
@click.option("--store", "url", metavar="URL", help="Default: store.url of the configuration.")
@click.option(
    "--config",
    "path",
    type=click.Path(path_type=Path),
    default="migrate.yaml",
    envvar="MIGRATE_CONFIG",
    show_default=True,
)
@click.pass_context
def canary(
    ctx: click.Context,
    path: Path,
    url: str | None,
    force: str | None,
    manual: bool,
    duration: float | None,
    quiet: bool,
) -> int:
    """Be the gateway of a canary: the candidate answers a share of real clients, the baseline the others.

    The share grows in steps (canary.steps), each on GO for its own evidence, and goes to 0 by itself when the candidate breaks
    its promise. Begins on a GO that holds; a canary that goes on is joined. The commands below look at it and move it by hand.
    """
    if ctx.invoked_subcommand is not None:
        _alone(ctx, ctx.invoked_subcommand)
        return 0
    from migrate.commands.beginning import (
        begin,
    )  # all of the gateway, which who looks or moves has no use for

    return begin(path, url, force=force, manual=manual, duration=duration, quiet=quiet)


def _alone(ctx: click.Context, name: str) -> None:
    """Refuses options before a subcommand: they would do nothing."""
    for param in ctx.command.params:
        if param.name and ctx.get_parameter_source(param.name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{param.opts[0]} goes behind {name}: migrate canary {name} --help", ctx)


@canary.command()
@of_a_canary
@click.option(
    "--format", "form", type=click.Choice(["terminal", "json"]), default="terminal", show_default=True
)
def status(path: Path | None, url: str | None, form: str) -> int:
    """Show the share, since when and why, and what comes next. Exit code 3: it is rolled back."""
    with steered(path, url) as found:
        seen = _seen(found.now, found.surely(), found.at)
    printed(_json(seen) if form == "json" else for_a_log(_screen(seen)))
    return _ROLLED_BACK if seen["phase"] == Phase.ROLLED_BACK else 0


def _seen(now: Shift, section: CanarySection, at: float) -> dict[str, Any]:
    """The document: shares 0 to 1, times in UTC, spans in seconds."""
    return {
        "schema": {"name": "llm-migrate.canary", "version": 1},
        "canary": now.canary,
        "phase": now.phase.value,
        "share": now.share,
        "step": now.step + 1,
        "steps": [step.percent for step in section.steps],
        "since": _time(now.since),
        "rollbacks": now.rollbacks,
        "cool_down_left_s": None if now.until is None else round(max(0.0, now.until - at), 3),
        "approved": now.approved,
        "next": _next(now, section, at),
        "change": _change(now),
    }


def _next(now: Shift, section: CanarySection, at: float) -> str:
    """What comes next, in a sentence."""
    if now.phase is Phase.FINISHED:
        return "the candidate answers everybody: clients may go to it without this gateway"
    if now.phase is Phase.PAUSED:
        return "nothing by itself but a rollback; on with migrate canary resume"
    if now.phase is Phase.ROLLED_BACK:
        left = 0.0 if now.until is None else now.until - at
        wait = f"in {left:.0f} s, when it has cooled down: " if left > 0 else ""
        return f"{wait}migrate canary resume WHY"
    if now.step + 1 >= len(section.steps):
        return "no step is left; when it has proved itself: migrate canary finish"
    step = section.steps[now.step]
    evidence = f"GO on at least {step.minimum_pairs:,} pairs over {step.minimum_span:g} s"
    by = " and migrate canary approve" if section.manual and not now.approved else ""
    return f"{section.steps[now.step + 1].percent * 100:.4g} %, on {evidence} at this share{by}"


def _screen(seen: dict[str, Any]) -> str:
    change = seen["change"]
    steps = ", ".join(f"{one * 100:.4g}" for one in seen["steps"])
    lines = (
        ("canary", seen["canary"]),
        (
            "phase",
            seen["phase"].replace("_", " ") + (", next step approved" if seen["approved"] else ""),
        ),
        ("share", f"{seen['share'] * 100:.4g} % since {_people(seen['since'])}"),
        ("step", f"{seen['step']} of {len(seen['steps'])} ({steps} %)"),
        ("last", f"{change['action']} by {change['who']} at {_people(change['at'])}: {change['why']}"),
        ("next", seen["next"]),
    )
    return "".join(f"{name:<7} {harmless(said)}\n" for name, said in lines)


@canary.command()
@of_a_canary
@click.option(
    "--format", "form", type=click.Choice(["terminal", "json"]), default="terminal", show_default=True
)
def log(path: Path | None, url: str | None, form: str) -> None:
    """List every change, the first one first: who, when, what and why."""
    with steered(path, url) as found:
        rows = found.rows
    printed(_json([_change(row) for row in rows]) if form == "json" else for_a_log(_table(rows)))


def _change(row: Shift) -> dict[str, Any]:
    times = {
        "at": _time(row.at),
        "since": _time(row.since),
        "until": row.until and _time(row.until),
    }
    return asdict(row) | times | {"step": row.step + 1, "run": row.run or None}


def _table(rows: Sequence[Shift]) -> str:
    wide = max(len(harmless(row.who)) for row in rows)
    return "".join(
        f"{row.number:>4}  {_people(_time(row.at))}  {row.action:<8} {row.share * 100:>5.4g} %  {harmless(row.who):<{wide}}  "
        f"{harmless(row.why)}\n"
        for row in rows
    )


@canary.command()
@click.argument("why", default=BY_HAND)
@of_a_canary
def pause(why: str, path: Path | None, url: str | None) -> None:
    """Keep the share as it is: no step advances any more. A rollback still happens."""
    with steered(path, url) as found:
        said = found.said(why)
        _told(found.moved(lambda now: shift.paused(now, at=found.at, who=found.who, why=said))[0])


@canary.command()
@click.argument("why", default="")
@of_a_canary
def resume(why: str, path: Path | None, url: str | None) -> None:
    """Go on from a pause, or from a rollback at the first step, when it has cooled down.

    After a rollback WHY says why it may be tried again, and acknowledges it: pairs from before make no ROLLBACK any more.
    """
    with steered(path, url) as found:
        if found.now.phase is Phase.ROLLED_BACK and not why.strip():
            raise ConfigError("say why it may be tried again: migrate canary resume WHY")
        said, steps = found.said(why or BY_HAND), found.section().steps

        def on(now: Shift) -> Shift:
            return shift.resumed(now, steps, at=found.at, who=found.who, why=said)

        on(found.now)  # what is refused acknowledges nothing
        if found.now.phase is Phase.ROLLED_BACK:
            found.acknowledge(said)
        _told(found.moved(on)[0])


@canary.command("set", context_settings={"ignore_unknown_options": True})
@click.argument("share", metavar="PERCENT", callback=percent)
@click.argument("why", default=BY_HAND)
@of_a_canary
def set_(share: float, why: str, path: Path | None, url: str | None) -> None:
    """Set the share by hand, 0 to 100; 0.5 is half a percent. It stays there until migrate canary resume."""
    with steered(path, url) as found:
        said, steps = found.said(why), found.section().steps

        def to(now: Shift) -> Shift:
            return shift.set_to(now, share, steps, at=found.at, who=found.who, why=said)

        _told(found.moved(to)[0])


@canary.command()
@click.argument("why", default=BY_HAND)
@of_a_canary
def approve(why: str, path: Path | None, url: str | None) -> None:
    """Allow the next step, which is taken as soon as the evidence says GO."""
    with steered(path, url) as found:
        said, steps = found.said(why), found.section().steps
        _told(found.moved(lambda now: shift.approved(now, steps, at=found.at, who=found.who, why=said))[0])


@canary.command()
@click.argument("why", default=BY_HAND)
@of_a_canary
def finish(why: str, path: Path | None, url: str | None) -> None:
    """Say that it is done, when the candidate answers 100 %: nothing is judged any more."""
    with steered(path, url) as found:
        said = found.said(why)
        _told(found.moved(lambda now: shift.finished(now, at=found.at, who=found.who, why=said))[0])


canary.add_command(rollback)


def _told(after: Shift) -> None:
    phase = after.phase.value.replace("_", " ")
    printed(
        f"canary {after.canary} is {phase} at {after.share * 100:.4g} % ({after.action} by {after.who})\n"
    )


def _json(data: Any) -> str:
    return json.dumps(data, indent=2) + "\n"


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _people(at: str) -> str:
    return at.replace("T", " ").replace("Z", " UTC")
