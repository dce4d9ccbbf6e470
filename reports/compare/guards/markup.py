"""What belongs to a chat template or a tokenizer and not into an answer."""

from __future__ import annotations

import re

from reports.compare.model import both, excerpt, odd_one
from reports.compare.normal import Plain
from reports.judgement import Finding, Severity

_TOKEN = re.compile(
    r"<[|\uff5c][\w \u2581/-]{1,40}[|\uff5c]>"  # <|im_end|>, <|eot_id|>, and DeepSeek's with wide bars
    r"|</?(?:think|thinking|reasoning|thought|tool_call|tool_response|scratchpad)>"
    r"|</s>|<(?:start|end)_of_(?:turn|image)>|<(?:eos|bos|pad|unk|mask)>|<0x[0-9A-F]{2}>|<<?/?SYS>>?"
    r"|\[/?INST\]|\[/?(?:TOOL_CALLS|AVAILABLE_TOOLS|TOOL_RESULTS|SYSTEM_PROMPT)\]"
    r"|[\u0120\u010a](?=[A-Za-z])[A-Za-z]+[\u0120\u010a]|\u2581\w+\u2581"  # bytes and spaces as tokenizers write them
)
_TURN = re.compile(r"(?:User|Human|Assistant|USER|ASSISTANT|Instruction|Response): ?\S")
_SPEAKERS = frozenset(("user", "human", "assistant", "instruction", "response"))


def guard_markup(baseline: Plain, candidate: Plain) -> Finding | None:
    """BLOCK when one side alone holds tokens of a template; WARN when it goes on with another turn of the conversation."""
    for look, category, severity, what in (
        (_token, "text.markup", Severity.BLOCK, "template tokens were left in the text"),
        (_turn, "text.extra_turn", Severity.WARN, "another turn of the conversation follows in the text"),
    ):
        old, new = look(baseline), look(candidate)
        side, found = odd_one(old is not None, new is not None), old or new
        if side and found:
            return Finding(
                comparator="text",
                category=category,
                severity=severity,
                message=f"on the {side}'s side {what}: {excerpt(found[0], 40)}",
                side=side,
                evidence=both(_around(old, baseline), _around(new, candidate)),
            )
    return None


def _token(plain: Plain) -> re.Match[str] | None:
    text = plain.text
    if "<" in text or "[" in text or not text.isascii():
        return _TOKEN.search(text)
    return None


def _turn(plain: Plain) -> re.Match[str] | None:
    if plain.words.isdisjoint(_SPEAKERS):
        return None
    return next(filter(None, map(_TURN.match, plain.sentences[1:])), None)


def _around(match: re.Match[str] | None, plain: Plain) -> str:
    return plain.text if match is None else match.string[max(0, match.start() - 60) : match.end() + 60]
