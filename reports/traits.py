"""What one answer is like by itself: length, repetition, truncation, refusal, tool calls, JSON, language. Pure."""

from __future__ import annotations

from hashlib import blake2b

from replay.exchange import Choice
from reports.compare.asked import Asked
from reports.compare.finish import ALIASES
from reports.compare.jsonvalue import parse, violations
from reports.compare.refusal import refuses
from reports.compare.text import said
from reports.compare.wire import degenerate
from reports.judgement import Traits
from reports.script import spoken


def traits_of(asked: Asked, choices: tuple[Choice, ...]) -> Traits | None:
    """The traits of all choices of one answer together; ``None`` of none."""
    if not choices:
        return None
    texts = [said(choice) for choice in choices]
    calls = any(choice.tool_calls for choice in choices)
    reasons = {(choice.finish_reason or "").strip().lower() for choice in choices}
    return Traits(
        characters=sum(map(len, texts)),
        repetitive=any(map(degenerate, choices)),
        truncated="length" in {ALIASES.get(reason, reason) for reason in reasons},
        refuses=any(map(refuses, choices)),
        calls_tools=calls,
        valid_json=all(_is_valid(asked, text) for text in texts) if asked.structured and not calls else None,
        language=spoken(texts[0]),
        answer=_digest(choices, texts),
    )


def _digest(choices: tuple[Choice, ...], texts: list[str]) -> str:
    calls = [(call.name, call.arguments) for choice in choices for call in choice.tool_calls]
    said = repr((texts, calls)) if calls or len(texts) > 1 else texts[0]
    return blake2b(said.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _is_valid(asked: Asked, text: str) -> bool:
    found = parse(text.strip())
    return found.problem is None and not (asked.schema and violations(found.value, asked.schema))
