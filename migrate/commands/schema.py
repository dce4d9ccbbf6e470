"""``migrate schema``: the shape of what other commands write for programs."""

from __future__ import annotations

import difflib
from importlib.resources import files

import click

from migrate.commands.output import printed
from migrate.errors import ConfigError

_EPILOG = """\b
Examples:
  migrate schema
  migrate schema report > report.schema.json
\b
Exit codes: 0 done, 2 wrong use, 1 our own failure."""


@click.command(epilog=_EPILOG)
@click.argument("name", required=False)
def schema(name: str | None) -> None:
    """Print the JSON Schema of a document, such as report; without NAME, list the documents.

    Readers should pass over keys that they do not know: some are added without a new version.
    """
    known = _known()
    if name is None:
        printed("".join(f"{document}\n" for document in known))
        return
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        raise ConfigError(f"{name!r} is no document; {hint}")
    printed(known[name])


def _known() -> dict[str, str]:
    """The text of each schema by the name of its document."""
    folder = files("migrate") / "schemas"
    found = sorted(
        (file for file in folder.iterdir() if file.name.endswith(".json")), key=lambda file: file.name
    )
    return {file.name.rpartition("-")[0]: file.read_text("utf-8") for file in found}
