"""``migrate doctor``: is the installation whole, and what can it do here."""

from __future__ import annotations

import sys
from importlib import metadata, util
from pathlib import Path

import click
import orjson

from migrate import __version__

_EXTRAS = {
    "embeddings": (
        "sentence_transformers",
        "similarity of texts; without it, pairs that need it stay unscored",
    ),
    "openai": ("openai", "the SDK for the demo and the recording transport"),
    "postgres": ("psycopg", "a PostgreSQL store"),
    "pandas": ("pandas", "tables for notebooks"),
    "parquet": ("pyarrow", "Parquet files in migrate judge"),
}


@click.command()
@click.option(
    "--format", "form", type=click.Choice(["terminal", "json"]), default="terminal", show_default=True
)
def doctor(form: str) -> None:
    """Check the installation: versions, extras, and that our three packages are our own.

    Exits 1 when something is broken; a missing extra is stated, not an error.
    """
    checks = [
        _python(),
        *(_package(name) for name in ("migrate", "replay", "reports")),
        _sqlite(),
        *_extras(),
    ]
    if form == "json":
        click.echo(
            orjson.dumps({"version": __version__, "checks": checks}, option=orjson.OPT_INDENT_2).decode()
        )
    else:
        for check in checks:
            click.echo(f"{check['state']:<8} {check['name']:<12} {check['detail']}")
    if any(check["state"] == "BROKEN" for check in checks):
        raise click.exceptions.Exit(1)


def _check(name: str, state: str, detail: str) -> dict[str, str]:
    return {"name": name, "state": state, "detail": detail}


def _python() -> dict[str, str]:
    version = ".".join(map(str, sys.version_info[:3]))
    return _check("python", "OK" if sys.version_info >= (3, 11) else "BROKEN", version)


def _package(name: str) -> dict[str, str]:
    """The package names are generic: another distribution may have put its files over ours."""
    spec = util.find_spec(name)
    ours = Path(__file__).parents[2]
    where = Path(spec.origin).parents[1] if spec and spec.origin else None
    owners = [owner for owner in metadata.packages_distributions().get(name, []) if owner != "llm-migrate"]
    if where == ours and not owners:
        return _check(name, "OK", f"from {where}")
    if owners:
        fix = f"also installed by {', '.join(sorted(set(owners)))}; uninstall it, then reinstall llm-migrate"
        return _check(name, "BROKEN", fix)
    return _check(name, "BROKEN", f"found at {where}, not beside migrate at {ours}; reinstall llm-migrate")


def _sqlite() -> dict[str, str]:
    import sqlite3

    enough = sqlite3.sqlite_version_info >= (3, 24, 0)
    return _check(
        "sqlite", "OK" if enough else "BROKEN", f"{sqlite3.sqlite_version} (3.24 or newer is needed)"
    )


def _extras() -> list[dict[str, str]]:
    return [
        _check(
            name,
            "OK" if util.find_spec(module) else "missing",
            why if util.find_spec(module) else _hint(name, why),
        )
        for name, (module, why) in _EXTRAS.items()
    ]


def _hint(name: str, why: str) -> str:
    return f"{why}; pip install 'llm-migrate[{name}]'"
