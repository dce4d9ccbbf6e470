"""Plays a mirror process over its real channel: ``python -m tests.migrate.standin FD WHAT``.

Says it is ready, then does as told: ``serve`` counts what it gets in its status and stops when told to; ``die`` ends
with code 7 at the first message of its first life; ``deaf`` never reads again; ``refuse`` does not start.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time

from migrate.channel import Control, Counted, Frames, Message, MirrorStatus, encode, message


def main(fd: int, what: str) -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    start = json.load(sys.stdin)
    if what == "refuse":
        print("migrate: store sqlite:///x.db is of a newer version; update llm-migrate", file=sys.stderr)
        return 2
    channel = socket.socket(fileno=fd)
    seen: dict[str, object] = {
        "messages": 0,
        "mirroring": True,
        "counters": {},
        "nice": os.nice(0),
        "start": start["run"],
    }
    channel.sendall(encode(MirrorStatus(values={"ready": True, "run": start["run"] or "run-1", **seen})))
    if what == "deaf":
        time.sleep(60)
    frames = Frames(message)
    while data := channel.recv(65536):
        for heard in frames.feed(data):
            if what == "die" and start["run"] is None:
                print("something went wrong", file=sys.stderr)
                return 7
            note(heard, seen)
            channel.sendall(encode(MirrorStatus(values={"ready": True, "run": "run-1", **seen})))
            if isinstance(heard, Control) and heard.stop:
                print(f"stopped after {seen['messages']} messages", file=sys.stderr)
                return 0
    return 0


def note(message: Message, seen: dict[str, object]) -> None:
    seen["messages"] = int(str(seen["messages"])) + 1
    if isinstance(message, Control):
        seen["mirroring"] = message.mirroring
    if isinstance(message, Counted):
        seen["counters"] = message.counters


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2]))
