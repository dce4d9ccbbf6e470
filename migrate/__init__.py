"""Operate: command line, configuration, gateway, mirror and store. The only public door of the toolkit."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from migrate.notebook import Frames, OpenedRun, frames, open_run
    from migrate.recording import RecordingTransport, record, stop_recording

__all__ = [
    "Frames",
    "OpenedRun",
    "RecordingTransport",
    "__version__",
    "frames",
    "open_run",
    "record",
    "stop_recording",
]

__version__ = "0.1.0"

_HOMES = {
    "Frames": "notebook",
    "OpenedRun": "notebook",
    "frames": "notebook",
    "open_run": "notebook",
    "RecordingTransport": "recording",
    "record": "recording",
    "stop_recording": "recording",
}


def __getattr__(name: str) -> Any:
    """What records or reads is imported when it is first asked for: the command line does without it."""
    if name in _HOMES:
        return getattr(import_module(f"migrate.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'migrate' has no attribute {name!r}")
