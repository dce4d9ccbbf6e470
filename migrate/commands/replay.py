"""``migrate replay``: captured requests to baseline and candidate, on a schedule."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import click

from migrate import leaving
from migrate.commands.notify import tell_end
from migrate.commands.options import SEED, duration, fields, rate, share, span
from migrate.config import Config, load
from migrate.errors import ConfigError, StoreError
from migrate.files import room_for
from migrate.notifying.receivers import receivers
from migrate.replaying.alone import alone
from migrate.replaying.plan import ARMS, Plan
from migrate.replaying.play import Play, recorded
from migrate.servers import backends
from migrate.store import Store
from replay.exchange import JSON

_EPILOG = """\b
Examples:
  migrate replay                                  as recorded, to both backends
  migrate replay --speed 10 --limit 1000          ten times as fast
  migrate replay --rate 20 --burstiness 2         a gamma process, in bursts
  migrate replay --ramp 1:50:10m
  migrate replay --sweep 5,10,20:2m               each rate for two minutes
  migrate replay --concurrency 8                  a closed loop
  migrate replay --set temperature=0 --set max_tokens=256
  migrate replay --resume                         go on where it was stopped
\b
Judge with: migrate report"""
SILENT = 4
"""A backend answered nothing: no report on it can say GO."""
_SCHEDULES = ("rate", "ramp", "sweep", "concurrency")


def _ramp(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[float, float, float] | None:
    if value is None:
        return None
    try:
        start, end, each = value.split(":")
        found = rate(start), rate(end), span(each)
    except ValueError:
        raise click.BadParameter(f"{value!r} is not FROM:TO:TIME, such as 1:50:10m") from None
    return found


def _sweep(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> tuple[tuple[float, ...], float] | None:
    if value is None:
        return None
    try:
        rates, each = value.split(":")
        return tuple(rate(one) for one in rates.split(",")), span(each)
    except ValueError:
        raise click.BadParameter(f"{value!r} is not RATE,RATE,…:TIME, such as 5,10,20:2m") from None


def _think(ctx: click.Context, param: click.Parameter, value: str | None) -> float | str | None:
    return value if value == "recorded" else duration(ctx, param, value)


@click.command(epilog=_EPILOG)
@click.option(
    "--config",
    "path",
    type=click.Path(path_type=Path),
    default="migrate.yaml",
    envvar="MIGRATE_CONFIG",
    show_default=True,
)
@click.option("--store", "url", metavar="URL", help="Database URL; default: store.url of the configuration.")
@click.option(
    "--run", "source", metavar="ID", help="Whose requests are sent; default: the latest run with captures."
)
@click.option("--to", type=click.Choice(list(ARMS)), default="both", show_default=True)
@click.option(
    "--speed", type=float, default=1.0, show_default=True, help="As recorded, this many times as fast."
)
@click.option("--rate", type=float, help="Requests a second, as independent users send them (Poisson).")
@click.option(
    "--burstiness",
    type=float,
    default=1.0,
    show_default=True,
    help="Of --rate and --sweep: 1 Poisson, above in bursts, 0 constant.",
)
@click.option("--ramp", callback=_ramp, metavar="FROM:TO:TIME", help="A rate that changes evenly.")
@click.option("--sweep", callback=_sweep, metavar="RATE,RATE,…:TIME", help="Each rate for so long.")
@click.option(
    "--concurrency",
    type=int,
    help="A closed loop: this many at once for each arm, the next when one has ended.",
)
@click.option(
    "--think-time",
    callback=_think,
    metavar="recorded|TIME",
    help="Turns of a conversation wait for the answer to the one before, and this long more.",
)
@click.option("--limit", type=int, help="Only the first so many requests.")
@click.option(
    "--repeat",
    callback=share,
    help="Share that the baseline gets twice, for the noise floor. [default: shadow.repeat_baseline]",
)
@click.option(
    "--set",
    "overrides",
    multiple=True,
    callback=fields,
    metavar="NAME=VALUE",
    help="A field of every body, such as temperature=0; repeatable.",
)
@click.option(
    "--nonce", is_flag=True, help="A few letters before each prompt, so that no prefix cache helps."
)
@click.option(
    "--warmup",
    callback=duration,
    metavar="TIME",
    help="The first so long is not judged. [default: policy.warmup]",
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Of the schedule and the nonces.")
@click.option(
    "--lag-limit",
    callback=duration,
    default="10ms",
    show_default=True,
    metavar="TIME",
    help="How late the 99th percentile may leave; beyond it the run is no evidence.",
)
@click.option(
    "--grace",
    callback=duration,
    default="30s",
    show_default=True,
    metavar="TIME",
    help="How long answers in flight may take after Ctrl-C.",
)
@click.option("--resume", is_flag=True, help="Go on with the last replay that did not end, as it was begun.")
@click.option("--quiet", is_flag=True, help="Say only what goes wrong.")
@click.pass_context
def replay(
    ctx: click.Context,
    /,
    path: Path,
    url: str | None,
    source: str | None,
    warmup: float | None,
    grace: float,
    resume: bool,
    quiet: bool,
    **options: Any,
) -> int:
    """Send captured requests to baseline and candidate on a schedule, and record both.

    An open loop: a request leaves when it is due, whatever became of the earlier ones, and how late each one left is
    recorded. Ctrl-C stops sending and lets what is in flight finish; a second one stops at once. --resume sends only what
    has no answer yet. At its end those whom notify: names are told the verdict.

    Exit codes: 0 all was sent, 4 a backend answered nothing at all or a day's budget is spent, 130 interrupted.
    """
    config = load(path)
    people = receivers(config.notify) if config.notify else ()
    if sum(options[name] is not None for name in _SCHEDULES) > 1:
        raise ConfigError(
            f"--{', --'.join(_SCHEDULES[:-1])} and --{_SCHEDULES[-1]} are four schedules; give one"
        )
    if resume:
        _refuse_with_resume(ctx)
    with Store.open(url or config.store.url) as store:
        if resume:
            run, plan = _unfinished(store, config)
        else:
            if options["repeat"] is None:
                options["repeat"] = config.shadow.repeat_baseline
            plan = _plan(source=_source(store, source), **options)
            # What is there now: a source that still grows would never be replayed to its end.
            there = min(plan.limit or sys.maxsize, store.count(plan.source))
            plan = plan.model_copy(update={"limit": there})
            run = ""
        if plan.to != "baseline" and config.candidate is None:
            raise ConfigError(f"{path}: has no candidate:; add one, or replay --to baseline")
        room_for((plan.concurrency or 0) * len(plan.arms))
        run = run or _begin(store, config, plan, warmup)
        with alone(run) as held:
            if resume:
                _unfinished(store, config)  # it may have ended while we waited for it
            work = recorded(store, config, run, plan)
            if not quiet:
                for line in _leaving(store, config, plan):
                    click.echo(line, err=True)
            play = Play(store, config, run, plan, work, grace=grace, quiet=quiet, resumed=resume, held=held)
            ending = play.run()
        tell_end(store, config, run, () if ending.why else people, quiet=quiet)
    for line in () if quiet else ending.lines:
        click.echo(line, err=True)
    if ending.why:
        click.echo(f"{ending.why}. Go on with: migrate replay --resume", err=True)
    if ending.silent:
        click.echo(f"{ending.silent}. Look at it with: migrate check --config {path}", err=True)
    return ending.code or (SILENT if ending.silent else 0)


def _leaving(store: Store, config: Config, plan: Plan) -> Iterator[str]:
    """What a third party will get."""
    sent = [backend for arm, backend in backends(config) if arm in plan.arms]
    captured = islice(store.captured(plan.source), min(leaving.LOOKED_AT, plan.limit or leaving.LOOKED_AT))
    return leaving.replayed(config, sent, (request.body for request, _ in captured))


def _refuse_with_resume(ctx: click.Context) -> None:
    """A resumed replay goes on as it was begun; what would change it is refused, not ignored."""
    kept = ("path", "url", "grace", "resume", "quiet")
    given = [
        param.opts[0]
        for param in ctx.command.params
        if param.name not in kept
        and param.name is not None
        and ctx.get_parameter_source(param.name) is click.core.ParameterSource.COMMANDLINE
    ]
    if given:
        raise ConfigError(f"--resume goes on as the replay was begun; leave out {', '.join(given)}")


def _plan(**options: Any) -> Plan:
    try:
        return Plan(**options)
    except ValueError as error:
        first = getattr(error, "errors", list)()[0]
        name = str(first["loc"][0]).replace("_", "-")
        raise ConfigError(
            f"--{name}: {first['msg'][0].lower()}{first['msg'][1:]}, not {first['input']!r}"
        ) from None


def _source(store: Store, wanted: str | None) -> str:
    if wanted is not None:
        try:
            run = store.run(wanted).id
        except StoreError as error:
            raise ConfigError(str(error)) from None
        if not store.count(run):
            raise ConfigError(f"run {run} holds no requests")
        return run
    for one in reversed(store.runs()):
        if one.kind in ("import", "capture", "shadow") and store.count(one.id):
            return one.id
    raise ConfigError("the store holds no captured requests; get some with migrate import, capture or shadow")


def _unfinished(store: Store, config: Config) -> tuple[str, Plan]:
    for run in reversed(store.runs()):
        if run.kind == "replay":
            if run.status == "ended":
                break
            plan = Plan.model_validate(run.config.get("replay") or {})
            _refuse_other_servers(run.config, config, plan)
            return run.id, plan
    raise ConfigError("the last replay ended; there is nothing to resume (start one with migrate replay)")


def _refuse_other_servers(begun: JSON, config: Config, plan: Plan) -> None:
    """One run is evidence of one pair of servers. Limits, prices and keys may change."""
    now = config.model_dump(mode="json", by_alias=True)
    for arm in plan.arms:
        before, after = (one.get(arm.value) or {} for one in (begun, now))
        for name in ("kind", "url", "model", "models"):
            if before.get(name) != after.get(name):
                raise ConfigError(
                    f"{arm.value}.{name} was {before.get(name)!r} when the replay began and is {after.get(name)!r} now; "
                    "put it back, or start another with migrate replay"
                )


def _begin(store: Store, config: Config, plan: Plan, warmup: float | None) -> str:
    data = config.model_dump(mode="json", by_alias=True)
    policy = data["policy"] if warmup is None else data["policy"] | {"warmup": warmup}
    return store.begin_run(
        kind="replay",
        config=data | {"replay": plan.model_dump(mode="json")},
        policy=policy,
        seed=plan.seed,
        at=time.time(),
    )
