"""Those who ask for a verdict, each by its own protocol as its own source has it, with the examples of configs/ as they stand."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from aiohttp.test_utils import TestServer
from prometheus_client.parser import text_string_to_metric_families

from migrate.admin import application
from migrate.cli import main
from migrate.config import StoreSection
from migrate.metrics import exposition
from migrate.notifying.standing import standing
from migrate.tap import EVENTS, OUTCOMES
from tests.migrate.test_report import CONFIG, REHEARSAL, record
from tests.reports.builders import alike, wrong

CONFIGS = Path(__file__).parents[3] / "configs"
TOKEN = "0123456789abcdef"
SAID = {
    "reason": "r",
    "judged_at": "2026-12-02T09:00:00Z",
    "valid_until": "2026-12-09T09:00:00Z",
    "pairs": 4_000,
    "scored_pairs": 3_900,
}
NOON = "2026-12-02T12:00:00Z"


class Operation:
    """Stands where the running gateway stands, with one judgement."""

    def __init__(self, verdict: str | None, age: float = 5.0) -> None:
        rules = {"errors": verdict, "disagreement": "HOLD"}
        said = None if verdict is None else SAID | {"verdict": verdict, "code": "c", "rules": rules}
        self.verdict = standing(said, age=age, every=300.0, now=NOON) | {"problem": None}

    async def ready(self) -> tuple[bool, dict[str, Any]]:
        return True, {}

    def status(self) -> dict[str, Any]:
        store = {"written": 10, "queued": 0, "refused": 0, "failed_attempts": 0, "error": None}
        mirror = {
            "up": True,
            "restarts": 0,
            "age_s": 0.2,
            "in_flight": 1,
            "breaker": "closed",
            "store": store,
        }
        return {
            "run": 'r"1\n',
            "kind": "shadow",
            "version": "1",
            "uptime_s": 12.5,
            "open_requests": 2,
            "mirroring": True,
            "counters": dict.fromkeys((*EVENTS, *OUTCOMES), 3),
            "withheld": {"breaker_open": 7},
            "mirror": mirror,
            "verdict": self.verdict,
            "receivers": {"slack": {"problem": "answered 500", "at": NOON}},
        }

    def looked(self) -> None:
        return None

    def mirror(self, *, on: bool) -> None:
        raise AssertionError("nobody who asks for a verdict changes anything")


def here(url: str, server: TestServer) -> str:
    """The address of an example, at the real listener, with the token in it."""
    return url.replace("migrate.default.svc:8081", f"127.0.0.1:{server.port}").replace("TOKEN", TOKEN)


async def argo(metric: dict[str, Any], server: TestServer) -> str:
    """The phase of one measurement as Argo Rollouts' web provider takes it (metricproviders/webmetric, utils/evaluate)."""
    web = metric["provider"]["web"]
    headers = {one["key"]: one["value"].replace("{{args.token}}", TOKEN) for one in web["headers"]}
    async with httpx.AsyncClient(timeout=web["timeoutSeconds"]) as client:
        answer = await client.get(here(web["url"], server), headers=headers)
    if not answer.is_success:
        return "Error"
    value = answer.json()
    for key in web["jsonPath"].removeprefix("{$.").removesuffix("}").split("."):
        value = value[key]
    success, failure = (
        holds(metric[name], value) if name in metric else None
        for name in ("successCondition", "failureCondition")
    )
    failed = failure if failure is not None else not success
    passed = success if success is not None else not failure
    return "Failed" if failed else "Successful" if passed else "Inconclusive"


def holds(condition: str, result: object) -> bool:
    """The one form of condition that the examples have."""
    match = re.fullmatch(r'result == "(\w+)"', condition)
    assert match, condition
    return result == match[1]


def metric(name: str) -> dict[str, Any]:
    templates = yaml.safe_load_all((CONFIGS / "argo-rollouts-analysis.yaml").read_text())
    (found,) = (one for one in templates if one["metadata"]["name"] == name)
    (only,) = found["spec"]["metrics"]
    return only


@pytest.mark.parametrize(
    ("operation", "phase", "watched"),
    [
        (Operation("GO"), "Successful", "Successful"),
        (Operation("HOLD"), "Inconclusive", "Successful"),
        (Operation("ROLLBACK"), "Failed", "Failed"),
        (Operation("GO", age=901), "Inconclusive", "Successful"),
        (Operation(None), "Inconclusive", "Successful"),
    ],
    ids=["go", "hold", "rollback", "stale", "not judged"],
)
async def test_argo_rollouts_asks_for_the_verdict(operation: Operation, phase: str, watched: str) -> None:
    async with TestServer(application(operation, TOKEN)) as server:
        assert await argo(metric("migrate-verdict"), server) == phase
        assert await argo(metric("migrate-watch"), server) == watched


