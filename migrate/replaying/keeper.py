"""``python -m migrate.replaying.keeper --fd N``: reads what the sender received, redacts it and writes it down.

Standard input holds one JSON object: ``{"store": URL, "run": …, "redact": {…}, "salt": "…"}``. ``N`` is this process's end of a
socket pair that carries ``migrate.replaying.link`` messages. It answers with what it has seen so far, several times a second.
It ends, with everything written, after ``Done`` or when the channel closes because the sender is gone.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import select
import signal
import socket
import sys
import time
from collections import Counter
from dataclasses import replace
from typing import Any

import orjson

from migrate.channel import Frames, MirrorStatus, encode
from migrate.config import Redact
from migrate.errors import MigrateError, StoreError
from migrate.mirror.mirror import tokens
from migrate.redact import Redactor
from migrate.replaying.link import Asked, Came, Counted, Done, Message, message
from migrate.store import Store, Writer
from replay.decoding import observe
from replay.exchange import Arm, Observation, Outcome
from replay.histogram import Histogram

_STATUS_S = 0.25
_FLUSH_S = 60.0
"""How long the store may take nothing before what is left is given up."""
_NICENESS = 10
"""Sending on time comes first. It has to stay in the sender's session: to the scheduler another one is another customer, who
gets as much of a processor whatever its niceness."""

log = logging.getLogger(__name__)


class Seen:
    """What has come back from one arm so far."""

    def __init__(self) -> None:
        self.ok = 0
        self.failed: Counter[str] = Counter()
        self.ttft, self.e2e, self.from_due = Histogram(), Histogram(), Histogram()
        self.spent = [0, 0, 0, 0]
        """Tokens that had been reserved for what has come, prompt and answer; then what they really were."""

    def count(self, seen: Observation, again_s: float) -> None:
        """One more answer, or failure. ``again_s``: what earlier attempts and the waits after them took."""
        if seen.outcome is not Outcome.OK:
            failure = None if seen.outcome.missing else seen.failure
            self.failed[failure.error_class.value if failure else seen.outcome.value] += 1
            return
        self.ok += 1
        timing = seen.timing
        if timing.ttft_s is not None:
            self.ttft.add(timing.ttft_s)
        if timing.e2e_s is not None:
            self.e2e.add(timing.e2e_s)
            self.from_due.add(timing.e2e_s + again_s + (timing.lag_s or 0.0))

    def values(self) -> dict[str, Any]:
        """For the panel: counts, and p50 and p99 in seconds; ``from_due`` counts from the moment it should have left."""
        found = {"ok": self.ok, "failed": dict(self.failed), "spent": self.spent}
        for name, times in (("ttft", self.ttft), ("e2e", self.e2e), ("from_due", self.from_due)):
            found[name] = [times.quantile(share) for share in (0.5, 0.99)]
        return found


class Keeper:
    """Takes messages and stores what they hold. ``take`` waits while the store is behind; that holds up nobody's sending."""

    def __init__(self, redactor: Redactor, writer: Writer) -> None:
        self._redactor, self._writer = redactor, writer
        self._seen: dict[Arm, Seen] = {}
        self._unread = 0

    def take(self, heard: Message) -> None:
        """Raises StoreError when the store takes no more."""
        if isinstance(heard, Asked):
            self._writer.put(self._redactor.request(heard.request)[0])
        elif isinstance(heard, Came):
            self._came(heard)
        elif isinstance(heard, Counted):
            self._writer.counters(heard.counters)

    def values(self) -> dict[str, Any]:
        """What has been seen so far."""
        return {
            "arms": {arm.value: seen.values() for arm, seen in self._seen.items()},
            "unread": self._unread,
            "store": self._writer.status(),
        }

    def _came(self, heard: Came) -> None:
        arm = self._seen.setdefault(heard.arm, Seen())
        try:
            seen = observe(
                heard.recording,
                request_id=heard.request,
                arm=heard.arm,
                at=heard.at,
                path=heard.path,
                earlier=heard.earlier,
            )
            if heard.lag_s is not None:
                seen = replace(seen, timing=replace(seen.timing, lag_s=heard.lag_s))
            kept = self._redactor.observation(seen)
        except Exception:
            log.exception("an answer could not be read; it counts as not kept")
            self._unread += 1
            seen = kept = Observation(
                request_id=heard.request,
                arm=heard.arm,
                at=heard.at,
                outcome=Outcome.MIRROR_DROPPED,
                reason="not_read",
            )
        self._writer.put(kept)
        arm.count(seen, heard.again_s)
        spent = (*heard.reserved, *tokens(seen, heard.asked))
        arm.spent = [before + now for before, now in zip(arm.spent, spent, strict=True)]


def main() -> int:
    """Keeps until it is told that all is done. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="migrate.replaying.keeper")
    parser.add_argument("--fd", type=int, required=True)
    fd = parser.parse_args().fd
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(
            number, signal.SIG_IGN
        )  # the sender says when to stop, and a closed channel says it too
    with contextlib.suppress(OSError):
        os.nice(_NICENESS)
    start = orjson.loads(sys.stdin.buffer.read())
    try:
        _run(socket.socket(fileno=fd), start)
    except MigrateError as error:
        print(f"migrate: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def _run(sock: socket.socket, start: dict[str, Any]) -> None:
    with Store.open(start["store"]) as store:
        writer = Writer(store, start["run"])
        redactor = Redactor(Redact.model_validate(start["redact"]), bytes.fromhex(start["salt"]))
        keeper = Keeper(redactor, writer)
        done = False
        try:
            done = _serve(sock, keeper)
        finally:
            _flush(sock, keeper, writer)
            flushed = writer.close(_FLUSH_S)
            if not done:
                store.end_run(start["run"], at=time.time(), status="cut")
        if not flushed:
            raise StoreError(f"the store took no more: {writer.status()['error']}")
        _tell(sock, keeper)


def _serve(sock: socket.socket, keeper: Keeper) -> bool:
    """Takes messages until all is done (true) or the sender is gone."""
    frames = Frames(message)
    told = 0.0
    while True:
        if time.monotonic() - told >= _STATUS_S:
            told = time.monotonic()
            _tell(sock, keeper)
        if not select.select([sock], [], [], _STATUS_S)[0]:
            continue
        try:
            data = sock.recv(2**20)
        except ConnectionError:
            return False
        if not data:
            return False
        for heard in frames.feed(data):
            if isinstance(heard, Done):
                return True
            keeper.take(heard)


def _flush(sock: socket.socket, keeper: Keeper, writer: Writer) -> None:
    """Waits while the store takes what is left, however long that is on a busy machine, and says that it goes on."""
    written, since = -1, time.monotonic()
    while (status := writer.status())["queued"] and time.monotonic() - since < _FLUSH_S:
        if status["written"] > written:
            written, since = status["written"], time.monotonic()
        _tell(sock, keeper)
        time.sleep(_STATUS_S)


def _tell(sock: socket.socket, keeper: Keeper) -> None:
    with contextlib.suppress(OSError):  # the sender is gone; the next read says so
        sock.sendall(encode(MirrorStatus(values=keeper.values())))


if __name__ == "__main__":
    sys.exit(main())
