"""Messages between the gateway process and the mirror process, and their frames.

Production and validation live in two processes, so that nothing the mirror does (decoding, redaction, a flooding
candidate, a full disk) can take time from a client's answer. The gateway never waits for the channel: what does not fit
into its buffer is dropped and counted. The mirror trusts the gateway and gets pickles. The gateway does not trust the mirror,
which reads what a candidate sends: all it takes from there is a JSON object.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import orjson

from replay.exchange import Arm, Recording, Request

_LENGTH = struct.Struct("!I")


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """Gateway to mirror: this request was sampled; its copy should leave now, to the arm that does not answer the client.

    ``request`` holds no credentials: the gateway removed them.
    """

    request: Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """Gateway to mirror: what an arm answered to an admitted request, at the client's side."""

    request_id: str
    at: float
    """Epoch seconds at which it was asked."""
    recording: Recording
    arm: Arm = Arm.BASELINE
    last: bool = True
    """``False``: the baseline is asked now, because the candidate failed."""


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


Message = Admitted | Answered | Counted | Control


def encode(message: Message | MirrorStatus) -> bytes:
    """One frame: a length of four bytes, then a status as JSON, or any other message pickled."""
    data = (
        orjson.dumps(message.values)
        if isinstance(message, MirrorStatus)
        else pickle.dumps(message, protocol=5)
    )
    return _LENGTH.pack(len(data)) + data


def status(frame: memoryview) -> MirrorStatus:
    """What the gateway reads. Raises ValueError on anything but a JSON object."""
    values = orjson.loads(frame)
    if not isinstance(values, dict):
        raise ValueError("a status is a JSON object")  # noqa: TRY004 - what came is wrong, not its type
    return MirrorStatus(values=values)


def message(frame: memoryview) -> Message:
    """What the mirror reads."""
    found: Message = pickle.loads(frame)
    return found


M = TypeVar("M")


class Frames(Generic[M]):
    """Cuts a byte stream into messages, however it is fragmented; ``read`` makes one of a frame."""

    __slots__ = ("_buffer", "_read")

    def __init__(self, read: Callable[[memoryview], M]) -> None:
        self._buffer = bytearray()
        self._read = read

    def feed(self, data: bytes) -> list[M]:
        """The messages completed by ``data``, in order."""
        self._buffer += data
        messages: list[M] = []
        at = 0
        while len(self._buffer) - at >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer, at)
            end = at + _LENGTH.size + length
            if len(self._buffer) < end:
                break
            with memoryview(self._buffer) as whole, whole[at + _LENGTH.size : end] as frame:
                messages.append(self._read(frame))
            at = end
        if at:
            del self._buffer[:at]
        return messages