@pytest.mark.parametrize(("pairs", "code"), [(wrong, 3), (alike, 0)])
def test_argo_rollouts_runs_the_report_as_a_job(pairs: Any, code: int, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/m.db"
    record(url, pairs())
    config = CONFIG.model_copy(update={"policy": REHEARSAL, "store": StoreSection(url=url)})
    data = config.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    data["policy"] |= {"minimum_span": "10s", "valid_for": "3650d"}  # a file has units
    (tmp_path / "migrate.yaml").write_text(yaml.safe_dump(data))
    (container,) = metric("migrate-report")["provider"]["job"]["spec"]["template"]["spec"]["containers"]
    program, *words = (word.replace("/etc/migrate", str(tmp_path)) for word in container["command"])
    assert program == "migrate"
    with pytest.raises(SystemExit) as done:
        main(words)
    assert done.value.code == code


async def flagger(kind: str, server: TestServer) -> bool:
    """Whether Flagger takes a webhook's answer for a yes (pkg/controller/webhook.go): a POST whose status is at most 202."""
    canary = yaml.safe_load((CONFIGS / "flagger-webhook.yaml").read_text())
    (hook,) = (one for one in canary["spec"]["analysis"]["webhooks"] if one["type"] == kind)
    payload = {
        "name": "candidate",
        "namespace": "default",
        "phase": "Progressing",
        "checksum": "1",
        "metadata": {},
    }
    async with httpx.AsyncClient(timeout=float(hook["timeout"].removesuffix("s"))) as client:
        answer = await client.post(here(hook["url"], server), json=payload)
    return answer.status_code <= 202


@pytest.mark.parametrize(
    ("operation", "promotes", "rolls_back"),
    [
        (Operation("GO"), True, False),
        (Operation("HOLD"), False, False),
        (Operation("ROLLBACK"), False, True),
        (Operation("GO", age=901), False, False),
        (Operation("ROLLBACK", age=901), False, False),
        (Operation(None), False, False),
    ],
    ids=["go", "hold", "rollback", "stale", "stale rollback", "not judged"],
)
async def test_flagger_waits_for_go_and_heeds_rollback(
    operation: Operation, promotes: bool, rolls_back: bool
) -> None:
    async with TestServer(application(operation, TOKEN)) as server:
        assert await flagger("confirm-promotion", server) is promotes
        assert await flagger("rollback", server) is rolls_back


async def test_a_probe_is_answered_200_on_go_alone_and_told_why_not() -> None:
    for operation, status in ((Operation("GO"), 200), (Operation("HOLD"), 503), (Operation("ROLLBACK"), 409)):
        async with TestServer(application(operation)) as server, httpx.AsyncClient() as client:
            answer = await client.get(f"http://127.0.0.1:{server.port}/verdict")
        assert answer.status_code == status
        assert answer.json().keys() >= {"verdict", "code", "reason", "valid_until", "judged_at", "age_s"}


async def test_without_the_token_nobody_is_told() -> None:
    async with TestServer(application(Operation("GO"), TOKEN)) as server, httpx.AsyncClient() as client:
        for path in ("/verdict", "/verdict/rollback", "/metrics"):
            assert (await client.get(f"http://127.0.0.1:{server.port}{path}")).status_code == 401


def names() -> dict[str, str]:
    """Every metric of /metrics and its type, as a scraper reads the text."""
    text = exposition(Operation("GO").status()).decode()
    found = {}
    for family in text_string_to_metric_families(text):
        assert family.samples, f"{family.name} says nothing"
        found.update({sample.name: family.type for sample in family.samples})
    return found


def test_the_metrics_are_named_as_prometheus_names_them() -> None:
    for name, kind in names().items():
        assert re.fullmatch(r"llm_migrate_[a-z]+(_[a-z]+)*", name), name
        assert name.endswith("_total") == (kind == "counter"), name
        assert not re.search(r"_(ms|milliseconds|minutes|hours|percent|kb|mb|count|sum|bucket)(_|$)", name), (
            name
        )


def test_withheld_copies_and_scored_pairs_are_counted_by_the_words_of_status() -> None:
    text = exposition(Operation("GO").status()).decode()
    assert 'llm_migrate_copies_withheld_total{reason="breaker_open"} 7.0' in text
    assert "llm_migrate_scored_pairs 3900.0" in text


def test_a_status_that_knows_little_gives_fewer_metrics_and_no_zeroes() -> None:
    text = exposition(
        {"run": None, "counters": {}, "mirror": {"up": False}, "verdict": None, "receivers": {}}
    ).decode()
    said = [line.partition(" ")[0] for line in text.splitlines() if not line.startswith("#")]
    assert said == ['llm_migrate_run_info{kind="",run="",version=""}', "llm_migrate_mirror_up"]


def expressions() -> Iterator[str]:
    groups = yaml.safe_load((CONFIGS / "prometheus-alerts.yaml").read_text())["groups"]
    yield from (rule["expr"] for group in groups for rule in group["rules"])
    board = json.loads((CONFIGS / "grafana-dashboard.json").read_text())
    yield from (target["expr"] for panel in board["panels"] for target in panel["targets"])
    yield from (one["query"] for one in board["templating"]["list"])


def test_alerts_and_dashboard_ask_for_what_there_is() -> None:
    known, asked = names(), set()
    for expression in expressions():
        asked |= set(re.findall(r"\bllm_migrate_\w+", expression))
    assert asked <= known.keys(), asked - known.keys()
    outcomes = re.findall(r'outcome=~"([^"]+)"', " ".join(expressions()))
    assert {word for text in outcomes for word in text.split("|")} <= set(OUTCOMES)


def test_every_panel_has_a_place_a_title_and_a_number() -> None:
    board = json.loads((CONFIGS / "grafana-dashboard.json").read_text())
    panels = board["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) and all(panel["title"] for panel in panels)
    taken = [
        (x, y)
        for panel in panels
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(taken) == len(set(taken)) and max(x for x, _ in taken) < 24


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_finds_nothing() -> None:
    metrics = exposition(Operation("GO").status())
    subprocess.run(["promtool", "check", "metrics"], input=metrics, check=True)
    subprocess.run(["promtool", "check", "rules", str(CONFIGS / "prometheus-alerts.yaml")], check=True)
