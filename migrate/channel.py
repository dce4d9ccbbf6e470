"""Messages between the gateway process and the mirror process, and their frames.

Production and validation live in two processes, so that nothing the mirror does (decoding, redaction, a flooding
candidate, a full disk) can take time from a client's answer. The gateway never waits for the channel: what does not fit
into its buffer is dropped and counted. Both ends are ours and joined by a private socket pair, hence pickle.
"""

from __future__ import annotations

import pickle
import struct
from dataclasses import dataclass
from typing import Any

from replay.exchange import Recording, Request

_LENGTH = struct.Struct("!I")


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """Gateway to mirror: this request was sampled; its copy should leave now.

    ``request`` holds no credentials: the gateway removed them. ``wanted`` is the share of the hash space below which
    the request fell (0 to 1), from which the mirror also draws baseline repeats.
    """

    request: Request
    wanted: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """Gateway to mirror: what the baseline answered to an admitted request."""

    request_id: str
    at: float
    """Epoch seconds at which the baseline was asked."""
    recording: Recording


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """Gateway to mirror: the gateway's counters so far, for the store. Keys as in the ledger of a report."""

    counters: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """Gateway to mirror: ``mirroring`` off cancels copies in flight at once; ``stop`` flushes and ends the process."""

    mirroring: bool = True
    stop: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorStatus:
    """Mirror to gateway, about once a second: counters, breaker, queue, store state; shown by ``/status``."""

    values: dict[str, Any]


Message = Admitted | Answered | Counted | Control | MirrorStatus


def encode(message: Message) -> bytes:
    """One frame: a length of four bytes, then the pickled message."""
    data = pickle.dumps(message, protocol=5)
    return _LENGTH.pack(len(data)) + data


class Frames:
    """Cuts a byte stream into messages, however it is fragmented."""

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Message]:
        """The messages completed by ``data``, in order."""
        self._buffer += data
        messages: list[Message] = []
        at = 0
        while len(self._buffer) - at >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer, at)
            end = at + _LENGTH.size + length
            if len(self._buffer) < end:
                break
            messages.append(pickle.loads(memoryview(self._buffer)[at + _LENGTH.size : end]))
            at = end
        if at:
            del self._buffer[:at]
        return messages
