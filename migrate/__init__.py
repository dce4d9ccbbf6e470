"""Operate: command line, configuration, gateway, mirror and store. The only public door of the toolkit."""

from __future__ import annotations

__version__ = "0.1.0"
