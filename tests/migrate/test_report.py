"""``migrate report`` on real stores: verdict, exit code, files, and one line for each wrong use."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import sqlite3
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from migrate import tap
from migrate.cli import main
from migrate.commands.report import EXIT_CODES
from migrate.config import Backend, Config, Shadow
from migrate.store import Store, Writer, schema
from replay.exchange import Exchange
from reports.document import NOT_MIRRORED
from reports.judgement import Verdict
from reports.policy import Extractor, Policy
from tests.reports.builders import COUNTERS, alike, exchange, wrong
from tests.reports.made import REHEARSAL, START

ROOT = Path(__file__).parents[2]
CONFIG = Config(
    baseline=Backend(kind="vllm", url="http://baseline:8000"),
    candidate=Backend(kind="tensorrt-llm", url="http://candidate:8000"),
    shadow=Shadow(percent=40),  # type: ignore[arg-type]
)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/m.db"


def record(
    url: str,
    exchanges: Iterable[Exchange],
    *,
    ended: bool = True,
    policy: Policy = REHEARSAL,
    config: Config = CONFIG,
    at: float = START,
    kind: str = "shadow",
) -> str:
    """A run of these exchanges in the store. Returns its id."""
    with Store.open(url, create=True) as store:
        run = store.begin_run(
            kind=kind,
            config=config.model_dump(mode="json", by_alias=True),
            policy=policy.model_dump(mode="json", by_alias=True),
            seed=7,
            at=at,
        )
        writer = Writer(store, run)
        for one in exchanges:
            for seen in (one.request, one.baseline, one.candidate, one.repeat):
                assert seen is None or writer.offer(seen)
        writer.counters(COUNTERS)
        assert writer.close(20)
        if ended:
            store.end_run(run, at=at + 3600)
    return run


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as done:
        main(["report", *words])
    assert isinstance(done.value.code, int)
    return done.value.code


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MIGRATE_CONFIG", raising=False)


@pytest.mark.parametrize(
    ("exchanges", "verdict", "code"), [(alike, "GO", 0), (wrong, "ROLLBACK", 3), (list, "HOLD", 4)]
)
def test_the_exit_code_is_the_verdict(
    url: str, exchanges: object, verdict: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    record(url, exchanges())  # type: ignore[operator]
    assert run("--store", url) == code == EXIT_CODES[Verdict(verdict)]
    out, err = capsys.readouterr()
    assert out.splitlines()[0].split()[1] == verdict and err == ""


def test_the_same_run_gives_the_same_document(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    record(url, wrong(120))
    run("--store", url, "--format", "json")
    first = capsys.readouterr().out
    run("--store", url, "--format", "json")
    assert capsys.readouterr().out == first
    data = json.loads(first)
    assert data["schema"]["name"] == "llm-migrate.report"
    assert data["judged_at"] == data["run"]["ended_at"]
    assert data["gateway"]["passed"] == 1_000 and data["not_recorded"] == 280


def test_what_decides_by_task_is_the_runs_own_policy(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    policy = REHEARSAL.model_copy(update={"compare": (Extractor(take="last_number", within=0.5),)})
    sums = [exchange(n, "9 eggs at $2, so $18", "She sells 16 - 7 of them.\n#### 18.25") for n in range(400)]
    record(url, sums, policy=policy)
    run("--store", url, "--format", "json")
    document = json.loads(capsys.readouterr().out)
    assert [cause["category"] for cause in document["causes"]] == ["task.text"]
    assert document["policy"]["compare"][0]["take"] == "last_number"
    # Judged by another policy, the whole answers count, and the report says what was changed.
    Path("m.yaml").write_text(
        "baseline: {kind: vllm, url: 'http://baseline:8000'}\npolicy: {rehearsal: true, minimum_span: 30s}\n"
    )
    run("--store", url, "--config", "m.yaml", "--format", "json")
    document = json.loads(capsys.readouterr().out)
    assert [cause["category"] for cause in document["causes"]] == ["text.number"]
    assert any("compare" in note for note in document["notes"])


def test_baseline_and_candidate_keep_their_places_from_store_to_report(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    record(url, [exchange(n, "OLD 1", "CAND 2", slower_s=1.0) for n in range(30)])
    run("--store", url, "--format", "json")
    data = json.loads(capsys.readouterr().out)
    assert (data["run"]["baseline"], data["run"]["candidate"]) == (
        "vllm at http://baseline:8000",
        "tensorrt-llm at http://candidate:8000",
    )
    pair = data["worst"][0]
    assert (pair["baseline"]["text"], pair["candidate"]["text"]) == ("OLD 1", "CAND 2")
    p50 = {one["arm"]: one["quantiles"][0]["value_s"] for one in data["latency"] if one["metric"] == "e2e"}
    assert p50["candidate"] > p50["baseline"] == p50["baseline_repeat"]


def test_a_run_in_progress_is_judged_as_it_stands(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    record(url, alike(60), ended=False)
    assert run("--store", url) == 4
    assert "(running, judged at 20" in " ".join(capsys.readouterr().out.split())


def test_a_run_without_a_candidate_is_hold(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    alone = CONFIG.model_copy(update={"candidate": None})
    record(url, [Exchange(request=one.request, baseline=one.baseline) for one in alike(30)], config=alone)
    assert run("--store", url) == 4
    assert "candidate none" in capsys.readouterr().out


def test_the_latest_run_is_reported_unless_another_is_named(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = record(url, alike(3)), record(url, alike(3), at=START + 9_000)
    run("--store", url)
    assert second in capsys.readouterr().out
    run("--store", url, "--run", first)
    assert first in capsys.readouterr().out


def test_another_policy_may_judge_and_the_report_says_that_it_is_another(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(url, alike())
    config = tmp_path / "c.yaml"
    config.write_text(
        f"baseline: {{kind: vllm, url: 'http://baseline:8000'}}\nstore: {{url: '{url}'}}\n"
        "policy: {minimum_pairs: 5000, minimum_span: 10s, warmup: 0s, rehearsal: true}\n"
    )
    assert run("--config", str(config)) == 4
    text = " ".join(capsys.readouterr().out.split())
    assert "another policy than the one the run was started under: minimum_pairs 300 → 5000" in text


@pytest.mark.parametrize(("kind", "warmup"), [("replay", 0), ("shadow", 3_600)])
def test_a_replay_keeps_the_warm_up_that_it_was_told(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, warmup: int
) -> None:
    record(url, alike(400), kind=kind, config=CONFIG.model_copy(update={"shadow": Shadow()}))
    (tmp_path / "c.yaml").write_text(
        "baseline: {kind: vllm, url: 'http://baseline:8000'}\n"
        "policy: {minimum_pairs: 300, minimum_span: 10s, warmup: 1h, rehearsal: true}\n"
    )
    run("--store", url, "--config", str(tmp_path / "c.yaml"), "--format", "json")
    document = json.loads(capsys.readouterr().out)
    assert document["policy"]["warmup"] == warmup and document["ledger"]["warm_up"] == (400 if warmup else 0)


def test_a_configuration_that_is_only_found_does_not_change_the_policy(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(url, alike())
    (tmp_path / "migrate.yaml").write_text(
        f"baseline: {{kind: vllm, url: 'http://baseline:8000'}}\nstore: {{url: '{url}'}}\n"
    )
    assert run() == 0
    assert "another policy" not in capsys.readouterr().out


def test_several_formats_go_to_the_screen_and_to_files(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(url, alike(3))
    words = ("--store", url, "--format", "terminal,html", "--format", "json", "--output", "out.html")
    assert run(*words) == 4
    out, err = capsys.readouterr()
    assert "HOLD" in out and err.splitlines() == ["wrote out.html", "wrote out.json"]
    assert (tmp_path / "out.html").read_text().startswith("<!doctype html>")
    assert json.loads((tmp_path / "out.json").read_text())["verdict"] == "HOLD"
    assert sorted(path.suffix for path in tmp_path.iterdir() if "out" in path.name) == [".html", ".json"]


def test_without_an_output_several_formats_are_named_after_the_run(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = record(url, alike(3))
    run("--store", url, "--format", "html,markdown")
    assert capsys.readouterr().out == ""
    assert (tmp_path / f"report-{name}.html").exists() and (tmp_path / f"report-{name}.md").exists()


@pytest.mark.parametrize("form", ["terminal", "html", "json", "markdown"])
def test_a_single_format_goes_to_the_file_that_is_named(url: str, tmp_path: Path, form: str) -> None:
    record(url, alike(3))
    run("--store", url, "--format", form, "--output", "any.thing")
    assert "HOLD" in (tmp_path / "any.thing").read_text()


@pytest.mark.parametrize("form", ["html", "json", "markdown"])
def test_a_single_format_goes_to_standard_output(
    url: str, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    record(url, alike(3))
    run("--store", url, "--format", form)
    out, err = capsys.readouterr()
    assert out.endswith("\n") and not out.endswith("\n\n") and err == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--store", "sqlite:///none.db"),
            "none.db does not exist; fill one with migrate import, capture or",
        ),
        (
            ("--store", "sqlite:///empty.db"),
            "holds no run yet; fill it with migrate import, capture or shadow",
        ),
        (("--store", "sqlite:///m.db", "--run", "20231114-2213"), "did you mean 20231114-221320-"),
        (("--store", "nonsense"), "is no database URL"),
        (("--store", "sqlite:///text.db"), "is no store of llm-migrate"),
        (("--store", "sqlite:///m.db", "--format", "htm"), "'htm' is none of terminal, html"),
        (("--store", "sqlite:///m.db", "--format", ","), "names no format"),
        (("--store", "sqlite:///m.db", "--output", "no/where.html"), "there is no folder no"),
        (("--config", "none.yaml"), "none.yaml: cannot be read"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(
    url: str, tmp_path: Path, words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    record(url, alike(3))
    Store.open(f"sqlite:///{tmp_path}/empty.db", create=True).close()
    (tmp_path / "text.db").write_text("not a database at all, but long enough to look at" * 50)
    assert run(*words) == 2
    out, err = capsys.readouterr()
    assert out == "" and said in err and err.count("\n") == 1


def test_a_file_that_cannot_be_written_is_wrong_use(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(url, alike(3))
    (tmp_path / ".x.html.part").mkdir()
    assert run("--store", url, "--format", "html", "--output", "x.html") == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_policy_of_another_version_is_named(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    with Store.open(url, create=True) as store:
        store.begin_run(kind="shadow", config={}, policy={"strange": 1}, seed=0, at=START)
    assert run("--store", url) == 2
    assert "its policy cannot be read" in capsys.readouterr().err


def command(url: str) -> list[str]:
    return [sys.executable, "-m", "migrate", "report", "--store", url]


def environment(**more: str) -> dict[str, str]:
    return {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", **more}


def test_a_terminal_that_knows_only_ascii_still_reads_the_verdict(url: str) -> None:
    record(url, alike(3))
    env = environment(PYTHONIOENCODING="ascii")
    done = subprocess.run(command(url), env=env, capture_output=True, timeout=60, check=False)
    assert done.returncode == 4, done.stderr
    assert done.stdout.startswith(b" ? HOLD") and done.stdout.isascii()


@pytest.mark.parametrize(("more", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colours_only_at_a_terminal_that_wants_them(url: str, more: dict[str, str], coloured: bool) -> None:
    record(url, alike(3))
    ours, theirs = pty.openpty()
    try:
        env = environment(COLUMNS="100", **more)
        done = subprocess.run(
            command(url), env=env, stdout=theirs, stderr=subprocess.PIPE, timeout=60, check=False
        )
        os.close(theirs)
        shown = os.read(ours, 100_000)
    finally:
        os.close(ours)
    assert done.returncode == 4, done.stderr
    assert (b"\x1b[" in shown) is coloured


def test_the_document_knows_every_outcome_of_the_gateway() -> None:
    assert {"mirrored", *NOT_MIRRORED} == set(tap.OUTCOMES)


def test_the_output_may_be_a_link_or_a_pipe_and_neither_is_replaced(url: str, tmp_path: Path) -> None:
    record(url, alike(3))
    real, link = tmp_path / "real.html", tmp_path / "link.html"
    real.touch()
    link.symlink_to(real)
    run("--store", url, "--format", "html", "--output", str(link))
    assert link.is_symlink() and real.read_text().startswith("<!doctype html>")
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE, text=True) as reader:
        run("--store", url, "--format", "json", "--output", str(pipe))
        assert reader.stdout is not None and reader.stdout.read().startswith("{")
    assert pipe.is_fifo()


def test_another_programs_database_is_left_as_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "other.db"
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("create table users (name text)")
        other.commit()
    before = path.read_bytes()
    assert run("--store", f"sqlite:///{path}") == 2
    assert "is no store of llm-migrate" in capsys.readouterr().err
    assert path.read_bytes() == before and sorted(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "damage",
    [
        "update bodies set data = x'00'",
        "update observations set earlier = '{'",
        "update observations set outcome = 'what'",
        "update observations set headers = '7'",
        "update runs set config = '[]'",
        "update runs set policy = 'nope'",
        "update meta set value = 'abc'",
        "drop table observations",
        "update observations set e2e_s = -1",
        "update observations set e2e_s = 9e999",
        "update observations set e2e_s = 'long'",
        "update requests set at = 9e999",
        "update observations set content_times = x'00'",
    ],
)
def test_a_damaged_store_is_one_line_and_never_a_verdict_of_go(
    url: str, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    record(url, alike(40))
    with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as store:
        store.execute(damage)
        store.commit()
    code = run("--store", url)
    err = capsys.readouterr().err
    assert code in (2, 4) and "defect" not in err
    assert code == 4 or err.count("\n") == 1


def read_only(url: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A report on a copy of the store that cannot be written, nor anything beside it."""
    folder.mkdir()
    (folder / "m.db").write_bytes(Path(url.removeprefix("sqlite:///")).read_bytes())
    (folder / "m.db").chmod(0o444)
    folder.chmod(0o555)
    # root may write everything, unless it gives that right up
    drop = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all")
    words = (sys.executable, "-m", "migrate", "report", "--store", f"sqlite:///{folder}/m.db", "--quiet")
    whole = (*drop, *words) if os.getuid() == 0 else words
    return subprocess.run(whole, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def test_a_store_that_may_only_be_read_is_judged_alike(url: str, tmp_path: Path) -> None:
    record(url, wrong(60))
    done = read_only(url, tmp_path / "ro")
    assert done.returncode == 3, done.stderr
    assert list((tmp_path / "ro").iterdir()) == [tmp_path / "ro" / "m.db"]


@pytest.mark.parametrize(("by", "said"), [(-1, "older llm-migrate"), (1, "newer llm-migrate")])
def test_a_store_of_another_schema_that_may_only_be_read_is_refused_by_name(
    url: str, tmp_path: Path, by: int, said: str
) -> None:
    with Store.open(url, create=True) as store, store.engine.begin() as connection:
        connection.execute(schema.meta.update().values(value=str(schema.VERSION + by)))
    done = read_only(url, tmp_path / "ro")
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr.startswith(f"migrate: store {tmp_path}/ro/m.db was written by a") and said in done.stderr
    )


def test_a_file_that_could_not_be_written_leaves_nothing_behind(url: str, tmp_path: Path) -> None:
    record(url, wrong(60))
    words = f"{sys.executable} -m migrate report --store {url} --format html --output r.html"
    done = subprocess.run(
        ["bash", "-c", f"ulimit -f 34; {words}"],  # KiB; SQLite's own take 32
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (
        2,
        "migrate: --output r.html: cannot be written: File too large\n",
    )
    assert not [path.name for path in tmp_path.iterdir() if "r.html" in path.name]
