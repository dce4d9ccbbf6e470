"""Option values that several commands take, parsed in one way."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import orjson
from pydantic import TypeAdapter, ValidationError

from migrate.percent import Percent
from migrate.sensitive import hide_keys
from replay.units import parse_duration, parse_share
from replay.values import too_deep

SEED = click.IntRange(0, 2**32 - 1)
_PERCENT: TypeAdapter[float] = TypeAdapter(Percent)

IN_FOLDER = "[default: migrate.yaml, when it is there]"


def of_a_run(command: Callable[..., Any], *, named: str = IN_FOLDER) -> Callable[..., Any]:
    """The options of a command that reads one recorded run: ``path``, ``url`` and ``run_id``. ``named``: what --config is for."""
    config = click.option(
        "--config", "path", type=click.Path(path_type=Path), envvar="MIGRATE_CONFIG", help=named
    )
    store = click.option("--store", "url", help="Database URL; default: store.url of the configuration.")
    run = click.option("--run", "run_id", help="A run's id (see migrate runs); default: the latest.")
    return config(store(run(command)))


class Between(click.FloatRange):
    """A number within bounds. NaN is in none, though no comparison says so."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if math.isnan(found := super().convert(value, param, ctx)):
            self.fail(f"{value!r} is no number", param, ctx)
        return found


def duration(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """``50ms`` as seconds."""
    try:
        return None if value is None else parse_duration(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def share(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """``10 %`` as 0.1."""
    try:
        return None if value is None else parse_share(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def percent(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """``10`` as 0.1, and ``0.5`` as half a percent."""
    try:
        return None if value is None else _PERCENT.validate_python(value)
    except ValidationError as error:
        raise click.BadParameter(error.errors()[0]["msg"].removeprefix("Value error, ")) from None


def rate(text: str) -> float:
    """A number above 0. Raises ValueError for anything else."""
    found = float(text)
    if not 0 < found < math.inf:
        raise ValueError(text)
    return found


def span(text: str) -> float:
    """A time above 0, in seconds. Raises ValueError for anything else."""
    found = parse_duration(text)
    if not found:
        raise ValueError(text)
    return found


def fields(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, Any]:
    """``NAME=VALUE`` as fields of a body; a value that is no JSON is text."""
    found: dict[str, Any] = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{value!r} is not NAME=VALUE, such as temperature=0")
        if hide_keys(value, lambda *_: "") != value:
            raise click.BadParameter(
                f"{name} looks like a secret, and fields are kept with the run; keys come from api_key_env"
            )
        try:
            text.encode()
        except UnicodeEncodeError:
            raise click.BadParameter(f"the value of {name} is not UTF-8") from None
        try:
            found[name] = orjson.loads(text)
        except orjson.JSONDecodeError:
            found[name] = text
        if too_deep(found[name]):
            raise click.BadParameter(f"the value of {name} is nested too deeply")
    return found
