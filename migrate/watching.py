"""One answer watched on its way through a transport of httpx or httpx2: when it was asked for, began, came and ended.

Nothing here changes what passes, or when. A body's stream has to be of a class that its package knows; ours is of both.
"""

from __future__ import annotations

import contextlib
import importlib
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any, Self

import httpx

from migrate.passing import Passing
from replay.exchange import Ending

_SENT = "send_request_headers.complete"
"""What both packages' transports tell a trace when a request's head is with the socket."""
_CONNECTING = ("ConnectError", "ConnectTimeout", "ProxyError")
_NOT_ASKED = ("PoolTimeout", "LocalProtocolError", "UnsupportedProtocol", "InvalidURL")
"""The request never left, which says nothing about a backend."""


def each(name: str) -> tuple[Any, ...]:
    """The classes of that name of httpx, and of httpx2 where it is installed."""
    modules = [httpx]
    with contextlib.suppress(ImportError):
        modules.append(importlib.import_module("httpx2"))
    return tuple(dict.fromkeys(getattr(module, name) for module in modules))


def both(name: str) -> Any:
    """A class that both packages take for their own of that name."""
    return type(name, each(name), {})


if TYPE_CHECKING:
    from httpx import AsyncByteStream, SyncByteStream
else:
    SyncByteStream, AsyncByteStream = both("SyncByteStream"), both("AsyncByteStream")


def trace(passing: Passing, theirs: Callable[..., Any] | None) -> Callable[..., Any]:
    """Notes when the head was sent. A trace that the caller had set hears everything as before."""

    def told(name: str, info: Any) -> Any:
        if name.endswith(_SENT):
            passing.sent_at = time.monotonic()
        return None if theirs is None else theirs(name, info)

    return told


def async_trace(passing: Passing, theirs: Callable[..., Any] | None) -> Callable[..., Any]:
    """``trace`` for the asynchronous transports, which await what they call."""

    async def told(name: str, info: Any) -> Any:
        if name.endswith(_SENT):
            passing.sent_at = time.monotonic()
        return None if theirs is None else await theirs(name, info)

    return told


def broken(passing: Passing, error: BaseException) -> None:
    """The exchange raised. What is no ``Exception`` is a cancellation or a reader that left: the client's doing."""
    if not isinstance(error, Exception):
        passing.end(Ending.CLIENT_LEFT)
        return
    names = [kind.__name__ for kind in type(error).__mro__]
    if any(name in _NOT_ASKED for name in names):
        ending = Ending.CLIENT_LEFT
    elif passing.head is None and any(name in _CONNECTING for name in names):
        ending = Ending.CONNECT_FAILED
    else:
        ending = Ending.TIMEOUT if "TimeoutException" in names else Ending.RESET
    passing.end(ending, _words(error))


def _words(error: Exception) -> str:
    with contextlib.suppress(Exception):  # an exception may fail to say what it is
        return f"{type(error).__name__}: {error}"[:300]
    return type(error).__name__


def watch(response: Any, passing: Passing, at: float, pieces: Callable[[Any, Passing], Any]) -> None:
    """The answer's head arrived ``at`` that time; its body will be watched as it is read, by ``Pieces`` or ``AsyncPieces``."""
    passing.head = (at, response.status_code, response.headers.raw)
    if response.is_stream_consumed:  # made in memory: nobody will read its stream
        for data in response.stream:
            passing.feed(data)
        passing.end(Ending.COMPLETE)
    else:
        response.stream = pieces(response.stream, passing)


class Pieces(SyncByteStream):
    """A body on its way to its reader."""

    def __init__(self, inner: Any, passing: Passing) -> None:
        self._inner, self._passing = inner, passing

    def __iter__(self) -> Iterator[bytes]:
        feed = self._passing.feed
        try:
            for data in self._inner:
                feed(data)
                yield data
        except BaseException as error:  # GeneratorExit among them
            broken(self._passing, error)
            raise
        self._passing.end(Ending.COMPLETE)

    def close(self) -> None:
        self._passing.end(Ending.CLIENT_LEFT)
        self._inner.close()

    def __del__(self) -> None:
        self._passing.end(Ending.CLIENT_LEFT)


class AsyncPieces(AsyncByteStream):
    """A body on its way to its asynchronous reader."""

    def __init__(self, inner: Any, passing: Passing) -> None:
        self._inner, self._passing = inner, passing

    def __aiter__(self) -> AsyncIterator[bytes]:
        return _Reading(self._inner.__aiter__(), self._passing)

    async def aclose(self) -> None:
        self._passing.end(Ending.CLIENT_LEFT)
        await self._inner.aclose()

    def __del__(self) -> None:
        self._passing.end(Ending.CLIENT_LEFT)


class _Reading:
    """The inner stream's iterator, watched. No generator of ours: closing and collecting one stays the inner one's affair."""

    def __init__(self, inner: AsyncIterator[bytes], passing: Passing) -> None:
        self._inner, self._passing = inner, passing

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        try:
            data = await self._inner.__anext__()
        except StopAsyncIteration:
            self._passing.end(Ending.COMPLETE)
            raise
        except BaseException as error:
            broken(self._passing, error)
            raise
        self._passing.feed(data)
        return data

    async def aclose(self) -> None:
        self._passing.end(Ending.CLIENT_LEFT)
        if isinstance(self._inner, AsyncGenerator):
            await self._inner.aclose()


AsyncGenerator.register(_Reading)  # httpx2 closes what it leaves early when it takes it for one
