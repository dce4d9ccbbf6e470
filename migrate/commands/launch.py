"""``migrate launch``: a server of the configuration, started here and stopped again."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import time
from dataclasses import asdict
from pathlib import Path
from threading import Event
from typing import Literal
from urllib.parse import urlsplit

import click
import orjson
import yaml

from migrate.commands.output import printed
from migrate.config import Backend, Config, load
from migrate.errors import ConfigError
from migrate.launching import command
from migrate.launching.command import Command
from migrate.launching.flags import Flags, known
from migrate.launching.section import SECRET
from migrate.launching.server import Server, checkpoint, free
from migrate.told import told
from replay.backends import BACKENDS
from replay.told import Told

SCHEMA = {"name": "llm-migrate.launch", "version": 1}
_ASKING_S = 60.0
Place = Literal["local", "docker", "kubernetes"]


@click.command(
    epilog="\b\nExamples:\n  migrate launch vllm --dry-run\n  migrate launch vllm\n  migrate launch tensorrt-llm --docker\n"
    "  migrate launch vllm --kubernetes | kubectl apply -f -\n\b\nExit codes: 0 stopped by SIGTERM, 1 the server ended or did\n"
    "not come up, 2 wrong use or configuration (nothing was started), 130 interrupted."
)
@click.argument("kind", type=click.Choice(list(command.EXECUTABLES)))
@click.option(
    "--config",
    "path",
    type=click.Path(path_type=Path),
    default="migrate.yaml",
    envvar="MIGRATE_CONFIG",
    show_default=True,
)
@click.option(
    "--arm",
    type=click.Choice(["baseline", "candidate"]),
    help="Which backend. [default: the one of this kind with a launch: section, the candidate before the baseline]",
)
@click.option("--docker", "place", flag_value="docker", help="A container instead of a process.")
@click.option("--kubernetes", "place", flag_value="kubernetes", help="Print a manifest; nothing is started.")
@click.option("--dry-run", is_flag=True, help="Print the command, for a shell; nothing is started.")
@click.option(
    "--log",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The server's output, written anew. [default: launch-ARM.log]",
)
def launch(
    kind: str, path: Path, arm: str | None, place: Place | None, dry_run: bool, log: Path | None
) -> int:
    """Start a server from its launch: section, wait until it answers, and stop it with Ctrl-C or SIGTERM.

    The server runs in its own environment (launch.executable) or image. When it dies early, the usual causes are told from its
    log. No process of it stays behind, also when this one is killed. Beside the log, a .json file keeps what was started and what
    the server says of itself.
    """
    if log is not None and log.suffix == ".json":
        raise ConfigError(
            f"--log {log}: beside the log a file of that name is written; call the log otherwise"
        )
    config = load(path)
    arm, backend = _chosen(config, kind, arm)
    mark = "" if dry_run else f"-{secrets.token_hex(4)}"
    started = _command(backend, arm, place or "local", mark)
    if isinstance(started, str):
        printed(started)
        return 0
    if dry_run:
        printed(started.line + "\n")
        return 0
    return _run(
        backend, arm, started, _environment(config, backend, started), log or Path(f"launch-{arm}.log")
    )


def _chosen(config: Config, kind: str, arm: str | None) -> tuple[str, Backend]:
    both = {"candidate": config.candidate, "baseline": config.baseline}
    fit = {name: one for name, one in both.items() if one and one.kind == kind and arm in (None, name)}
    if not fit:
        raise ConfigError(f"the configuration has no {arm or 'backend'} of kind {kind}")
    return max(fit.items(), key=lambda one: one[1].launch is not None)  # of equals the first


def _command(backend: Backend, arm: str, place: Place, mark: str) -> Command | str:
    """The command; of Kubernetes the manifest."""
    if place == "local":
        return command.local(backend, arm, _flags(backend, arm))
    if place == "docker":
        return command.docker(backend, arm, known(backend.kind), mark=mark)
    documents = command.manifest(backend, arm, known(backend.kind))
    return yaml.dump_all(documents, Dumper=_Plain, sort_keys=False, allow_unicode=True)


class _Plain(yaml.SafeDumper):
    """Without anchors, which people do not read well."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _flags(backend: Backend, arm: str) -> Flags:
    """The options we know; where one is not among them, those that the executable says it has."""
    section, flags = command.launched(backend, arm), known(backend.kind)
    program = shutil.which(section.executable or command.EXECUTABLES[backend.kind])
    if program is None or not flags.unknown(section.args):
        return flags
    words = ["serve", "--help=all"] if backend.kind == "vllm" else ["serve", "--help"]
    _say(
        f"asking {program} for its options, because {', '.join(flags.unknown(section.args))} is not among those known"
    )
    return flags.asked(_output([program, *words]), program)


