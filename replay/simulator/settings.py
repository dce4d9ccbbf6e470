"""What a simulator is told to be: its dialect, its pace and the faults planted in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

DialectName = Literal["vllm", "tensorrt-llm", "openai"]
DIALECTS: tuple[DialectName, ...] = ("vllm", "tensorrt-llm", "openai")
Lack = Literal["chat-template", "tool-choice", "tool-parser", "schema", "streaming", "usage", "engine"]
LACKS: tuple[Lack, ...] = (
    "chat-template",
    "tool-choice",
    "tool-parser",
    "schema",
    "streaming",
    "usage",
    "engine",
)
"""Refused: chats; tools that the model may choose; JSON of a schema. Left as markup in the text: calls of tools. Ignored: the
wish for a stream, or for its usage. Dead: the engine, and health says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pacing:
    """Medians in seconds of two log-normal distributions, and the deviation of their logarithms."""

    ttft: float = 0.0
    ttft_spread: float = 0.2
    itl: float = 0.0
    itl_spread: float = 0.2

    @property
    def instant(self) -> bool:
        """Everything is answered at once."""
        return self.ttft == 0 and self.itl == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """Shares from 0 to 1 of the generation requests, durations in seconds; the defaults plant nothing.

    Each share is drawn on its own by a hash of (prompt, fault seed, how often the prompt was seen before): a
    run repeats whatever the order of arrival, and a larger share contains the requests of a smaller one.
    """

    error_share: float = 0.0
    error_status: int = 500
    rate_limit_share: float = 0.0
    retry_after: float = 1.0
    """Seconds in the Retry-After header of a 429."""
    extra_latency: float = 0.0
    """Added to each answer before its first token."""
    slow_share: float = 0.0
    slow_by: float = 2.0
    """Added before the first token of a slow answer."""
    stall_share: float = 0.0
    stall: float = 5.0
    """Pause in the middle of the tokens."""
    truncate_share: float = 0.0
    wrong_share: float = 0.0
    noise: float = 0.0
    """Share of answers worded differently from the deterministic one."""
    refuse_share: float = 0.0
    refuse_tools_share: float = 0.0
    break_tools_share: float = 0.0
    garbage_share: float = 0.0
    hang_share: float = 0.0
    disconnect_share: float = 0.0
    crash_after: int | None = None
    """The process exits when the request after this many arrives; ``None``: never."""
    cold: float = 0.0
    """Added before the very first answer."""
    starting: float = 0.0
    """Seconds after its start in which everything is answered 503."""
    flood: bool = False
    """Every answer is garbage without an end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything a simulator is told when it starts."""

    dialect: DialectName = "vllm"
    models: tuple[str, ...] = ()
    """Names it serves; empty: any name is accepted and ``/v1/models`` lists ``simulated``."""
    seed: int = 0
    """Of the answers: two simulators with one seed say the same."""
    fault_seed: int | None = None
    """Of faults and pace; ``None``: made from ``seed`` and the dialect."""
    tokens: int | None = None
    """Length of every free text answer; ``None``: drawn from the prompt, about 10 to 90."""
    context: int = 32_768
    """Tokens that prompt and answer may have together."""
    api_key: str | None = None
    """Required bearer token under ``/v1``; ``None``: open."""
    lacks: frozenset[Lack] = frozenset()
    """What it was started without, or has lost."""
    root: str = ""
    """Path before every route, such as ``/api``."""
    keep_alive: float = 5.0
    """Seconds after which an idle connection is closed, as both self-hosted servers do."""
    pacing: Pacing = field(default_factory=Pacing)
    faults: Faults = field(default_factory=Faults)
    log_requests: Path | None = None
    """Gets a JSON line for each generation request received, credentials included."""
    truth: Path | None = None
    """Gets a JSON line for each request with the monotonic time of every chunk written."""

    @property
    def served(self) -> tuple[str, ...]:
        """Names that ``/v1/models`` lists."""
        return self.models or ("simulated",)
