"""A server on a GPU: launched, checked against docs/backends.md, behind the gateway, shadowed, and stopped with nothing left."""

from __future__ import annotations

import asyncio
import time
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import orjson
import pytest
from openai import OpenAI

from migrate.config import Backend
from migrate.preflight import preflight
from migrate.store import Store
from replay.backends import BACKENDS
from replay.exchange import Arm, Outcome
from tests.check.page import cells, shown
from tests.gpu.conftest import Served
from tests.shadowing import MODEL, shadowing
from tests.wire import one_by_one, payload, raw, wire

CHAT = {
    "model": MODEL,
    "messages": [{"role": "user", "content": "When is the tide high?"}],
    "temperature": 0,
    "max_tokens": 24,
}
ASKED = (CHAT, CHAT | {"stream": True}, CHAT | {"temperature": -1}, CHAT | {"messages": []})


def test_each_cell_of_the_page_is_so(served: Served) -> None:
    """Also those that were only tested against the dialect: where the server differs, it is right, and the page is not."""
    backend = Backend.model_validate({"kind": served.kind, "url": served.url, "model": MODEL})
    asyncio.run(
        preflight(backend, model=MODEL)
    )  # the first schema of a server's life takes it seconds to compile
    found = {line.check: shown(line) for line in asyncio.run(preflight(backend, model=MODEL))}
    told = {name: value for mark in ("real", "dialect") for name, value in cells(served.kind, mark).items()}
    wrong = {
        name: (found[name], value)
        for name, value in told.items()
        if name in found and not _is(found[name], value)
    }
    assert not wrong, wrong


def _is(found: str, told: str) -> bool:
    """``OK`` alone: it was taken, and the model made no use of it."""
    return found == told or (found, told) == ("OK", "served")


def test_its_routes_are_there(served: Served) -> None:
    facts = BACKENDS[served.kind]
    for route in filter(None, (facts.health, facts.ready, facts.version, *facts.metrics)):
        with urllib.request.urlopen(served.url + route, timeout=30) as answer:
            assert answer.status == 200, route


@pytest.mark.parametrize("body", ASKED, ids=["chat", "stream", "400", "empty"])
def test_bytes_through_the_gateway_are_its_bytes(
    served: Served, tmp_path: Path, body: dict[str, object]
) -> None:
    data = orjson.dumps(body)
    with (
        wire(served.url) as between,
        shadowing(
            tmp_path, baseline=between.url, candidate=served.url, backend=f"kind: {served.kind}", repeat="0 %"
        ) as shadow,
    ):
        through = raw(shadow.url, "/v1/chat/completions", data)
        sent = [payload(one) for answers in between.answered for one in one_by_one(answers)]
    assert payload(through) in sent


def test_two_hundred_are_shadowed_with_its_own_view_beside(served: Served, tmp_path: Path) -> None:
    with (
        wire(served.url) as again,
        shadowing(
            tmp_path, baseline=served.url, candidate=again.url, backend=f"kind: {served.kind}", repeat="0 %"
        ) as shadow,
    ):
        for count in range(50, 201, 50):
            _ask(shadow.url, 50)
            exchanges = shadow.exchanges(count)
        time.sleep(1)
    outcomes = Counter(one.candidate.outcome for one in exchanges if one.candidate)
    assert outcomes == {Outcome.OK: 200}, outcomes
    with Store.open(shadow.store) as store:
        run = store.run().id
        assert store.told(run)[Arm.BASELINE].version
        readings = store.readings(run)[Arm.BASELINE]
    assert any(one.running is not None and one.kv_cache is not None for one in readings), readings


def _ask(url: str, count: int) -> None:
    client = OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)

    def ask(n: int) -> None:
        content = f"When is high tide at pier {n}?"
        client.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": content}], max_tokens=8, temperature=0
        )

    with client, ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, range(count)))
