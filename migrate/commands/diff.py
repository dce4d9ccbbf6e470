"""``migrate diff``: two saved responses, side by side."""

from __future__ import annotations

import os
import shutil
import sys
import time
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import click
import orjson

from migrate.commands.options import Between
from migrate.config import load_any
from migrate.embedder import Embedder, missing
from migrate.errors import ConfigError
from replay.decoding import observe, parse_object
from replay.exchange import Arm, Observation, Recording, Request
from replay.saved import NotSaved, read_saved
from reports.compare import compare, resolve
from reports.compare.texts import FLOOR
from reports.difference import Difference, as_json, as_text, difference
from reports.judgement import Severity
from reports.policy import Policy

EXIT_CODES = {
    Severity.EQUAL: 0,
    Severity.NOTE: 0,
    Severity.WARN: 5,
    Severity.BLOCK: 3,
    Severity.INVALID: 4,
}
_PATH = "/v1/chat/completions"
_EPILOG = """\b
Save two responses and compare them:
  curl -si -d @request.json -H 'content-type: application/json' http://10.0.0.5:8000/v1/chat/completions > baseline.http
  curl -si -d @request.json -H 'content-type: application/json' http://10.0.0.9:8000/v1/chat/completions > candidate.http
  migrate diff --request request.json baseline.http candidate.http
\b
Exit codes: 0 nothing reaches WARN, 5 WARN, 3 BLOCK, 4 INVALID, 2 wrong use, 1 our own failure."""

_FILE = click.Path(path_type=Path)


@click.command(epilog=_EPILOG)
@click.argument("baseline", type=_FILE)
@click.argument("candidate", type=_FILE)
@click.option(
    "--request",
    "asked",
    type=_FILE,
    help="The request's JSON body: what was asked for decides what is right.",
)
@click.option(
    "--timing",
    type=_FILE,
    nargs=2,
    metavar="BASELINE CANDIDATE",
    help="Two files of SECONDS<TAB>BYTES, a line for each read of a body, for findings about latency.",
)
@click.option(
    "--similarity",
    type=Between(0, 1),
    help=f"Floor for differing texts. [default: policy.disagreement.similarity of the configuration, else {FLOOR}]",
)
@click.option(
    "--config",
    "path",
    type=_FILE,
    envvar="MIGRATE_CONFIG",
    help="Its policy.compare says what decides in an answer. [default: migrate.yaml, when there is one]",
)
@click.option(
    "--format", "form", type=click.Choice(["terminal", "json"]), default="terminal", show_default=True
)
def diff(
    baseline: Path,
    candidate: Path,
    asked: Path | None,
    timing: tuple[Path, Path] | None,
    similarity: float | None,
    path: Path | None,
    form: str,
) -> None:
    """Compare two responses saved with curl -si: what differs, and how grave it is.

    Needs no network, and no model unless the texts differ. docs/findings.md explains every finding.
    """
    config, body = load_any(path), _request(asked)
    times = timing or (None, None)
    old = _observed(baseline, times[0], Arm.BASELINE)
    new = _observed(candidate, times[1], Arm.CANDIDATE)
    rules = config.policy if config else Policy()
    found = _compared(body, old, new, rules, similarity)
    if form == "json":
        click.echo(orjson.dumps(_printable(as_json(found)), option=orjson.OPT_INDENT_2).decode())
    else:
        click.echo(_text(found), nl=False)
    raise click.exceptions.Exit(EXIT_CODES[found.outcome])


def _compared(
    body: bytes, old: Observation, new: Observation, rules: Policy, floor: float | None
) -> Difference:
    request = Request(id="request", at=0.0, method="POST", path=_PATH, headers=(), body=body, conversation="")
    comparison = compare(request, old, new, extractors=rules.compare)
    floor = rules.disagreement.similarity if floor is None else floor
    if comparison.undecided and (problem := missing()) is None:
        (comparison,) = resolve([comparison], Embedder(), floor)
    elif comparison.undecided:
        click.echo(f"migrate: {problem}", err=True)
    return difference(comparison, old, new)


def _request(path: Path | None) -> bytes:
    if path is None:
        return b""
    data = _bytes(path)
    if parse_object(data) is None:
        raise ConfigError(f"--request {path}: is not a JSON object; it holds the body that was sent")
    return data


def _observed(path: Path, timing: Path | None, arm: Arm) -> Observation:
    times = None if timing is None else _bytes(timing).decode("utf-8", "replace")
    try:
        recording = read_saved(_bytes(path), times)
    except NotSaved as error:
        raise ConfigError(f"{path}: {error}") from None
    return observe(recording, request_id="request", arm=arm, at=_sent_at(recording), path=_PATH)


def _sent_at(recording: Recording) -> float:
    """When it was answered, as far as its Date says: what a Retry-After date is counted from."""
    date = next((value for name, value in recording.headers if name.lower() == "date"), "")
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError):
        return time.time()


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None


def _text(found: Difference) -> str:
    width = max(60, min(120, shutil.get_terminal_size((100, 24)).columns))
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return as_text(found, width=width, colour=colour)


def _printable(value: Any) -> Any:
    """Without lone surrogates, which JSON writers refuse."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {key: _printable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_printable(item) for item in value]
    return value
