"""Options that a server knows, and what to write instead of one that it does not. The lists are data in ``configs/``."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import yaml

from migrate.errors import ConfigError
from migrate.shipped import shipped

_NAME = re.compile(r"(?<![\w-])--([a-zA-Z0-9][\w-]*)")
_CHOICES = re.compile(r"\{[^}]*\}|\[[^\]]*\]")
_ALIKE = 0.75


def _plain(name: str) -> str:
    """Both servers' users write dashes and underscores for each other."""
    return name.partition(".")[0].replace("_", "-")


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """Option names of one server, without dashes, and for names it does not have what to write instead."""

    server: str
    """With the version, as a person reads it."""
    names: frozenset[str]
    instead: Mapping[str, str]

    def spelling(self, name: str) -> str | None:
        """The name as this server spells it; ``None``: it has no such option. ``a.b`` sets a field of ``a``."""
        head, dot, rest = name.partition(".")
        found = next((one for one in self.names if _plain(one) == _plain(head)), None)
        return None if found is None else found + dot + rest

    def unknown(self, names: Iterable[str]) -> list[str]:
        """Those that it does not have."""
        return [name for name in names if self.spelling(name) is None]

    def asked(self, text: str, server: str) -> Flags:
        """The same for what the server's own help says. A text that names no option changes nothing."""
        names = named_in(text)
        return replace(self, names=names, server=server) if names else self

    def refuse(self, names: Iterable[str]) -> None:
        """Raises ConfigError for the first name that it does not have, with what to write."""
        for name in self.unknown(names):
            raise ConfigError(f"launch.args.{name}: {self.server} has no --{name}{self._advice(name)}")

    def _advice(self, name: str) -> str:
        for gone, instead in self.instead.items():
            if _plain(gone) == _plain(name):
                return f"; {instead}" if instead.startswith("leave") else f"; write {instead}"
        close = difflib.get_close_matches(_plain(name), sorted(map(_plain, self.names)), 1, _ALIKE)
        near = f"; did you mean {self.spelling(close[0])}?" if close else "; see --help of the server"
        return f"{near} (a newer version's options go into launch.unchecked)"


def named_in(text: str) -> frozenset[str]:
    """Long options in a help text of argparse or click."""
    heads = (line.strip() for line in text.splitlines() if re.match(r" {2,8}-", line))
    return frozenset(
        name
        for head in heads
        for name in _NAME.findall(_CHOICES.sub("", re.split(r" {2,}", head)[0]))
        if name != "help"
    )


@functools.cache
def known(kind: str) -> Flags:
    """The list that is shipped for a kind of server."""
    data = yaml.safe_load(shipped(f"flags-{kind}.yaml"))
    program = "vllm serve" if kind == "vllm" else "trtllm-serve"
    return Flags(
        server=f"{program} {data['version']}",
        names=frozenset(data["names"].split()),
        instead=data["instead"],
    )
