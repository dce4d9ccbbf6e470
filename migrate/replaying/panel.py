"""What a person sees while a replay goes on: a panel at a terminal, a line now and then in a log."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import click
from rich.console import Console
from rich.live import Live
from rich.table import Table

from migrate.replaying.sender import Sender
from replay.exchange import Arm
from reports.counting import some

_LINES_EVERY_S = 5.0
_LOOK_S = 0.5


@dataclass(slots=True)
class Shown:
    """What there is to show. ``arms``: as the keeper says it."""

    total: int
    sender: Sender
    named: tuple[Arm, ...]
    arms: Mapping[str, Any] = field(default_factory=dict)
    trouble: str = ""
    """Why the store takes nothing."""
    began: float = field(default_factory=time.monotonic)

    @property
    def sent(self) -> int:
        """Requests that have left for every arm."""
        return min((self.sender.sent[arm] for arm in self.named), default=0)

    @property
    def rate(self) -> float:
        """Requests a second so far."""
        return self.sent / max(time.monotonic() - self.began, 1e-9)


async def watch(shown: Shown) -> None:
    """Shows until it is cancelled."""
    console = Console(stderr=True)
    if not console.is_terminal:
        while True:
            await asyncio.sleep(_LINES_EVERY_S)
            click.echo(_line(shown), err=True)
    with Live(console=console, auto_refresh=False, transient=True) as live:
        while True:
            live.update(_panel(shown), refresh=True)
            await asyncio.sleep(_LOOK_S)


def summary(shown: Shown) -> list[str]:
    """What became of each arm, and how late we were: lines."""
    lines = []
    for arm in shown.named:
        seen = shown.arms.get(arm.value, {})
        sent = shown.sender.sent[arm]
        lines.append(
            f"{arm.value}: {sent:,} sent, {seen.get('ok', 0):,} ok, {_failed(seen) or 'none failed'}"
        )
        lines += [
            f"  {title} p50 {ms(p50)}, p99 {ms(p99)}"
            for title, name in (
                ("time to first token", "ttft"),
                ("end to end", "e2e"),
                ("end to end from its moment", "from_due"),
            )
            for p50, p99 in [seen.get(name, (None, None))]
            if p50 is not None
        ]
    return lines


def silent(shown: Shown) -> str:
    """Which arms answered nothing of what they were sent, and how they failed; empty when each answered something."""
    seen = {arm: shown.arms.get(arm.value, {}) for arm in shown.named}
    return "; ".join(
        f"the {arm.value} answered none of {some(shown.sender.sent[arm], 'request')}: {_failed(one)}"
        for arm, one in seen.items()
        if _failed(one) and not one.get("ok", 0)
    )


def ms(seconds: float | None) -> str:
    """Milliseconds for people; a dash where nothing was measured."""
    return "-" if seconds is None else f"{seconds * 1e3:,.1f} ms"


def _failed(seen: Mapping[str, Any]) -> str:
    failed = sorted(seen.get("failed", {}).items(), key=lambda one: -one[1])
    return ", ".join(f"{count:,} {name}" for name, count in failed[:4])


def _line(shown: Shown) -> str:
    took = time.monotonic() - shown.began
    failed = sum(sum(seen.get("failed", {}).values()) for seen in shown.arms.values())
    return (
        f"{took:.0f} s: {shown.sent:,} of {shown.total:,} sent, {shown.sender.in_flight:,} in flight, "
        f"{failed:,} failed, {shown.rate:.1f}/s{_trouble(shown)}"
    )


def _trouble(shown: Shown) -> str:
    return f"; {shown.trouble}" if shown.trouble else ""


def _panel(shown: Shown) -> Table:
    rest = f", {(shown.total - shown.sent) / shown.rate:,.0f} s left" if shown.sent else ""
    late = ms(shown.sender.lag.quantile(0.99))
    table = Table(
        title=f"{shown.sent:,} of {shown.total:,} sent, {shown.sender.in_flight:,} in flight, {shown.rate:.1f}/s{rest}",
        caption=f"left after their moment: p99 {late}{_trouble(shown)}",
    )
    for name in ("arm", "sent", "ok", "failed", "TTFT p50", "p99", "end to end p50", "p99"):
        table.add_column(name, justify="left" if name == "arm" else "right")
    for arm in shown.named:
        seen = shown.arms.get(arm.value, {})
        times = [*seen.get("ttft", (None, None)), *seen.get("e2e", (None, None))]
        sent, ok = shown.sender.sent[arm], seen.get("ok", 0)
        table.add_row(arm.value, f"{sent:,}", f"{ok:,}", _failed(seen) or "0", *map(ms, times))
    return table
