"""Operate: command line, configuration, gateway, mirror and store. The only public door of the toolkit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from migrate.recording import RecordingTransport, record, stop_recording

__all__ = ["RecordingTransport", "__version__", "record", "stop_recording"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """What records is imported when it is first asked for: the command line does without it."""
    if name in __all__:
        from migrate import recording

        return getattr(recording, name)
    raise AttributeError(f"module 'migrate' has no attribute {name!r}")