def _output(words: list[str]) -> str:
    """What a program prints in a limited time, without our keys in its environment; none of it stays behind."""
    environment = {name: value for name, value in os.environ.items() if not SECRET.search(name)}
    try:
        asked = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            errors="replace",
            env=environment,
            start_new_session=True,
        )
    except OSError:
        return ""
    try:
        return asked.communicate(timeout=_ASKING_S)[0]
    except subprocess.TimeoutExpired:
        return ""
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(asked.pid, signal.SIGKILL)
        asked.communicate()


def _environment(config: Config, backend: Backend, started: Command) -> dict[str, str]:
    """Ours, without keys that are for other servers, and what the section sets. Raises ConfigError for a secret that is empty."""
    section = backend.launch
    for name in section.secrets if section else ():
        if not os.environ.get(name):
            raise ConfigError(f"environment variable {name} is empty; export what launch.secrets: names")
    arms = [one for one in (config.baseline, config.candidate, config.judge) if one]
    keys = {one.api_key_env for one in arms}
    kept = {name: value for name, value in os.environ.items() if name not in keys}
    key = backend.api_key()
    return kept | dict(started.env) | {name: key for name in started.keys if key}


def _run(backend: Backend, arm: str, started: Command, environment: dict[str, str], log: Path) -> int:
    section, parts = command.launched(backend, arm), urlsplit(backend.url)
    if shutil.which(started.words[0], path=environment.get("PATH")) is None:
        raise ConfigError(
            f"{started.words[0]} is not there; launch.executable: names the one of the server's own environment, "
            "or use --docker with launch.image:"
        )
    checkpoint(section.model)
    free(parts.hostname or "", parts.port or 80)
    stop, numbers = _stopped_by_signals()
    facts = BACKENDS[backend.kind]
    begun = time.monotonic()
    with Server(started, environment, log) as server:
        _say(f"started: {started.line}")
        _say(f"its log: {log}")
        ready = server.wait_ready(
            backend.url, facts.ready or facts.health or "/", within=section.ready_within, stop=stop, say=_say
        )
        if ready:
            said = asyncio.run(told(backend.url, backend.api_key()))
            _keep(log.with_suffix(".json"), backend, arm, started, said)
            _say(
                f"ready after {time.monotonic() - begun:.0f} s: {backend.url} {said.words or 'answers'}; Ctrl-C stops it"
            )
            server.serve(stop)
        _say("stopping")
    return 130 if numbers == [signal.SIGINT] else 0


def _stopped_by_signals() -> tuple[Event, list[int]]:
    """Set by Ctrl-C, SIGTERM and a closed terminal; and the first of them."""
    stop, numbers = Event(), list[int]()

    def heard(number: int, frame: object) -> None:
        if not numbers:
            numbers.append(number)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, heard)
    return stop, numbers


def _keep(file: Path, backend: Backend, arm: str, started: Command, said: Told) -> None:
    """What was started and what it says of itself, for whoever reads the run later."""
    section = command.launched(backend, arm)
    data = {
        "schema": SCHEMA,
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "arm": arm,
        "kind": backend.kind,
        "url": backend.url,
        "command": started.line,
        "model": section.model,
        "args": section.args,
        "server": asdict(said),
    }
    try:
        file.write_bytes(orjson.dumps(data, option=orjson.OPT_INDENT_2) + b"\n")
    except OSError as error:  # no reason to stop a server that serves
        _say(f"{file} cannot be written: {error.strerror}")


def _say(line: str) -> None:
    """On standard error. A terminal that is gone is no reason to end."""
    with contextlib.suppress(OSError):
        click.echo(line, err=True)
