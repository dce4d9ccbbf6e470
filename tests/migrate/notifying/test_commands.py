"""``migrate notify --test`` and ``migrate report --notify``, as a cron job runs them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from migrate.cli import main
from tests.migrate.notifying.listening import hook
from tests.migrate.test_report import REHEARSAL, record
from tests.reports.builders import alike, wrong


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Of a store with a run that ended in ROLLBACK."""
    store = f"sqlite:///{tmp_path}/m.db"
    record(store, wrong())
    path = tmp_path / "migrate.yaml"
    path.write_text(
        f"baseline: {{kind: vllm, url: 'http://127.0.0.1:1'}}\nstore: {{url: '{store}'}}\nnotify: {{slack_env: SLACK_WEBHOOK}}\n"
    )
    return path


Migrate = Callable[..., Awaitable[tuple[int, str, str]]]


@pytest.fixture
def migrate(config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Migrate:
    """The command line beside that configuration: exit code, standard output, standard error. The receivers answer meanwhile."""
    monkeypatch.chdir(config.parent)

    async def run(*words: str, slack: str) -> tuple[int, str, str]:
        monkeypatch.setenv("SLACK_WEBHOOK", slack)
        with pytest.raises(SystemExit) as done:
            await asyncio.to_thread(main, [*words])
        return int(done.value.code or 0), *capsys.readouterr()

    return run


async def test_a_test_says_of_each_receiver_what_came_of_it(migrate: Migrate) -> None:
    async with hook(200, 403) as server:
        good = await migrate("notify", "--test", slack=server.url)
        bad = await migrate("notify", "--test", slack=f"{server.url}/hidden")
    assert good == (0, "OK    slack  was told\n", "")
    assert bad[:2] == (
        2,
        "FAIL  slack  answered 403: the key may not do this, or the address is no longer in use\n",
    )
    assert "hidden" not in "".join(bad[1:])
    assert server.bodies[0]["text"].startswith("Test of llm-migrate")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("notify",), "say --test to try the receivers"),
        (("notify", "--test"), "environment variable SLACK_WEBHOOK is empty"),
        (("report", "--notify"), "environment variable SLACK_WEBHOOK is empty"),
        (("report", "--notify", "--explain", "errors"), "leave out --watch and --explain"),
    ],
)
async def test_wrong_use_is_one_line(migrate: Migrate, words: tuple[str, ...], line: str) -> None:
    code, out, err = await migrate(*words, slack="")
    assert (code, out) == (2, "") and line in err and err.count("\n") == 1


async def test_a_configuration_that_names_nobody_says_so(config: Path, migrate: Migrate) -> None:
    config.write_text(config.read_text().replace("{slack_env: SLACK_WEBHOOK}", "{every: 1m}"))
    code, _, err = await migrate("notify", "--test", slack="")
    assert code == 2 and "notify: names nobody; add one" in err


async def test_a_report_tells_once_and_its_exit_code_stays_the_verdicts(migrate: Migrate) -> None:
    async with hook(403, 200) as server:
        codes = [await migrate("report", "--quiet", "--notify", slack=server.url) for _ in range(3)]
    assert [code for code, _, _ in codes] == [3, 3, 3]
    assert "migrate: slack could not be told: answered 403" in codes[0][2]
    assert codes[2][2] == ""
    assert [one["text"].split(":")[0] for one in server.bodies] == [
        "ROLLBACK",
        "ROLLBACK",
        "Run ended with ROLLBACK",
    ]


async def test_a_go_that_has_expired_is_told_as_none(config: Path, migrate: Migrate) -> None:
    config.with_name("m.db").unlink()
    record(
        f"sqlite:///{config.parent}/m.db", alike(), policy=REHEARSAL.model_copy(update={"valid_for": 60.0})
    )
    async with hook() as server:
        code, _, err = await migrate("report", "--quiet", "--notify", slack=server.url)
    assert code == 4 and "this GO expired" in err
    assert [one["text"].split(":")[0] for one in server.bodies] == ["Run ended with HOLD"]
