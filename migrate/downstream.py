"""The clients' side of the gateway: aiohttp's server protocol, with what it leaves out."""

from __future__ import annotations

import logging
from typing import Any

from aiohttp import web
from aiohttp.http import RawRequestMessage
from aiohttp.web_protocol import RequestHandler

_quiet = logging.getLogger("migrate.downstream")
_quiet.addHandler(logging.NullHandler())
_quiet.propagate = False
"""aiohttp writes a traceback for every malformed request: anybody could fill a log with them."""


class Downstream(RequestHandler):
    """One client's connection."""

    def data_received(self, data: bytes) -> None:
        """Also ends a body in which the parser found an error, so that its reader never waits for nothing."""
        super().data_received(data)
        if not self._messages or isinstance(self._messages[-1][0], RawRequestMessage):
            return
        request = self._current_request
        if request is not None and not request.content.is_eof():
            request.content.set_exception(web.RequestPayloadError("it is not framed as its head says"))

    @property
    def idle(self) -> bool:
        """No request is in hand or waits."""
        return self._current_request is None and not self._messages


class Server(web.Server):
    """The protocol factory to listen with."""

    def __init__(self, handler: Any, **options: Any) -> None:
        super().__init__(handler, logger=_quiet, **options)

    def __call__(self) -> Downstream:
        return Downstream(self, loop=self._loop, **self._kwargs)

    def close_idle(self) -> None:
        """Closes connections that nobody uses. Those in use end with their answer: a body on its way still arrives."""
        for connection in self.connections:
            if isinstance(connection, Downstream) and connection.idle:
                connection.close()
