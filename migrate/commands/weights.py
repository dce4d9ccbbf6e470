"""``migrate weights``: the canary's share, for proxies that people have."""

from __future__ import annotations

import contextlib
import shlex
from pathlib import Path

import click

from migrate.commands.options import percent
from migrate.commands.output import printed
from migrate.commands.steering import of_a_canary, opened_by
from migrate.errors import ConfigError
from migrate.weights import writing
from migrate.weights.envoy import ENVOY
from migrate.weights.following import follow, share_of
from migrate.weights.gateway_api import GATEWAY_API
from migrate.weights.haproxy import HAPROXY
from migrate.weights.litellm import LITELLM
from migrate.weights.nginx import NGINX

_TARGETS = {
    "envoy": ENVOY,
    "nginx": NGINX,
    "haproxy": HAPROXY,
    "gateway-api": GATEWAY_API,
    "litellm": LITELLM,
}
_EPILOG = """\b
Examples:
  migrate weights --to nginx --setup
  migrate weights --to nginx --share 25 --dry-run split.conf
  migrate weights --to nginx --follow --then 'nginx -s reload' /etc/nginx/migrate-split.conf
\b
Exit codes: 0 written, 2 wrong use, 1 our own failure, also where --then fails, 130 Ctrl-C."""


@click.command(epilog=_EPILOG)
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--to", "name", required=True, type=click.Choice(list(_TARGETS)), help="Whose file it is.")
@click.option(
    "--share", callback=percent, metavar="PERCENT", help="Default: what the canary of the store says."
)
@click.option("--follow", "following", is_flag=True, help="Write again whenever the canary's share changes.")
@click.option("--then", default="", metavar="COMMAND", help="Run after a change, such as 'nginx -s reload'.")
@click.option("--dry-run", is_flag=True, help="Print what FILE would hold; change nothing.")
@click.option("--setup", is_flag=True, help="Print what the proxy's own configuration has to hold, once.")
@of_a_canary
def weights(
    file: Path | None,
    name: str,
    share: float | None,
    following: bool,
    then: str,
    dry_run: bool,
    setup: bool,
    path: Path | None,
    url: str | None,
) -> None:
    """Write the canary's share into the FILE by which a proxy moves traffic.

    For traffic that does not pass through migrate canary. FILE is replaced whole or not at all.
    """
    target = _TARGETS[name]
    if setup:
        printed(target.setup)
        return
    if file is None:
        raise ConfigError("say which FILE to write; migrate weights --to NAME --setup shows who reads it")
    if following and (share is not None or dry_run):
        raise ConfigError("--follow writes what the store says; leave out --share and --dry-run")
    there, command = file, _words(then)

    def write(wanted: float) -> None:
        writing.put(there, writing.content(target, wanted, there))
        writing.run(command)

    with contextlib.ExitStack() as stack:
        if share is None:
            store = stack.enter_context(opened_by(path, url))
            share = share_of(store)
        if dry_run:
            printed(writing.content(target, share, there))
        elif following:
            follow(store, write, lambda text: click.echo(f"migrate: {file}: {text}", err=True))
        else:
            write(share)
            click.echo(f"{file}: share {share:.2%}", err=True)


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise ConfigError(f"--then {command!r}: {error}") from None
