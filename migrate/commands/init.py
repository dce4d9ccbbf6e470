"""``migrate init``: a commented configuration to start from."""

from __future__ import annotations

import sys
from importlib.resources import files
from pathlib import Path
from string import Template

import click

from migrate.config import parse
from migrate.errors import ConfigError

_KINDS = click.Choice(["vllm", "tensorrt-llm", "relay"])


@click.command(
    epilog="\b\nExamples:\n  migrate init\n  migrate init --baseline http://10.0.0.5:8000 --candidate http://10.0.0.9:8000"
)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), default=Path("migrate.yaml"))
@click.option("--baseline", metavar="URL", help="The backend that serves production.")
@click.option("--candidate", metavar="URL", help="The backend under evaluation.")
@click.option("--baseline-kind", type=_KINDS, default="vllm", show_default=True)
@click.option("--candidate-kind", type=_KINDS, default="tensorrt-llm", show_default=True)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
def init(
    file: Path,
    baseline: str | None,
    candidate: str | None,
    baseline_kind: str,
    candidate_kind: str,
    force: bool,
) -> None:
    """Write a commented configuration to FILE (default migrate.yaml).

    At a terminal it asks for the two addresses that were not given.
    """
    if file.exists() and not force:
        raise ConfigError(f"{file} exists; give another name, or --force to overwrite it")
    text = render(
        baseline_url=baseline or _ask("Baseline (serves production now)", "http://127.0.0.1:8000"),
        candidate_url=candidate or _ask("Candidate (under evaluation)", "http://127.0.0.1:9000"),
        baseline_kind=baseline_kind,
        candidate_kind=candidate_kind,
    )
    parse(text, name=str(file))
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}") from None
    click.echo(f"wrote {file}; next: migrate check --config {file}", err=True)


def render(**values: str) -> str:
    """The template with its placeholders filled in."""
    template = files("migrate").joinpath("templates/migrate.yaml").read_text(encoding="utf-8")
    return Template(template).substitute(values)


def _ask(question: str, default: str) -> str:
    if not sys.stdin.isatty():
        return default
    answer: str = click.prompt(question, default=default, err=True)
    return answer
