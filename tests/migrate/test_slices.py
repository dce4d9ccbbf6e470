"""From real servers to a named slice: one language is broken at the candidate, and the report says which."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from migrate.report import report
from migrate.store import Store
from replay.simulator.server import serving
from replay.simulator.settings import Faults, Settings
from reports.render.terminal import render_terminal
from tests.migrate.test_replay import captured, migrate, question, two
from tests.replay.servers import Act

PLACES = ("Hull", "Bergen", "Porto", "Leith", "Cork", "Nantes")
ENGLISH = "How many boats are in the harbour of {place} on the {n}. day of the year?"
GERMAN = "Wie viele Boote sind im Hafen von {place} und was kostet es am {n}. Tag?"
POLICY = "policy: {minimum_span: 0s, minimum_pairs: 100, warmup: 0s, rehearsal: true}\n"


def passing(url: str, german: str) -> Act:
    """Passes each request on: German questions to one address, all others to another."""

    async def act(request: bytes, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address = german if b"Wie viele" in request else url
        host, _, port = address.removeprefix("http://").partition(":")
        reader, onward = await asyncio.open_connection(host, int(port))
        head, _, body = request.partition(b"\r\n\r\n")
        onward.write(head + b"\r\nConnection: close\r\n\r\n" + body)
        writer.write(await reader.read())
        onward.close()
        writer.close()

    return act


@pytest.mark.parametrize(
    ("faults", "rule", "words"),
    [
        (Faults(error_share=0.5), "errors", "more errors"),
        (Faults(wrong_share=1.0), "disagreement", "more different answers than the noise floor"),
    ],
)
async def test_the_language_that_broke_is_named(
    tmp_path: Path, faults: Faults, rule: str, words: str
) -> None:
    async with (
        serving(Settings(seed=3)) as sound,
        serving(Settings(seed=3, faults=faults)) as broken,
        two(passing(sound, sound), passing(sound, broken), tmp_path, POLICY),
    ):
        asked = [(GERMAN if n % 4 == 0 else ENGLISH).format(place=PLACES[n % 6], n=n) for n in range(320)]
        await captured(tmp_path, map(question, asked))
        code, err = await migrate(tmp_path, "replay", "--rate", 200, "--repeat", "100 %")
        assert code == 0, err
    with Store.open(f"sqlite:///{tmp_path}/migrate.db") as store:
        run = store.run()
        first, again = (report(store, run, policy=None, now=0.0, embed=None) for _ in range(2))
    assert first == again
    leading = first.slices.broke[0]
    assert (leading.dimension, leading.value, leading.rule) == ("language", "German", rule)
    assert leading.share == pytest.approx(0.25, abs=0.02) and leading.elsewhere == 0
    text = " ".join(render_terminal(first, width=160).split())
    assert "slices language German: " in text and words in text
