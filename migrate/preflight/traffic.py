"""What captured requests use of a backend: how many want tools, a schema, and so on. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from replay.decoding import parse_object
from replay.exchange import JSON

_BYTES_A_TOKEN = 4
"""Of prompts in JSON; no language that is common takes fewer, so that a prompt is never called longer than it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Uses:
    """Counts over captured requests."""

    requests: int
    """Those that were looked at."""
    features: Mapping[str, int]
    """How many use it, by check."""
    prompts: tuple[int, ...] = ()
    """Tokens of each prompt, at least about."""

    def beyond(self, context: int) -> int:
        """Requests whose prompt alone does not fit into ``context`` tokens."""
        return sum(tokens > context for tokens in self.prompts)


def uses(bodies: Iterable[bytes]) -> Uses:
    """The uses in request bodies; what is no JSON object uses nothing."""
    features: Counter[str] = Counter()
    prompts = []
    for body in bodies:
        asked = parse_object(body) or {}
        features.update(check for check, wants in _WANTS.items() if wants(asked))
        prompts.append(_prompt(body, asked))
    return Uses(requests=len(prompts), features=features, prompts=tuple(prompts))


def _prompt(body: bytes, asked: JSON) -> int:
    """The whole body where it holds little else than a prompt; that is what makes a request long."""
    return len(body) // _BYTES_A_TOKEN if asked.keys() & {"messages", "prompt", "input"} else 0


def _schema(asked: JSON) -> bool:
    form = asked.get("response_format")
    return (isinstance(form, dict) and form.get("type") in ("json_schema", "json_object")) or bool(
        asked.get("structured_outputs")
    )


def _usage(asked: JSON) -> bool:
    options: Any = asked.get("stream_options")
    return isinstance(options, dict) and bool(options.get("include_usage"))


_WANTS: Mapping[str, Callable[[JSON], bool]] = {
    "stream": lambda asked: asked.get("stream") is True,
    "tools": lambda asked: bool(asked.get("tools")) and asked.get("tool_choice") != "none",
    "schema": _schema,
    "logprobs": lambda asked: bool(asked.get("logprobs")),
    "usage": _usage,
}
