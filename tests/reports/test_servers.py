"""The servers' own view in a report: beside the client's numbers, absent where nothing was stated."""

from __future__ import annotations

import json
from dataclasses import asdict

from replay.exchange import Arm
from replay.prometheus import Reading
from reports.document import Document
from reports.render.beside import beside
from reports.render.html import render_html
from reports.render.markdown import render_markdown
from reports.render.terminal import render_terminal
from tests.reports.builders import alike, from_items, item

BUSY = [
    Reading(at=0.0, running=1.0, waiting=0.0, kv_cache=0.1, preemptions=3.0),
    Reading(at=15.0, running=6.0, waiting=2.0, kv_cache=0.93, preemptions=4.0),
    Reading(at=30.0, running=8.0, waiting=0.0, kv_cache=0.5, preemptions=8.0),
    Reading(at=45.0, running=0.0, waiting=0.0, kv_cache=0.0, preemptions=8.0),
]
WORDS = "running 7.0, at most 8, waiting 1.0, at most 2, KV cache up to 93%, preempted 5"


def made(**readings: list[Reading]) -> Document:
    return from_items(
        [item(one) for one in alike(60)], readings={Arm(arm): seen for arm, seen in readings.items()}
    )


def lines(document: Document) -> tuple[str, ...]:
    return next((part.remarkable for part in beside(document) if part.name == "servers"), ())


def test_what_a_server_stated_is_in_every_format() -> None:
    document = made(candidate=BUSY)
    assert lines(document) == (f"candidate: {WORDS}",)
    for text in (render_terminal(document), render_markdown(document), render_html(document)):
        assert WORDS in " ".join(text.split())
    said = json.loads(json.dumps(asdict(document)))["servers"]
    assert said["candidate"]["preemptions"] == 5 and said["candidate"]["prefix_hit_share"] is None


def test_what_it_did_not_state_is_absent_and_never_0() -> None:
    document = made(baseline=[Reading(at=float(n), running=1.0) for n in range(4)])
    assert lines(document) == ("baseline: running 1.0, at most 1",)


def test_counters_of_a_server_that_was_started_again_say_nothing() -> None:
    again = [*BUSY, Reading(at=60.0, running=1.0, preemptions=0.0)]
    assert "preempted" not in lines(made(candidate=again))[0]


def test_nothing_is_said_of_a_run_without_readings_or_with_a_single_look() -> None:
    for document in (made(), made(candidate=BUSY[:1])):
        assert not lines(document) and not document.servers
