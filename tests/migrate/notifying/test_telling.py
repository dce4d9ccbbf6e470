"""Who is told what, and how often: on a real store, with real receivers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from migrate.notifying.news import News, news_of
from migrate.notifying.receivers import Receiver
from migrate.notifying.standing import standing
from migrate.notifying.telling import rehearse, tell
from migrate.report import report
from migrate.store import Store
from tests.migrate.notifying.listening import Hook, hook
from tests.migrate.notifying.test_receivers import GO, ROLLBACK, only
from tests.migrate.test_report import record
from tests.reports.builders import wrong

HOLD = replace(GO, state="HOLD")
HALT = replace(ROLLBACK, state="HALT")
ENDED = replace(GO, subject="end", state="ended")


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path}/m.db"
    Store.open(url, create=True).close()
    return url


def slack(server: Hook, monkeypatch: pytest.MonkeyPatch) -> Receiver:
    monkeypatch.setenv("SLACK_WEBHOOK", server.url)
    return only("{slack_env: SLACK_WEBHOOK}")


async def told(url: str, receiver: Receiver, *judgements: News) -> list[str | None]:
    """Each judgement by a process of its own, as far as the store can tell."""
    found = []
    for one in judgements:
        with Store.open(url) as store:
            found += (await tell(store, one.run, [one], [receiver])).values()
    return found


async def test_each_state_is_told_once_also_after_a_restart(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hook() as server:
        judgements = HOLD, HOLD, GO, GO, ROLLBACK, HALT, HALT, HOLD, GO, ENDED, ENDED
        await told(url, slack(server, monkeypatch), *judgements)
    titles = [one["text"].split(":")[0] for one in server.bodies]
    assert titles == ["GO", "ROLLBACK", "ROLLBACK", "GO", "GO", "GO"], "HOLD is where a run begins: no news"


async def test_a_state_that_comes_back_has_another_id(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with hook() as server:
        monkeypatch.setenv("HOOK_URL", server.url)
        monkeypatch.setenv("HOOK_SECRET", "a" * 40)
        receiver = only("{webhook: {url_env: HOOK_URL, secret_env: HOOK_SECRET}}")
        await told(url, receiver, GO, HOLD, GO)
    assert [one["id"].split(".", 1)[1] for one in server.bodies] == [
        "verdict.1.GO",
        "verdict.2.HOLD",
        "verdict.3.GO",
    ]


async def test_who_could_not_be_told_is_told_later_and_holds_up_nobody(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hook(401, 200) as away, hook() as there:
        first = slack(away, monkeypatch)
        second = replace(slack(there, monkeypatch), name="other")
        with Store.open(url) as store:
            for _ in range(3):
                problems = await tell(store, GO.run, [GO], [first, second])
    assert problems == {"slack": None, "other": None}
    assert (len(away.got), len(there.got)) == (2, 1)


async def test_another_run_is_another_matter(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with hook() as server:
        await told(url, slack(server, monkeypatch), GO, replace(GO, run="another"))
    assert len(server.got) == 2


async def test_a_test_wakes_nobody_for_long() -> None:
    async with hook(202) as server:
        receiver = only(f"{{pagerduty_env: PAGER_KEY, pagerduty_url: '{server.url}'}}")
        assert await rehearse([receiver]) == {"pagerduty": None}
    opened, closed = server.bodies
    assert (opened["event_action"], closed["event_action"]) == ("trigger", "resolve")
    assert opened["dedup_key"] == closed["dedup_key"] and opened["payload"]["severity"] == "info"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGER_KEY", "routing-key-4711")


def test_a_judgement_gives_the_verdict_and_the_end_in_words(url: str) -> None:
    record(url, wrong())
    with Store.open(url) as store:
        document = report(store, store.run(), policy=None, now=0.0, embed=None)
    verdict, end = news_of(document)
    assert (verdict.state, verdict.urgent, end.subject, end.state) == ("ROLLBACK", True, "end", "ended")
    assert verdict.title == f"ROLLBACK: {document.run['candidate']}"
    assert end.title.startswith("Run ended with ROLLBACK: ")
    scored = document.ledger["scored"]
    assert f"{scored:,} scored pairs over" in verdict.text and verdict.body()["scored_pairs"] == scored
    assert verdict.body()["pairs"] == document.compared["pairs"]
    for part in (document.reason, document.code, document.advice, document.run["id"]):
        assert part in verdict.text
    asked = [shown for one in document.worst for shown in (one.prompt,) if shown]
    assert asked and not any(one in str(verdict.body()) for one in asked)


SAID = {
    "verdict": "GO",
    "code": "go",
    "reason": "r",
    "judged_at": "2026-12-02T09:00:00Z",
    "valid_until": "2026-12-09T09:00:00Z",
}
NOON = "2026-12-02T12:00:00Z"


def test_a_verdict_stands_until_it_is_old_or_expires() -> None:
    assert standing(SAID, age=5.0, every=300.0, now=NOON) == SAID | {"age_s": 5.0}
    for age, every, now, code in (
        (901.0, 300.0, NOON, "stale"),
        (5.0, 300.0, "2026-12-09T09:00:01Z", "expired"),
    ):
        held = standing(SAID, age=age, every=every, now=now)
        assert (held["verdict"], held["code"]) == ("HOLD", code)
    nothing = standing(None, age=None, every=300.0, now=NOON)
    assert (nothing["verdict"], nothing["code"], nothing["valid_until"]) == ("HOLD", "not_judged", None)
