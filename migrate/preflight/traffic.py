"""What captured requests use of a backend: how many want tools, a schema, and so on. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from replay.decoding import parse_object
from replay.exchange import JSON

_BYTES_A_TOKEN = 4
"""Of prompts in JSON; no language that is common takes fewer, so that a prompt is never called longer than it is."""


FIELD = "field "
"""Before a request's field, the name of the check that asks with it."""
_NAMES = """top_k min_p typical_p top_a repetition_penalty frequency_penalty presence_penalty length_penalty
no_repeat_ngram_size skip_special_tokens include_stop_str_in_output spaces_between_special_tokens add_generation_prompt
add_special_tokens echo chat_template_kwargs enable_thinking include_reasoning reasoning_effort verbosity return_token_ids"""
_SAMPLING = frozenset(_NAMES.split())
"""Fields that change how an answer is drawn or shown and nothing else: a check may send them. Others may name a person, jump
a queue, multiply the work, or need a second field."""
_MOST_FIELDS = 8
_WORD = re.compile(r"[a-z_-]{1,12}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Uses:
    """Counts over captured requests."""

    requests: int
    """Those that were looked at."""
    features: Mapping[str, int]
    """How many use it, by check."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """The most used of the fields that not every backend takes, each with a value from a request that is no text of anybody's."""
    prompts: tuple[int, ...] = ()
    """Tokens of each prompt, at least about."""

    def beyond(self, context: int) -> int:
        """Requests whose prompt alone does not fit into ``context`` tokens."""
        return sum(tokens > context for tokens in self.prompts)


def uses(bodies: Iterable[bytes]) -> Uses:
    """The uses in request bodies; what is no JSON object uses nothing."""
    features: Counter[str] = Counter()
    values: dict[str, Any] = {}
    prompts = []
    for body in bodies:
        asked = parse_object(body) or {}
        features.update(check for check, wants in _WANTS.items() if wants(asked))
        if "messages" in asked:
            special = {name: value for name, value in asked.items() if _worth_asking(name, value)}
            features.update(FIELD + name for name in special)
            values |= special
        prompts.append(_prompt(body, asked))
    most = sorted(values, key=lambda name: -features[FIELD + name])[:_MOST_FIELDS]
    fields = {name: values[name] for name in most}
    return Uses(requests=len(prompts), features=features, fields=fields, prompts=tuple(prompts))


def basis(traffic: Uses | None, *, most: int) -> str:
    """For which requests the features were checked, in a sentence. ``None``: none were looked for; ``most``: no more are."""
    if traffic is None:
        return "Features are checked for no captured request: a check does not wait for a store that is on no disk here."
    if not traffic.requests:
        return (
            "Features are checked for no captured request: the store holds none. With some, by migrate import FILE or migrate "
            "capture, a check says what they need and the candidate lacks."
        )
    if traffic.requests == 1:
        return "Features are checked for what 1 captured request uses."
    first = "the first " if traffic.requests >= most else ""
    return f"Features are checked for what {first}{traffic.requests:,} captured requests use."


def _worth_asking(name: str, value: Any) -> bool:
    return name in _SAMPLING and _harmless(value)


def _harmless(value: Any) -> bool:
    """Numbers, switches and short words, also in an object; a text may be somebody's, and stays here."""
    if isinstance(value, dict):
        return bool(value) and all(
            _WORD.fullmatch(name) and not isinstance(inner, dict) and _harmless(inner)
            for name, inner in value.items()
        )
    return isinstance(value, int | float) or (isinstance(value, str) and _WORD.fullmatch(value) is not None)


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
