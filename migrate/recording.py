"""Capture without a gateway: a transport for httpx and httpx2, and so for the OpenAI SDK, that records model calls.

What the caller gets is what the inner transport gives, piece by piece, failures included. Whatever goes wrong in recording is
counted, said once on the logger ``migrate``, and never reaches the caller.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from migrate.capturing import Settings, capture_for, stop_recording
from migrate.config import load
from migrate.passing import Passing
from migrate.watching import AsyncPieces, Pieces, async_trace, both, broken, each, trace, watch
from replay.decoding import GENERATION_PATHS
from replay.exchange import Ending

__all__ = ["RecordingTransport", "record", "stop_recording"]

_DEFAULT_STORE = "sqlite:///migrate.db"

log = logging.getLogger("migrate")
C = TypeVar("C")


def record(client: C, store: str | None = None, *, config: str | os.PathLike[str] | None = None) -> C:
    """Records the model calls of an ``OpenAI`` or ``AsyncOpenAI`` client (or of an ``httpx`` client) and returns that client.

    Its transports are wrapped where they are, so that proxies, limits, time limits and all else stay as they were.
    ``store`` and ``config`` are those of ``RecordingTransport``. Raises TypeError for what is no such client, and ConfigError
    for a configuration that is wrong.
    """
    http: Any = getattr(client, "_client", client)
    if not hasattr(http, "_transport") or not hasattr(http, "_mounts"):
        raise TypeError(
            f"record() takes a client of the OpenAI SDK or of httpx, not a {type(client).__name__}"
        )

    def wrapped(transport: Any) -> Any:
        if transport is None or isinstance(transport, RecordingTransport):
            return transport
        return RecordingTransport(transport, store=store, config=config)

    http._mounts = {pattern: wrapped(transport) for pattern, transport in http._mounts.items()}  # noqa: SLF001
    http._transport = wrapped(http._transport)  # noqa: SLF001
    return client


if TYPE_CHECKING:
    import httpx
    import httpx2

    class _Transport(
        httpx.BaseTransport, httpx.AsyncBaseTransport, httpx2.BaseTransport, httpx2.AsyncBaseTransport
    ):
        def handle_request(self, request: Any) -> Any: ...
        async def handle_async_request(self, request: Any) -> Any: ...
else:

    class _Transport(both("BaseTransport"), both("AsyncBaseTransport")):
        pass


class RecordingTransport(_Transport):
    """Carries requests with ``inner`` and records the model calls among them: sync and async, for httpx and httpx2.

    ``inner``: a transport of the client's own package and kind; ``None`` is that package's ``HTTPTransport()`` or
    ``AsyncHTTPTransport()`` as it comes. A client that is given a transport applies neither its own ``verify``, ``limits``,
    ``proxy`` and ``http2`` nor the environment's proxies: give those to ``inner``, or use ``record``, which keeps them.

    ``store``: URL of the database; ``None`` is that of ``config``, else ``sqlite:///migrate.db``. ``config``: a configuration
    file that says which calls are recorded and what is redacted; with ``None`` all are. Raises ConfigError when that file is
    wrong. A store that cannot be used is said on the logger.
    """

    def __init__(
        self,
        inner: Any = None,
        *,
        store: str | None = None,
        config: str | os.PathLike[str] | None = None,
    ) -> None:
        self._inner = inner
        self._settings = _settings(store, config)
        self._paths = frozenset(self._settings.shadow.paths)
        self._endings = _endings(self._paths)

    def handle_request(self, request: Any) -> Any:
        """The inner transport's answer; its body is recorded while it is read."""
        inner, passing = self._carrier(request, "HTTPTransport"), self._begin(request)
        if passing is None:
            return inner.handle_request(request)
        asked = request.extensions
        request.extensions = {**asked, "trace": trace(passing, asked.get("trace"))}
        try:
            response = inner.handle_request(request)
        except BaseException as error:
            broken(passing, error)
            raise
        finally:
            request.extensions = asked
        return _answered(response, passing, Pieces)

    async def handle_async_request(self, request: Any) -> Any:
        """The inner transport's answer; its body is recorded while it is read."""
        inner, passing = self._carrier(request, "AsyncHTTPTransport"), self._begin(request)
        if passing is None:
            return await inner.handle_async_request(request)
        asked = request.extensions
        request.extensions = {**asked, "trace": async_trace(passing, asked.get("trace"))}
        try:
            response = await inner.handle_async_request(request)
        except BaseException as error:
            broken(passing, error)
            raise
        finally:
            request.extensions = asked
        return _answered(response, passing, AsyncPieces)

    def close(self) -> None:
        """Closes the inner transport. What was recorded is stored in its own time: see ``stop_recording``."""
        if self._inner is not None:
            self._inner.close()

    async def aclose(self) -> None:
        """Closes the inner transport, as ``close`` does."""
        if self._inner is not None:
            await self._inner.aclose()

    def __enter__(self) -> Self:
        if self._inner is not None:
            self._inner.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._inner is not None:
            self._inner.__exit__(*error)

    async def __aenter__(self) -> Self:
        if self._inner is not None:
            await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        if self._inner is not None:
            await self._inner.__aexit__(*error)

    def _carrier(self, request: Any, name: str) -> Any:
        """The inner transport; where none was given, the default one of the package that the request is of."""
        if self._inner is None:
            kind = next(kind for kind in type(request).__mro__ if kind.__name__ == "Request")
            self._inner = getattr(sys.modules[kind.__module__.partition(".")[0]], name)()
        return self._inner

    def _begin(self, request: Any) -> Passing | None:
        """``None`` when the request is no model call, or cannot be recorded."""
        try:
            if request.method != "POST":
                return None
            url = request.url
            before, target = _split(url.raw_path.decode("latin-1"), self._endings)
            if target.partition("?")[0] not in self._paths:
                return None
            backend = f"{url.scheme}://{url.netloc.decode('latin-1')}{before}"
            return capture_for(self._settings, backend).begin(target, request.headers.raw, _body(request))
        except Exception:  # noqa: BLE001 - whatever it is, it is ours
            _failed()
            return None


