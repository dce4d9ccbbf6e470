"""A document as terminal screen, HTML file, Markdown, JSON or JUnit XML. Each renderer is a function from document to text."""

from __future__ import annotations

from collections.abc import Callable

from reports.document import Document
from reports.render.html import render_html
from reports.render.json import render_json
from reports.render.junit import render_junit
from reports.render.markdown import render_markdown

RENDERERS: dict[str, Callable[[Document], str]] = {
    "html": render_html,
    "json": render_json,
    "markdown": render_markdown,
    "junit": render_junit,
}
"""By format; the terminal's renderer also takes a width and colours, see ``terminal``."""
