"""The second listener: health, readiness, status, and the switch that stops mirroring at once.

State changes by POST only. Who may use it is said in ``access``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol

import orjson
from aiohttp import web

from migrate import live
from migrate.access import guarded
from migrate.metrics import CONTENT_TYPE, exposition

SCHEMA = "llm-migrate/status/1"
NOT_JUDGED: dict[str, Any] = {
    "verdict": "HOLD",
    "code": "not_judged",
    "reason": "this run is not judged while it goes on; add notify: to the configuration",
    "valid_until": None,
}
_DECIDES = {"GO": 200, "ROLLBACK": 409}
"""What ``/verdict`` answers; 503 for everything else, so that only a GO lets traffic move."""


class Operated(Protocol):
    """What the listener shows and switches."""

    async def ready(self) -> tuple[bool, dict[str, Any]]:
        """Whether clients may be sent here, and why not."""

    def status(self) -> dict[str, Any]:
        """Everything worth knowing, as a JSON object."""

    def looked(self) -> Path | None:
        """Somebody looks at the live page: the report as it was judged last, if it was."""

    def mirror(self, *, on: bool) -> None:
        """Starts or stops mirroring; both may be said twice."""


def application(operated: Operated, token: str | None = None) -> web.Application:
    """The routes: ``/healthz``, ``/readyz``, ``/status``, ``POST /mirroring/stop``, ``POST /mirroring/start``. ``token``:
    see ``access.refusal``."""

    async def healthz(request: web.Request) -> web.Response:
        return _json({"status": "ok"})

    async def readyz(request: web.Request) -> web.Response:
        ready, why = await operated.ready()
        return _json({"ready": ready, **why}, status=200 if ready else 503)

    async def status(request: web.Request) -> web.Response:
        return _json({"schema": SCHEMA, **operated.status()})

    def switch(*, on: bool) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handle(request: web.Request) -> web.Response:
            operated.mirror(on=on)
            return _json({"mirroring": on})

        return handle

    async def verdict(request: web.Request) -> web.Response:
        said = operated.status().get("verdict") or NOT_JUDGED
        return _json(said, status=_DECIDES.get(said["verdict"], 503))

    async def rollback(request: web.Request) -> web.Response:
        said = operated.status().get("verdict") or NOT_JUDGED
        return _json(said, status=200 if said["verdict"] == "ROLLBACK" else 503)

    async def metrics(request: web.Request) -> web.Response:
        return web.Response(body=exposition(operated.status()), headers={"Content-Type": CONTENT_TYPE})

    app = web.Application(middlewares=[guarded(token)])
    app.router.add_routes(live.routes(operated.looked))
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    app.router.add_get("/status", status)
    app.router.add_get("/metrics", metrics)
    for path, handler in (("/verdict", verdict), ("/verdict/rollback", rollback)):
        app.router.add_get(path, handler)
        app.router.add_post(path, handler)  # Flagger asks by POST; nothing changes
    app.router.add_post("/mirroring/stop", switch(on=False))
    app.router.add_post("/mirroring/start", switch(on=True))
    return app


def _json(value: dict[str, Any], *, status: int = 200) -> web.Response:
    body = orjson.dumps(value, option=orjson.OPT_INDENT_2) + b"\n"
    return web.Response(body=body, status=status, content_type="application/json")
