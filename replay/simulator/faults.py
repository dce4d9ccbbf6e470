"""Which faults a request meets: a pure function of (prompt, fault seed, occurrence)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from replay.simulator import chance
from replay.simulator.settings import Faults


class Breakage(StrEnum):
    """What happens instead of an answer."""

    FLOOD = "flood"
    HANG = "hang"
    RESET_BEFORE = "reset_before"
    RESET_AMID = "reset_amid"
    RATE_LIMIT = "rate_limit"
    ERROR = "error"
    GARBAGE = "garbage"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The faults of one request; the defaults are a healthy answer."""

    breakage: Breakage | None = None
    delay: float = 0.0
    """Seconds added before the first byte."""
    stall: float = 0.0
    """Seconds of pause in the middle of the tokens."""
    at: float = 0.5
    """Share of the answer at which a stall, cut or reset happens."""
    truncate: bool = False
    wrong: bool = False
    noise: int | None = None
    """Which other wording of the right answer is given; ``None``: the deterministic one."""
    refuse: bool = False
    refuse_tools: bool = False
    break_tools: bool = False

    @property
    def plain(self) -> bool:
        """The words of the answer are the deterministic ones."""
        changed = self.truncate or self.wrong or self.refuse or self.refuse_tools or self.break_tools
        return not changed and self.noise is None


HEALTHY = Plan()


def plan(faults: Faults, *, key: int, seed: int, occurrence: int) -> Plan:
    """What happens to the request whose prompt hashes to ``key``, seen ``occurrence`` times before."""
    if faults == _NONE:
        return HEALTHY

    def drawn(name: str, share: float) -> bool:
        return share > 0 and chance.share(key, seed, occurrence, name) < share

    return Plan(
        breakage=_breakage(faults, drawn),
        delay=faults.extra_latency + (faults.slow_by if drawn("slow", faults.slow_share) else 0.0),
        stall=faults.stall if drawn("stall", faults.stall_share) else 0.0,
        at=chance.share(key, seed, occurrence, "at"),
        truncate=drawn("truncate", faults.truncate_share),
        wrong=drawn("wrong", faults.wrong_share),
        noise=occurrence + 1 if drawn("noise", faults.noise) else None,
        refuse=drawn("refuse", faults.refuse_share),
        refuse_tools=drawn("refuse_tools", faults.refuse_tools_share),
        break_tools=drawn("break_tools", faults.break_tools_share),
    )


def _breakage(faults: Faults, drawn: Callable[[str, float], bool]) -> Breakage | None:
    if faults.flood:
        return Breakage.FLOOD
    if drawn("hang", faults.hang_share):
        return Breakage.HANG
    if drawn("disconnect", faults.disconnect_share):
        return Breakage.RESET_BEFORE if drawn("disconnect early", 0.5) else Breakage.RESET_AMID
    if drawn("rate_limit", faults.rate_limit_share):
        return Breakage.RATE_LIMIT
    if drawn("error", faults.error_share):
        return Breakage.ERROR
    return Breakage.GARBAGE if drawn("garbage", faults.garbage_share) else None


_NONE = Faults()

_GARBAGE_BODIES = (
    b"<html><head><title>502</title></head><body>bad gateway</body></html>",
    b'{"id":"chatcmpl-1","choices":[{"index":0,"message":{"role":"assistant","content":"The gate',
    b"\xff\xfe\x00\x80garbage\x00\x01",
    b"",
)
_GARBAGE_STREAMS = (
    b'data: {"choices":[{"index":0,"delta":{"content":"The ga\n\ndata: ]}\n\n',
    b"data: : still working\n\ndata: \xff\xfe\x80\n\n",
    b"<html><body>please sign in</body></html>\n\n",
    b"event: \x00\x01\ndat a{\n",
)


def garbage(*, streamed: bool, at: float) -> bytes:
    """Bytes that are neither JSON nor a well-formed stream of events; ``at`` in [0, 1) chooses which."""
    options = _GARBAGE_STREAMS if streamed else _GARBAGE_BODIES
    return options[int(at * len(options))]