def _answered(response: Any, passing: Passing, pieces: type[Pieces] | type[AsyncPieces]) -> Any:
    at = time.monotonic()
    try:
        watch(response, passing, at, pieces)
    except Exception:  # noqa: BLE001 - whatever it is, it is ours
        passing.end(Ending.CLIENT_LEFT)
        _failed()
    return response


def _settings(store: str | None, config: str | os.PathLike[str] | None) -> Settings:
    loaded = None if config is None else load(Path(config))
    folder = None
    with contextlib.suppress(OSError):
        folder = str(Path.cwd())
    url = store or (loaded.store.url if loaded else _DEFAULT_STORE)
    return Settings(store=url, folder=folder, config=loaded)


def _endings(paths: frozenset[str]) -> tuple[tuple[str, str], ...]:
    """How the targets of model calls end, whatever base URL a client has, and the path that each stands for. The longest
    first: ``/chat/completions`` ends with ``/completions``, too."""
    known = sorted({*GENERATION_PATHS, *paths}, key=len, reverse=True)
    return tuple((path.removeprefix("/v1"), path) for path in known)


def _split(target: str, endings: tuple[tuple[str, str], ...]) -> tuple[str, str]:
    """What stands before the interface's own path, and that path with the query; both are empty when it is none."""
    path, mark, query = target.partition("?")
    for ending, whole in endings:
        if path.endswith(ending):
            return path.removesuffix(ending), whole + mark + query
    return "", ""


_IN_MEMORY = each("ByteStream")


def _body(request: Any) -> bytes | None:
    """The request's body; ``None`` when the application makes it piece by piece while it is sent."""
    if isinstance(request.stream, _IN_MEMORY):  # also of a redirected request, whose content nobody has read
        return b"".join(request.stream)
    try:
        body: bytes = request.content
    except Exception:  # noqa: BLE001 - RequestNotRead, of either package
        return None
    return body


_said: list[str] = []


def _failed() -> None:
    """A defect of ours: said once, with its traceback."""
    if not _said:
        _said.append("failed")
        with contextlib.suppress(Exception):
            log.exception("a model call could not be recorded; the application is not affected")
