"""The live page of the admin listener: how the gateway stands, and the report as the run was judged last.

It is three fixed files and the report, which another process writes: the gateway's own process only sends files.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files
from pathlib import Path

from aiohttp import web

_TEMPLATES = files("migrate") / "templates"
_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "frame-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
_HEADERS = {
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
_PAGE = _HEADERS | {"Content-Security-Policy": _POLICY}
_REPORT = _HEADERS | {"Content-Security-Policy": "frame-ancestors 'self'"}
"""The rest of the report's policy stands in the report itself."""


def routes(report: Callable[[], Path | None]) -> list[web.RouteDef]:
    """``/``, its style and script, and ``/report.html``. ``report``: told that somebody looks; the file, if there is one."""
    parts = {name: _part(f"live.{name}", kind, _PAGE) for name, kind in _TYPES.items()}

    async def latest(request: web.Request) -> web.StreamResponse:
        path = report()
        if path is None:
            return web.Response(status=404, text="the run was not judged yet\n", headers=_HEADERS)
        return web.FileResponse(path, headers=_REPORT)

    return [
        web.get("/", parts["html"]),
        web.get("/live.css", parts["css"]),
        web.get("/live.js", parts["js"]),
        web.get("/report.html", latest),
    ]


def _part(
    name: str, kind: str, headers: Mapping[str, str]
) -> Callable[[web.Request], Awaitable[web.Response]]:
    text = (_TEMPLATES / name).read_text(encoding="utf-8")

    async def handle(_: web.Request) -> web.Response:
        return web.Response(text=text, content_type=kind, charset="utf-8", headers=headers)

    return handle
