"""Which canary a gateway comes into, and when it has to begin one of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from migrate.canary import shift
from migrate.canary.entering import current, entered
from migrate.canary.serving import gateway_name
from migrate.config import Config
from migrate.store import Store, shifts


def config(folder: Path, **candidate: Any) -> Config:
    return Config.model_validate(
        {
            "baseline": {"kind": "vllm", "url": "http://127.0.0.1:1"},
            "candidate": {"kind": "vllm", "url": "http://127.0.0.1:2", **candidate},
            "store": {"url": f"sqlite:///{folder / 'store.db'}"},
        }
    )


def began(given: Config) -> shift.Shift:
    data = given.model_dump(mode="json", by_alias=True)
    with Store.open(given.store.url, create=True) as store:
        run = store.begin_run(kind="canary", config=data, policy=data["policy"], seed=1, at=1_000.0)
    return entered(given, run=run, why="a test")


def found(given: Config) -> shift.Shift | None:
    with Store.open(given.store.url) as store:
        return current(store, given)


def test_a_second_gateway_joins(tmp_path: Path) -> None:
    one = began(config(tmp_path))
    other = began(config(tmp_path))
    assert (one.action, other.action, other.number) == ("start", "join", 2) and one.canary == other.canary


@pytest.mark.parametrize(
    "other", [{"url": "http://127.0.0.1:3"}, {"model": "another"}, {"models": {"a": "another"}}], ids=str
)
def test_a_canary_of_another_candidate_is_none_of_ours(tmp_path: Path, other: dict[str, Any]) -> None:
    began(config(tmp_path))
    assert found(config(tmp_path)) is not None and found(config(tmp_path, **other)) is None


def test_what_is_finished_is_gone_on_with_by_its_gateways_alone(tmp_path: Path) -> None:
    given = config(tmp_path)
    canary = began(given).canary
    steps = given.canary.steps
    with Store.open(given.store.url) as store:
        for change in (
            lambda now: shift.set_to(now, 1.0, steps, at=2_000.0, who="somebody", why="so"),
            lambda now: shift.finished(now, at=3_000.0, who="somebody", why="so"),
        ):
            shifts.append(store, canary, change)
    assert found(given) is not None
    elsewhere = given.gateway.model_copy(update={"listen": "127.0.0.1:9"})
    new = given.model_copy(update={"gateway": elsewhere})
    assert gateway_name(new) != gateway_name(given) and found(new) is None
