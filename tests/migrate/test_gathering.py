"""What was found out about a run is kept in its store: a next report says the same sooner, and never what is no longer true."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from migrate import gathering
from migrate.embedder import Embedder
from migrate.report import report
from migrate.store import Store, Writer
from replay.exchange import Exchange
from reports.document import Document
from reports.policy import Policy
from reports.render.html import render_html
from tests.migrate.test_report import record
from tests.migrate.test_report_again import mixed
from tests.reports.builders import exchange
from tests.reports.made import REHEARSAL, START


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/m.db"


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sheets of which a small run has several."""
    monkeypatch.setattr(gathering, "_PAIRS", 50)


def embedder(store: Store, *, name: str = "none-of-the-known") -> Embedder:
    """Vectors come from the cache alone: the model is never loaded."""

    def known(model: str, hashes: Sequence[str]) -> dict[str, bytes]:
        return {one: np.array([0.6, 0.8], dtype="<f4").tobytes() for one in hashes}

    return Embedder(name, read=known)


def told(url: str, *, embed: object = embedder, policy: Policy | None = None) -> Document:
    with Store.open(url) as store:
        run = store.run()
        return report(store, run, policy=policy, now=START + 4000, embed=embed and embed(store))  # type: ignore[operator]


def kept(url: str) -> list[tuple[int, str]]:
    with sqlite3.connect(url.removeprefix("sqlite:///")) as file:
        return file.execute("SELECT number, question FROM sheets ORDER BY number").fetchall()


def damage(url: str, statement: str) -> None:
    with sqlite3.connect(url.removeprefix("sqlite:///")) as file:
        file.execute(statement)


def test_a_next_report_is_the_same_without_reading_an_answer(url: str) -> None:
    record(url, mixed())
    first = told(url)
    assert [number for number, _ in kept(url)] == list(range(9))
    shown = {one.id for one in (*first.worst, *first.sample)}
    damage(
        url,
        "DELETE FROM bodies WHERE hash NOT IN (SELECT answer FROM observations WHERE request IN "
        f"({','.join(map(repr, sorted(shown)))})) AND hash NOT IN (SELECT body FROM requests)",
    )
    assert told(url) == first
    assert told(url).worst == first.worst


def test_the_file_is_the_same_byte_for_byte(url: str) -> None:
    record(url, mixed())
    assert render_html(told(url)) == render_html(told(url))


def test_it_says_what_it_said_without_what_is_kept(url: str) -> None:
    record(url, mixed())
    first = told(url)
    damage(url, "DELETE FROM sheets")
    assert told(url) == first


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM sheets WHERE number = 4",
        "DELETE FROM sheets WHERE number > 2",
        "UPDATE sheets SET data = x'00ff' WHERE number = 3",
        "UPDATE sheets SET data = (SELECT data FROM bodies LIMIT 1) WHERE number = 0",
    ],
)
def test_what_is_missing_or_damaged_is_found_out_again(url: str, statement: str) -> None:
    record(url, mixed())
    first, whole = told(url), kept(url)
    damage(url, statement)
    assert told(url) == first
    assert kept(url) == whole


@pytest.mark.parametrize(
    "changed",
    [
        {"policy": REHEARSAL.model_copy(update={"disagreement": REHEARSAL.disagreement.model_copy(update={"similarity": 0.9})})},
        {"embed": lambda store: embedder(store, name="another")},
    ],
    ids=["similarity", "model"],
)  # fmt: skip
def test_another_question_is_answered_anew(url: str, changed: dict[str, object]) -> None:
    record(url, mixed())
    told(url)
    before = {question for _, question in kept(url)}
    told(url, **changed)  # type: ignore[arg-type]
    after = {question for _, question in kept(url)}
    assert len(before) == len(after) == 1 and before != after


def test_margins_are_no_part_of_the_question(url: str) -> None:
    record(url, mixed())
    told(url)
    before = kept(url)
    told(url, policy=REHEARSAL.model_copy(update={"minimum_pairs": 7}))
    assert kept(url) == before


