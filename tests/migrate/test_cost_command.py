"""``migrate cost`` on real stores: where prices and traffic come from, what is missing, and one line for each wrong use."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from migrate.cli import main
from migrate.config import Config, Price, parse
from migrate.costing import bench_throughput
from migrate.embedder import Embedder
from migrate.errors import ConfigError
from migrate.gathering import _question, compared
from migrate.prices import price_list
from migrate.store import Store
from replay.exchange import Exchange, Observation, Usage
from replay.simulator.server import serving
from replay.simulator.settings import Settings
from tests.migrate.test_report import record
from tests.reports.builders import exchange
from tests.reports.made import REHEARSAL

URL = "sqlite:///m.db"
PRICED = """
baseline: {kind: relay, url: 'https://relay.example/v1', price: {listed: example/relay}}
candidate: {kind: vllm, url: 'http://10.0.0.9:8000', price: {listed: example/gpu, gpus: 2, throughput: 1.5}}
shadow: {percent: 50}
"""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


def used(seen: Observation | None, usage: Usage | None) -> Observation | None:
    if seen is None or seen.answer is None:
        return seen
    return replace(seen, answer=replace(seen.answer, usage=usage))


def exchanges(count: int = 100, *, silent: int = 0) -> Iterator[Exchange]:
    """1000 prompt tokens, half of them cached, and 200 of output; the first ``silent`` answers state none."""
    for number in range(count):
        one = exchange(number)
        usage = Usage(prompt_tokens=1000, cached_tokens=500, completion_tokens=200)
        said = None if number < silent else usage
        yield replace(
            one,
            baseline=used(one.baseline, said),
            candidate=used(one.candidate, usage),
            repeat=used(one.repeat, usage),
        )


def recorded(config: str = PRICED, **more: Any) -> str:
    return record(URL, exchanges(**more), config=parse(config))


def cost(*words: str) -> int:
    with pytest.raises(SystemExit) as done:
        main(["cost", "--store", URL, *words])
    assert isinstance(done.value.code, int)
    return done.value.code


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Any:
    def found(*words: str) -> Any:
        assert cost(*words, "--format", "json") == 0
        return json.loads(capsys.readouterr().out)

    return found


def row(data: Any, name: str, arm: str = "baseline") -> float | None:
    return next(one for one in data["rows"] if one["name"] == name)[arm]["expected"]


def joint(data: Any, name: str) -> float | None:
    return next(one for one in data["joint"] if one["name"] == name)["value"]["expected"]


def test_the_figures_are_those_of_a_pocket_calculator(said) -> None:
    recorded()
    data = said("--traffic", "200k/day", "--migration", "1000")
    # tokens: (500 x 0.50 + 500 x 0.05 + 200 x 2.00) / 1e6; GPUs: 2 x 2.00 x 24 for each 1.5 x 86,400
    assert row(data, "request") == pytest.approx(675e-6)
    assert row(data, "this run") == pytest.approx(100 * 675e-6 * 2), "and as much for the repeats"
    assert row(data, "day") == pytest.approx(135) and row(data, "day", "candidate") == 192
    assert row(data, "this run", "candidate") == 4
    assert row(data, "12 months", "candidate") == pytest.approx(1000 + 365 * 192)
    assert joint(data, "saving") == pytest.approx((135 - 192) * 365 / 12)
    assert joint(data, "rollback") == pytest.approx(1000 + 7 * (192 - 135))
    assert data["schema"] == {"name": "llm-migrate.cost", "version": 1} and data["definitions"]


def test_the_screen_says_prices_their_source_and_break_even(capsys) -> None:
    recorded()
    assert cost("--traffic", "50k/day") == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "0.5 input, 0.05 cached, 2 output for a million tokens, read on 2026-12-01" in out
    assert "(an example, not a price)" in out and "50,000 requests a day (as given), evenly all day" in out
    # 675 millionths against 96 a day: 142,222 requests, more than a replica carries; the second is worth it from 284,444 on
    assert "the candidate is the cheaper one at no traffic" in out


def test_traffic_is_that_of_the_run_over_the_share_that_was_recorded(said) -> None:
    recorded()
    data = said()
    assert data["terms"]["traffic_per_day"] == pytest.approx(100 / 9.9 * 86_400 / 0.5)
    assert any("reckoned from 9.9 s of the run" in note for note in data["notes"])


@pytest.mark.parametrize(
    ("text", "per_day"), [("50000", 50_000), ("50k/day", 50_000), ("300/min", 432_000), ("5/s", 432_000)]
)
def test_traffic_is_given_in_any_unit(said, text, per_day) -> None:
    recorded()
    assert said("--traffic", text)["terms"]["traffic_per_day"] == per_day


def test_answers_without_tokens_are_said_and_in_no_figure(said) -> None:
    recorded(silent=40)
    data = said("--traffic", "1000")
    assert row(data, "request") == pytest.approx(675e-6) and data["sides"][0]["spent"]["counted"] == 60
    assert any("40 of 100 answers state no token counts" in note for note in data["notes"])


def test_a_run_of_nothing_but_silence_costs_nobody_knows_what(said) -> None:
    recorded(silent=100)
    data = said("--traffic", "1000")
    assert row(data, "day") is None and row(data, "day", "candidate") == 96 and not data["comparable"]


def test_prices_of_a_named_configuration_go_before_those_of_the_run(said) -> None:
    recorded()
    Path("today.yaml").write_text(PRICED.replace("listed: example/relay", "input: 1, output: 4"))
    data = said("--config", "today.yaml", "--traffic", "1000")
    assert row(data, "request") == pytest.approx(1800e-6)
    assert any("its price has no date" in note for note in data["notes"])


def test_a_run_without_prices_says_how_to_give_some(said) -> None:
    recorded(
        PRICED.replace(", price: {listed: example/relay}", "").replace(
            ", price: {listed: example/gpu, gpus: 2, throughput: 1.5}", ""
        )
    )
    data = said("--traffic", "1000")
    assert sum("add price:" in note for note in data["notes"]) == 2 and row(data, "day") is None


def test_old_prices_are_said(said) -> None:
    recorded(PRICED.replace("example/relay", "openai/gpt-4.1-mini"))
    assert any("stale: read on 2025-06-03" in note for note in said()["notes"])
    assert not any("stale" in note for note in said("--stale-after", "36500d")["notes"])


def bench(step: dict[str, Any]) -> None:
    """A file as ``migrate bench`` writes it, as far as it is read."""
    shape = {"window_s": 60.0, "invalid": [], "goodput": {"met": 90}} | step
    Path("bench.json").write_text(
        json.dumps({"schema": {"name": "llm-migrate.bench", "version": 1}, "steps": [shape]})
    )


def test_a_benchmark_says_what_a_replica_carries(said) -> None:
    recorded()
    bench({})
    data = said("--candidate-bench", "bench.json", "--traffic", "200k")
    found = data["sides"][1]["throughput"]
    assert found["per_s"] == 1.5 and found["low"] < 1.5 < found["high"] and found["source"] == "bench.json"
    day = next(one for one in data["rows"] if one["name"] == "day")["candidate"]
    assert day["low"] <= day["expected"] <= day["high"]


async def test_a_benchmark_as_migrate_bench_writes_it(tmp_path: Path) -> None:
    async with serving(Settings()) as url:
        words = f"--url {url} --concurrency 4 --requests 20 --warmup 0 --goodput e2e=5s --lag-limit 10s --format json --quiet"
        command = [
            sys.executable,
            "-m",
            "migrate",
            "bench",
            *words.split(),
            "--output",
            str(tmp_path / "bench.json"),
        ]
        done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    step = json.loads((tmp_path / "bench.json").read_text())["steps"][0]
    found = bench_throughput(tmp_path / "bench.json")
    assert found.per_s == pytest.approx(step["goodput"]["per_s"]) and found.low < found.per_s < found.high


@pytest.mark.parametrize(
    "step", [{"invalid": ["late"]}, {"goodput": None}, {"goodput": {"met": 0}}, {"window_s": None}]
)
def test_a_benchmark_without_good_answers_is_refused(capsys, step) -> None:
    recorded()
    bench(step)
    assert cost("--candidate-bench", "bench.json") == 2
    assert "migrate bench --goodput" in capsys.readouterr().err


def test_a_damaged_benchmark_is_refused(capsys) -> None:
    recorded()
    for step in (
        {"goodput": {"met": "many"}},
        {"goodput": 3},
        {"window_s": -1.0},
        {"window_s": 1e300},
        {"goodput": {"met": 10**30}},
    ):
        bench(step)
        assert cost("--candidate-bench", "bench.json") == 2
        assert "is damaged" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--traffic", "-5"), "is no traffic above 0, such as 50k/day"),
        (("--traffic", "0"), "is no traffic above 0"),
        (("--traffic", "nan"), "is no traffic above 0"),
        (("--traffic", "5/fortnight"), "is no traffic above 0"),
        (("--traffic", "1000000G"), "is more than 10,000,000,000 requests a day"),
        (("--peak", "0"), "is not in the range"),
        (("--migration", "-1"), "is not in the range"),
        (("--migration", "nan"), "is no number"),
        (("--candidate-engineering", "1e300"), "is not in the range"),
        (("--overlap", "soon"), "is not a duration"),
        (("--run", "nope"), "holds no run 'nope' (list them with migrate runs)"),
        (("--candidate-bench", "none.json"), "none.json: cannot be read"),
        (("--candidate-bench", "m.db"), "is no benchmark; write one with: migrate bench"),
    ],
)
def test_wrong_use_is_one_line(capsys, words, error) -> None:
    recorded(count=2)
    assert cost(*words) == 2
    assert error in capsys.readouterr().err.splitlines()[-1]


def test_a_store_that_is_not_there_is_one_line(capsys) -> None:
    assert cost() == 2
    assert "m.db" in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("count", [0, 1])
def test_too_few_requests_tell_no_traffic(said, count) -> None:
    recorded(count=count)
    data = said()
    assert data["terms"]["traffic_per_day"] is None and any(
        "--traffic 50k/day" in note for note in data["notes"]
    )


def test_a_capture_has_one_side(capsys) -> None:
    record(URL, exchanges(), config=parse(PRICED.split("candidate:", maxsplit=1)[0]), kind="capture")
    assert cost("--traffic", "1000") == 0
    out = capsys.readouterr().out
    assert "BASELINE" in out and "CANDIDATE" not in out and "the run has no candidate" in out


def priced(price: str) -> Price:
    found = parse(f"baseline: {{kind: vllm, url: 'http://a:1', price: {price}}}").baseline.price
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("price", "error"),
    [
        ("{}", "either for tokens or for GPUs"),
        ("{input: 1}", "not complete"),
        ("{gpus: 3}", "not complete"),
        ("{gpu_per_hour: 2, gpus: 0}", "greater than or equal to 1"),
        ("{gpu_per_hour: -2, gpus: 1}", "greater than or equal to 0"),
        ("{input: 1, output: 1, gpus: 1}", "either for tokens or for GPUs"),
        ("{input: .inf, output: 1}", "finite"),
        ("{input: 1e9, output: 1}", "less than or equal to 100000"),
        ("{input: 1, cached_input: 2, output: 1}", "no cache makes tokens dearer"),
        ("{listed: openai/gpt-4o-mni}", "is not in the price list; it has openai/gpt-4o-mini"),
        ("{listed: example/gpu}", "not complete"),
        ("{input: 1, output: 1, date: 2026-11-31}", "is not valid YAML"),
        ("{inputs: 1, output: 1}", "did you mean input?"),
    ],
)
def test_a_price_that_cannot_be_is_refused(price, error) -> None:
    with pytest.raises(ConfigError) as found:
        priced(price)
    assert error in str(found.value) and "\n" not in str(found.value)


def test_what_stands_beside_an_entry_goes_before_it() -> None:
    own = priced("{listed: openai/gpt-4.1-mini, output: 3}")
    assert (own.input, own.output, own.source) == (0.4, 3, None), (
        "the entry's source says nothing of our figure"
    )


def test_a_run_keeps_its_prices_when_the_list_moves_on() -> None:
    kept = priced("{listed: openai/gpt-4.1-mini}").model_dump(mode="json")
    assert (
        "listed" not in kept
        and Price.model_validate(kept).quote == priced("{listed: openai/gpt-4.1-mini}").quote
    )


@pytest.mark.parametrize("name", price_list())
def test_every_entry_has_its_source_and_day(name) -> None:
    gpus = ", gpus: 1" if "gpu_per_hour" in price_list()[name] else ""
    quote = priced(f"{{listed: {name}{gpus}}}").quote
    assert quote.source and quote.date


def test_a_budget_in_dollars_needs_a_price_of_tokens() -> None:
    text = "baseline: {kind: vllm, url: 'http://a:1', limits: {usd_per_day: 5}, price: {gpu_per_hour: 2, gpus: 1}}"
    with pytest.raises(ConfigError, match="usd_per_day needs a price"):
        parse(text)


def test_the_rule_on_cost_knows_the_price_of_cached_input() -> None:
    run = recorded()
    with Store.open(URL) as store:
        item = compared(store, store.run(run), REHEARSAL, None)[0]
    assert item.pair.baseline.cost_usd == pytest.approx(675e-6) and item.pair.candidate.cost_usd is None


def test_what_a_store_keeps_of_a_report_is_for_its_prices() -> None:
    runs = [recorded(), recorded(PRICED.replace("listed: example/relay", "input: 1, output: 4"))]
    with Store.open(URL) as store:
        ended = [replace(store.run(run), ended_at=1.0) for run in runs]
        asked = [_question(run, REHEARSAL, Embedder()) for run in ended]
    assert None not in asked and len(set(asked)) == 2


def test_the_help_has_examples(capsys) -> None:
    assert cost("--help") == 0
    assert "migrate cost --traffic 300/min" in capsys.readouterr().out


def test_configurations_of_before_are_still_read() -> None:
    old = Config.model_validate(
        {"baseline": {"kind": "vllm", "url": "http://a:1", "price": {"input": 1, "output": 2}}}
    )
    assert old.baseline.price is not None and old.baseline.price.tokens is not None
