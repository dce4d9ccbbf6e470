"""Times as a document has them. Pure."""

from __future__ import annotations

from datetime import UTC, datetime


def iso(at: float) -> str:
    """Epoch seconds as ISO 8601 in UTC, to the second."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
