"""``python -m migrate.notifying``: judges a run once and tells whoever does not know yet, in a process of its own.

Standard input holds one JSON object, ``{"config": {…}, "run": "…", "page": "…", "canary": {"who": "…"}}``, with the
configuration as ``Config.model_dump(mode="json", by_alias=True)`` gives it; ``page`` is the file that the report replaces, and
``canary`` (``null`` for any other run) names the gateway whose canary moves by the judgement. Standard output gets two lines
of JSON: ``{"verdict": …}`` (``news.facts_of``) when it is judged and the report is in its place, then ``{"told": {…}}``, by
receiver why it could not be told, or ``null``; with ``--silent`` nobody is told, and there is no such line. What goes wrong is
one line on standard error, and the error's exit code. It judges as ``migrate report`` does, by the policy of the run.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import orjson

from migrate.canary.evidence import evidence
from migrate.canary.section import CanarySection
from migrate.canary.shift import Evidence, Shift, decided
from migrate.config import Config
from migrate.errors import MigrateError
from migrate.notifying.judged import judged
from migrate.notifying.news import facts_of, news_of
from migrate.notifying.periodic import SILENT
from migrate.notifying.receivers import receivers
from migrate.notifying.telling import tell
from migrate.report import document_of
from migrate.store import Store, shifts
from replay.exchange import JSON
from reports.render.html import render_html

_PARENT = os.getppid()
"""The gateway."""


def main() -> int:
    """Returns the exit code."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the gateway says when to stop
    start = orjson.loads(sys.stdin.buffer.read())
    try:
        _run(
            Config.model_validate(start["config"]),
            start["run"],
            Path(start["page"]),
            who=(start.get("canary") or {}).get("who"),
            silent=SILENT in sys.argv[1:],
        )
    except MigrateError as error:
        print(f"migrate: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def _run(config: Config, name: str, page: Path, *, who: str | None, silent: bool) -> None:
    """``who``: the gateway of a canary; ``None`` for any other run."""
    with Store.open(config.store.url) as store:
        run = store.run(name)
        state = None if who is None else shifts.latest(store)
        found, notes = judged(store, config, run)
        if who is not None and state is not None and run.ended_at is None:
            _move(store, config.canary, state, evidence(found, run, state, config.canary.steps), who, run.id)
        document = document_of(store, run, found, notes)
        _put(page, render_html(document))
        _say({"verdict": facts_of(document)})
        if silent:
            return
        people = receivers(config.notify) if config.notify else ()
        _say({"told": asyncio.run(tell(store, name, news_of(document), people))})


def _move(store: Store, section: CanarySection, state: Shift, seen: Evidence, who: str, run: str) -> None:
    """What a judgement says of a canary goes into the store, where every gateway reads it.

    A gateway that has died since is not sent more traffic behind its back: it comes back at the share that it had.
    """

    def change(now: Shift) -> Shift | None:
        if os.getppid() != _PARENT:
            return None
        return decided(
            now,
            seen,
            section.steps,
            manual=section.manual,
            cool_down=section.cool_down,
            at=time.time(),
            who=who,
            run=run,
        )

    shifts.append(store, state.canary, change)


def _put(page: Path, text: str) -> None:
    """Whole at any moment: who reads it now reads the one before."""
    made = page.with_suffix(".new")
    try:
        made.write_text(text, encoding="utf-8")
        made.replace(page)
    except OSError as error:
        print(f"migrate: {page} cannot be written: {error.strerror}", file=sys.stderr)


def _say(value: JSON) -> None:
    sys.stdout.buffer.write(orjson.dumps(value) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main())
