"""``migrate simulate``: a backend for rehearsals and tests, with faults planted by flag."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from migrate.commands.options import Between
from migrate.errors import ConfigError
from replay.simulator import server
from replay.simulator.settings import DIALECTS, LACKS, Faults, Pacing, Settings
from replay.units import parse_count, parse_duration, parse_share


class _Written(click.ParamType[Any]):
    """A value as people write it; the parser's one line becomes the error."""

    def __init__(self, name: str, parse: Callable[[object], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


_DURATION = _Written("duration", parse_duration)
_SHARE = _Written("share", parse_share)
_COUNT = _Written("count", parse_count)
_SPREAD = Between(min=0, max=5)
_FILE = click.Path(dir_okay=False, path_type=Path)
_PACING = {
    "ttft": (_DURATION, "0ms", "Median time to the first token."),
    "ttft-spread": (_SPREAD, 0.2, "Standard deviation of its logarithm."),
    "itl": (_DURATION, "0ms", "Median gap between tokens."),
    "itl-spread": (_SPREAD, 0.2, "Standard deviation of its logarithm."),
}
_FAULTS = {
    "error-share": (_SHARE, "0", "Answered with an error in the dialect's envelope."),
    "error-status": (click.IntRange(400, 599), 500, "Status of those errors."),
    "rate-limit-share": (_SHARE, "0", "Answered 429 with Retry-After."),
    "retry-after": (_DURATION, "1s", "What Retry-After says."),
    "extra-latency": (_DURATION, "0ms", "Added before every answer."),
    "slow-share": (_SHARE, "0", "Slow answers, the tail."),
    "slow-by": (_DURATION, "2s", "How much later a slow answer begins."),
    "stall-share": (_SHARE, "0", "Answers that pause amid their tokens."),
    "stall": (_DURATION, "5s", "How long they pause."),
    "truncate-share": (_SHARE, "0", "Answers cut short, finish reason length."),
    "wrong-share": (_SHARE, "0", "Answers with another number, a negation or other facts."),
    "noise": (_SHARE, "0", "Answers worded differently each time they are asked."),
    "refuse-share": (_SHARE, "0", "Answers that are a refusal."),
    "refuse-tools-share": (_SHARE, "0", "Text where a tool call is due."),
    "break-tools-share": (_SHARE, "0", "Tool calls whose arguments are no JSON."),
    "garbage-share": (_SHARE, "0", "Bytes that are neither JSON nor a stream of events."),
    "hang-share": (_SHARE, "0", "Requests accepted and never answered."),
    "disconnect-share": (_SHARE, "0", "Connections reset before or amid the answer."),
    "cold": (_DURATION, "0ms", "How much later the very first answer begins."),
    "starting": (_DURATION, "0ms", "How long after its start everything is answered 503."),
    "crash-after": (_COUNT, None, "The process dies when the request after this many arrives."),
}


def _options(table: dict[str, tuple[Any, Any, str]]) -> Callable[[Any], Any]:
    def decorate(command: Any) -> Any:
        for name, (kind, default, text) in reversed(table.items()):
            command = click.option(
                f"--{name}", type=kind, default=default, show_default=default is not None, help=text
            )(command)
        return command

    return decorate


@click.command()
@click.option(
    "--dialect", type=click.Choice(DIALECTS), default="vllm", show_default=True, help="Whose wire shapes."
)
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0 takes a free one."
)
@click.option(
    "--model", "models", multiple=True, help="Served name, repeatable; without it any name is accepted."
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Of the answers; equal seeds answer alike."
)
@click.option("--fault-seed", type=int, help="Of faults and pace; default: from the seed and the dialect.")
@click.option("--tokens", type=_COUNT, help="Length of every free text answer; default: from the prompt.")
@click.option("--context", type=_COUNT, default="32768", show_default=True, help="Context length in tokens.")
@click.option(
    "--api-key-env", metavar="NAME", help="Environment variable with the key that requests must carry."
)
@click.option(
    "--keep-alive", type=_DURATION, default="5s", show_default=True, help="Life of an idle connection."
)
@click.option(
    "--lacks",
    type=click.Choice(LACKS),
    multiple=True,
    callback=lambda _ctx, _param, values: frozenset(values),
    help="What it was started without, repeatable.",
)
@click.option("--root", default="", metavar="PATH", help="Path before every route, such as /api.")
@_options(_PACING)
@_options(_FAULTS)
@click.option("--flood", is_flag=True, help="Every answer is garbage without an end.")
@click.option(
    "--log-requests", type=_FILE, help="Append every generation request as JSON, CREDENTIALS INCLUDED."
)
@click.option(
    "--truth", type=_FILE, help="Append a JSON line a request: monotonic time of every chunk written."
)
def simulate(host: str, port: int, api_key_env: str | None, **options: Any) -> int:
    """Run an OpenAI-compatible server with deterministic answers, real pacing and planted faults.

    It is a test tool: the same prompt and seed get the same answer from every simulator. A share is drawn by
    a hash of prompt, fault seed and how often the prompt came before, so a run repeats. Durations are written
    50ms or 2s, shares 5% or 0.05. Stops on SIGTERM with exit code 0.
    """
    settings = _settings(options, api_key=_key(api_key_env))
    try:
        return server.run(settings, host, port)
    except OSError as error:
        raise ConfigError(_refused(error, host, port)) from None


def _settings(options: dict[str, Any], *, api_key: str | None) -> Settings:
    pacing = Pacing(**{name: options.pop(name) for name in _fields(_PACING)})
    faults = Faults(flood=options.pop("flood"), **{name: options.pop(name) for name in _fields(_FAULTS)})
    return Settings(pacing=pacing, faults=faults, api_key=api_key, **options)


def _fields(table: dict[str, Any]) -> list[str]:
    return [name.replace("-", "_") for name in table]


def _key(name: str | None) -> str | None:
    if name is None:
        return None
    key = os.environ.get(name, "").strip()
    if not key:
        raise ConfigError(
            f"environment variable {name} is empty; export the key that requests must carry there"
        )
    return key


def _refused(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"{host}:{port} is in use; choose another --port, or 0 for a free one"
    if error.filename is not None:
        return f"{error.filename}: cannot be written ({error.strerror})"
    return f"cannot listen on {host}:{port}: {error.strerror or error}"
