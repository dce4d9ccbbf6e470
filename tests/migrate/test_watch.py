"""``migrate report`` at a terminal: one screen, and ``--watch``."""

from __future__ import annotations

import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from fcntl import ioctl
from pathlib import Path

import pytest

from migrate.commands import watch
from migrate.store import Store
from tests.migrate.test_report import record, run
from tests.reports.builders import wrong

ROOT = Path(__file__).parents[2]
ESCAPE = re.compile(r"\x1b\[[?0-9;]*[A-Za-z]")


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/m.db"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MIGRATE_CONFIG", raising=False)


def started(words: list[str], output: int, **more: str) -> subprocess.Popen[bytes]:
    environment = {
        key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES", "NO_COLOR")
    }
    return subprocess.Popen(
        [sys.executable, "-m", "migrate", "report", *words],
        stdout=output,
        stderr=subprocess.DEVNULL,
        env=environment | {"PYTHONPATH": str(ROOT), "TERM": "xterm"} | more,
    )


def test_the_command_that_a_screen_names_works_when_pasted_in_another_folder(
    url: str, tmp_path: Path
) -> None:
    record(url, wrong())
    config = tmp_path / "a folder" / "migrate.yaml"
    config.parent.mkdir()
    config.write_text(
        f"baseline: {{kind: vllm, url: 'http://127.0.0.1:1'}}\ncandidate: {{kind: vllm, url: 'http://127.0.0.1:2'}}\n"
        f"store: {{url: '{url}'}}\n"
    )
    shown, _ = at_a_terminal(["--config", "a folder/migrate.yaml"], columns=80, lines=24)
    (words,) = re.findall(r"migrate (show .+\\\r?\n.+)", ESCAPE.sub("", shown))[:1]
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m migrate {words}".replace("\r", "")],
        cwd="/",
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and "42 euros" in done.stdout, done.stderr


def at_a_terminal(
    words: list[str], *, columns: int, lines: int, until: bytes = b"", **more: str
) -> tuple[str, int]:
    """What it showed at a terminal of that size, and its exit code; interrupted once ``until`` is shown."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    process = started(words, theirs, **more)
    os.close(theirs)
    seen, interrupted = b"", False
    while True:
        try:
            some = os.read(ours, 65_536)
        except OSError:  # the other end is closed
            break
        seen += some
        if until and until in seen and not interrupted:
            process.send_signal(signal.SIGINT)
            interrupted = True
        if not some:
            break
    os.close(ours)
    return seen.decode(), process.wait(20)


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (120, 40)])
def test_the_report_is_one_screen(url: str, columns: int, lines: int) -> None:
    record(url, wrong())
    shown, code = at_a_terminal(["--store", url], columns=columns, lines=lines)
    text = ESCAPE.sub("", shown).replace("\r", "").splitlines()
    assert code == 3 and "\x1b[" in shown
    assert len(text) < lines and all(len(line) <= columns for line in text)
    assert "ROLLBACK" in text[0] and any("disagreement" in line for line in text)
    assert any("text.number" in line for line in text) and "--format html" in text[-1]


def test_no_color(url: str) -> None:
    record(url, wrong(40))
    shown, _ = at_a_terminal(["--store", url], columns=80, lines=24, NO_COLOR="1")
    assert "\x1b" not in shown


def test_watching_at_a_terminal_ends_with_ctrl_c_and_leaves_the_last_screen(url: str) -> None:
    record(url, wrong(), ended=False, at=time.time() - 3_600)
    shown, code = at_a_terminal(["--store", url, "--watch"], columns=80, lines=24, until=b"Ctrl-C ends")
    assert code == 130
    assert shown.index("\x1b[?1049h") < shown.index("\x1b[H") < shown.index("\x1b[?1049l")
    left = ESCAPE.sub("", shown.split("\x1b[?1049l")[1]).replace("\r", "").splitlines()
    assert left and len(left) < 24 and "Ctrl-C" not in left[-1]


def test_watching_elsewhere_is_a_line_each_time_until_the_run_ends(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    at = time.time() - 3_600
    run_id = record(url, wrong(), ended=False, at=at)
    monkeypatch.setattr(watch, "_PAUSE_S", 0.05)

    def end() -> None:
        with Store.open(url) as store:
            store.end_run(run_id, at=at + 3_600)

    timer = threading.Timer(3, end)
    timer.start()
    code = run("--store", url, "--watch")
    timer.join()
    lines = capsys.readouterr().out.splitlines()
    assert code == 3 and len(lines) >= 2
    assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ (ROLLBACK|HOLD) \w+: .", line) for line in lines)


def test_a_reader_that_leaves_ends_it(url: str) -> None:
    record(url, wrong(40), ended=False, at=time.time() - 60)
    ours, theirs = os.pipe()
    os.close(ours)
    process = started(["--store", url, "--watch"], theirs)
    os.close(theirs)
    assert process.wait(30) == 130


def test_watching_is_for_the_terminal(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    record(url, wrong(10))
    for words in (("--format", "json"), ("--output", "x.txt"), ("--explain", "errors")):
        assert run("--store", url, "--watch", *words) == 2
        assert "--watch is for the terminal" in capsys.readouterr().err
