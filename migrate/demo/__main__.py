"""``python -m migrate.demo``: one scenario from an empty folder to a verdict.

Every part runs as its user would run it: ``migrate simulate`` twice, ``migrate shadow``, SDK clients, ``migrate report``.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from string import Template

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from migrate.demo.scenarios import SCENARIOS, Scenario, named
from migrate.demo.traffic import MODEL, send
from migrate.errors import MigrateError
from reports.judgement import Verdict

_CODES = {0: Verdict.GO, 3: Verdict.ROLLBACK, 4: Verdict.HOLD}

_CONFIG = Template("""\
# The $scenario scenario of the demonstration: $story.
baseline: {kind: vllm, url: '$baseline', model: $model}
candidate: {kind: tensorrt-llm, url: '$candidate', model: $model}
gateway: {listen: '127.0.0.1:$port', admin: '127.0.0.1:$admin', grace: 10s}
shadow: {percent: $percent, repeat_baseline: 90 %, paths: [$paths]}
store: {url: 'sqlite:///$store'}
policy:
  rehearsal: true        # shortened for a demonstration; every report says so
  minimum_span: 10s      # in production: 24h
  minimum_pairs: 300     # in production: 1000
  warmup: 1s             # in production: 15m
""")


@click.command()
@click.option("--scenario", default="good", show_default=True, type=click.Choice([s.name for s in SCENARIOS]))
@click.option("--folder", type=click.Path(path_type=Path), default=Path("demo-output"), show_default=True)
def main(scenario: str, folder: Path) -> None:
    """Run one scenario; exit 0 when the verdict is the one it promises."""
    code = run(named(scenario), folder / scenario)
    sys.exit(code)


def run(scenario: Scenario, folder: Path) -> int:
    """Plays a scenario into ``folder``. Returns 0 when the promised verdict came out and no client saw an error."""
    started = time.monotonic()
    folder = folder.resolve()  # what the report prints works from anywhere
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*"):
        old.unlink()
    _say(f"scenario {scenario.name}: {scenario.story}; promised verdict {scenario.verdict}")
    with (
        _simulator("vllm", folder) as baseline,
        _simulator("tensorrt-llm", folder, scenario.faults) as candidate,
    ):
        config = _configure(scenario, folder, baseline, candidate)
        clients = _shadow(scenario, config, folder)
    verdict, report_code = _report(config, folder)
    _say(
        f"clients: {dict(clients)}; took {time.monotonic() - started:.0f} s; report: {folder / 'report.html'}"
    )
    good = verdict is scenario.verdict and set(clients) == {"ok"}
    if not good:
        _say(f"promised {scenario.verdict} and no client error; got {verdict or f'exit code {report_code}'}")
    print(f"verdict: {verdict or 'none'}", flush=True)
    return 0 if good else 1


def _say(line: str) -> None:
    print(f"demo: {line}", file=sys.stderr, flush=True)


@contextmanager
def _simulator(dialect: str, folder: Path, faults: tuple[str, ...] = ()) -> Iterator[str]:
    port = _free_ports(1)[0]
    # Two real servers of one model never say quite the same; a share of all answers is worded differently.
    pace = ("--ttft", "60ms", "--itl", "4ms", "--seed", "7", "--noise", "3%", "--model", MODEL)
    words = ("simulate", "--dialect", dialect, "--port", str(port), *pace, *faults)
    with _process(words, folder / f"{dialect}.log") as process:
        _wait(f"http://127.0.0.1:{port}/health", process)
        yield f"http://127.0.0.1:{port}"


def _configure(scenario: Scenario, folder: Path, baseline: str, candidate: str) -> Path:
    port, admin = _free_ports(2)
    text = _CONFIG.substitute(
        scenario=scenario.name,
        story=scenario.story,
        baseline=baseline,
        candidate=candidate,
        model=MODEL,
        port=port,
        admin=admin,
        percent=scenario.percent,
        paths=", ".join(scenario.paths),
        store=folder / "migrate.db",
    )
    path = folder / "migrate.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def _shadow(scenario: Scenario, config: Path, folder: Path) -> Counter[str]:
    """Traffic through the gateway, then a clean stop. Returns what the clients saw."""
    from migrate.config import load

    gateway = load(config).gateway
    with _process(("shadow", "--config", str(config)), folder / "shadow.log") as process:
        _wait(f"http://{gateway.admin}/readyz", process)
        with _progress(scenario) as progress:
            task = progress.add_task("requests", total=scenario.requests)
            clients = asyncio.run(
                send(
                    f"http://{gateway.listen}",
                    requests=scenario.requests,
                    rate=scenario.rate,
                    seed=11,
                    tick=lambda: progress.advance(task),
                )
            )
        process.send_signal(signal.SIGTERM)
        if (code := process.wait(timeout=60)) != 0:
            raise MigrateError(f"the gateway exited with {code}; see {folder / 'shadow.log'}")
    return clients


def _progress(scenario: Scenario) -> Progress:
    console = Console(stderr=True)
    columns = (
        TextColumn("demo: {task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    if not console.is_terminal:
        _say(f"sending {scenario.requests} requests at {scenario.rate:g}/s")
    return Progress(*columns, console=console, disable=not console.is_terminal)


def _report(config: Path, folder: Path) -> tuple[Verdict | None, int]:
    words = (
        "report",
        "--config",
        str(config),
        "--format",
        "terminal,html",
        "--output",
        str(folder / "report.html"),
    )
    done = subprocess.run([sys.executable, "-m", "migrate", *words], timeout=120, check=False)
    return _CODES.get(done.returncode), done.returncode


@contextmanager
def _process(words: tuple[str, ...], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A child of its own process group, with its output in ``log``; gone when the block ends, however it ends."""
    with log.open("wb") as out:
        command = [sys.executable, "-m", "migrate", *words]
        process = subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True)
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(timeout=10)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [sock.getsockname()[1] for sock in sockets]
    for sock in sockets:
        sock.close()
    return ports


def _wait(url: str, process: subprocess.Popen[bytes], limit: float = 30.0) -> None:
    """Until ``url`` answers 200. Raises MigrateError when the process ends or the time is over."""
    deadline = time.monotonic() + limit
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise MigrateError(f"{process.args!r} ended with {process.returncode}")
        try:
            with opener.open(url, timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise MigrateError(f"{url} did not answer within {limit:.0f} s")


if __name__ == "__main__":
    main()