def test_of_a_run_that_goes_on_whole_pages_are_kept(url: str) -> None:
    run = record(url, mixed()[:120], ended=False)
    first = told(url)
    assert [number for number, _ in kept(url)] == [0, 1]
    assert told(url) == first
    more(url, run, mixed()[120:])
    whole = told(url)
    assert [number for number, _ in kept(url)] == list(range(9))
    damage(url, "DELETE FROM sheets")
    assert told(url) == whole


def test_what_may_still_change_is_not_kept(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "_SETTLED_S", 1e10)
    record(url, mixed(), ended=False)
    told(url)
    assert kept(url) == []


def test_an_answer_that_comes_late_is_seen(url: str) -> None:
    """Its page and those behind it are looked at again, those before it are not."""
    every = mixed()[:150]
    late = every[70]
    assert late.candidate is not None
    run = record(url, [*every[:70], replace(late, candidate=None), *every[71:]], ended=False)
    assert told(url).ledger["not_sent"] == 1
    damage(url, "CREATE TABLE before AS SELECT * FROM sheets")
    with Store.open(url) as store:
        writer = Writer(store, run)
        assert writer.offer(late.candidate) and writer.close(20)
    assert told(url).ledger["not_sent"] == 0
    with sqlite3.connect(url.removeprefix("sqlite:///")) as file:
        same = "SELECT s.number FROM sheets s JOIN before b ON b.number = s.number AND b.data = s.data ORDER BY 1"
        assert file.execute(same).fetchall() == [(0,), (2,)]


def test_nothing_is_kept_of_what_was_compared_without_a_model(url: str) -> None:
    record(url, mixed())
    told(url, embed=None)
    assert kept(url) == []


def test_nothing_is_kept_where_the_model_failed(url: str) -> None:
    text = "It opens at nine and shuts at five, and the boats {} in between all day."
    record(url, [exchange(n, text.format("sail"), text.format("go out")) for n in range(30)])
    told(url, embed=lambda _: Embedder("/nowhere"))
    assert kept(url) == []


def test_a_run_that_was_taken_up_again_is_looked_at_anew(url: str) -> None:
    run = record(url, mixed()[:100])
    assert told(url).compared["pairs"] == 100
    with Store.open(url) as store:
        store.reopen_run(run)
    more(url, run, mixed()[100:130])
    assert told(url).compared["pairs"] == 130


def test_what_is_added_to_a_run_that_has_ended_is_seen(url: str) -> None:
    """As an import does, also with requests from before those that it has."""
    every = mixed()[:130]
    run = record(url, every[30:])
    assert told(url).compared["pairs"] == 100
    more(url, run, every[:30])
    assert told(url).compared["pairs"] == 130


def test_a_sheet_of_other_content_is_found_out_again(url: str) -> None:
    """It is whole, and not what was kept: its digest says so."""
    record(url, mixed())
    first, whole = told(url), kept(url)
    with Store.open(url) as store:
        run, question = store.run().id, whole[0][1]
        (page, *_) = store.sheets(run, question)
        store.put_sheet(run, question, 0, page[:40] + b"9" + page[41:])
    assert told(url) == first and kept(url) == whole


def more(url: str, run: str, exchanges: Sequence[Exchange]) -> None:
    """What a resumed run records, until it ends again."""

    with Store.open(url) as store:
        writer = Writer(store, run)
        for one in exchanges:
            for seen in (one.request, one.baseline, one.candidate, one.repeat):
                assert seen is None or writer.offer(seen)
        assert writer.close(20)
        store.end_run(run, at=START + 3700)


def test_what_quotes_answers_is_forgotten_with_them(url: str) -> None:
    record(url, mixed())
    told(url)
    with Store.open(url) as store:
        store.forget_bodies(before=START + 1e6)
    assert kept(url) == []


def test_no_text_of_an_answer_is_kept_but_what_a_cause_quotes(url: str) -> None:
    """What a sheet holds of an equal answer is numbers."""
    record(
        url,
        [
            exchange(n, "The harbourmaster is called Ottokar.", "The harbourmaster is called Ottokar.")
            for n in range(9)
        ],
    )
    told(url)
    with Store.open(url) as store:
        (_, question), *_ = kept(url)
        held = b"".join(store.sheets(store.run().id, question))
    assert held and b"Ottokar" not in held
    assert json.loads(held[32:].partition(b"\n")[0])["words"]["causes"] == []
