"""These tests need the extra ``embeddings``; without it they are no part of the run, and its header says so."""

from __future__ import annotations

from migrate.embedder import missing

_PROBLEM = missing()
collect_ignore_glob = ["test_*.py"] if _PROBLEM else []


def pytest_report_header() -> str | None:
    return f"tests/embeddings is not part of this run: {_PROBLEM}" if _PROBLEM else None
