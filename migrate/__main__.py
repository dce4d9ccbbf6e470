"""``python -m migrate``."""

from __future__ import annotations

from migrate.cli import main

main()
