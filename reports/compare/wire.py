"""How each answer came, beside what it says: oddities of the wire, counts, and what one look at the request adds to them."""

from __future__ import annotations

import operator
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from replay.exchange import Answer, Choice, Observation, Oddity
from reports.catalogue import entry
from reports.compare.asked import Asked
from reports.compare.model import Step, both, excerpt
from reports.compare.tools import broken_arguments
from reports.judgement import Finding, Severity

_LONGEST_RUN = 40
"""Times that one letter or mark of exclamation may stand in a row; rules, banners and numbers may be longer."""
_RUN = re.compile(rf"(.)\1{{{_LONGEST_RUN - 1},}}", re.DOTALL)
_HELD_BACK_S = 0.5
_LOOKED_AT = 100_000
"""Characters of a text that are looked through for repetition."""
_SPECIAL_TOKENS = 64
"""Tokens that a count may hold beside those of the text: turns, tool markup, the end."""
_ID_FORMATS = (
    (re.compile(r"chatcmpl-tool-"), "chatcmpl-tool-…"),
    (re.compile(r"functions\.[^:]*:\d+$"), "functions.name:n"),
    (re.compile(r"call_"), "call_…"),
    (re.compile(r"toolu_"), "toolu_…"),
)


def compare_wire(asked: Asked, baseline: Observation, candidate: Observation) -> Step:
    """Findings about the side that has something the other has not. Weighs in full only on the candidate."""
    old, new = dict(_odd(asked, baseline)), dict(_odd(asked, candidate))
    findings = [_finding(code, "candidate", evidence) for code, evidence in new.items() if code not in old]
    findings += [_finding(code, "baseline", evidence) for code, evidence in old.items() if code not in new]
    findings += list(_between(asked, baseline, candidate))
    return Step(findings=tuple(findings))


def _finding(code: str, side: str, evidence: str) -> Finding:
    found = entry(code)
    weight = found.severity if side == "candidate" else Severity.NOTE
    return Finding(
        comparator=code.partition(".")[0],
        category=code,
        severity=weight,
        message=f"the {side}'s answer {found.words}",
        side=side,
        evidence=excerpt(evidence),
    )


def _odd(asked: Asked, seen: Observation) -> Iterator[tuple[str, str]]:
    """What is odd about one answer: on the wire, and in the light of the request."""
    answer = seen.answer
    if answer is None:
        return
    for oddity in answer.oddities:
        yield _told(oddity)
    streamed = answer.streamed
    if asked.stream is True and not streamed and answer.choices:
        yield "stream.not_streamed", _header(seen, "content-type")
    if asked.stream is False and streamed:
        yield "stream.unasked", _header(seen, "content-type")
    if answer.choices and not any(choice.role for choice in answer.choices) and asked.chat:
        yield "envelope.role_missing", ""
    for choice in answer.choices:
        if degenerate(choice):
            yield "text.degenerate", choice.text
    yield from _usage(asked, answer, streamed=streamed)
    begun, shown = seen.timing.generated_s, seen.timing.ttft_s
    if begun is not None and shown is not None and shown - begun > _HELD_BACK_S:
        yield "latency.parser_buffering", f"counted from {begun:.2f} s, shown from {shown:.2f} s"


def _told(oddity: Oddity) -> tuple[str, str]:
    return oddity.code, oddity.evidence


def _usage(asked: Asked, answer: Answer, *, streamed: bool) -> Iterator[tuple[str, str]]:
    usage = answer.usage
    if not answer.choices:
        return
    if usage is None or not (usage.completion_tokens or usage.prompt_tokens):
        if not streamed or asked.usage:
            yield "usage.missing", "none" if usage is None else "zeros"
        return
    told = f"prompt {usage.prompt_tokens}, completion {usage.completion_tokens}, total {usage.total_tokens}"
    done, prompt, total = usage.completion_tokens, usage.prompt_tokens, usage.total_tokens
    sums = {(done or 0) + (prompt or 0), (done or 0) + (prompt or 0) + (usage.reasoning_tokens or 0)}
    wrong_sum = None not in (done, prompt, total) and total not in sums
    shown = usage.reasoning_tokens is None  # hidden reasoning is counted and not shown
    if wrong_sum or (done is not None and shown and done > _most_tokens(asked, answer)):
        yield "usage.implausible", told


def _most_tokens(asked: Asked, answer: Answer) -> int:
    """A token is at least one byte of text, and there are no more than were allowed."""
    written = sum(
        len(
            (c.text + c.reasoning + c.refusal + "".join(t.name + t.arguments for t in c.tool_calls)).encode(
                "utf-8", "replace"
            )
        )
        for c in answer.choices
    )
    most = written + _SPECIAL_TOKENS * max(1, len(answer.choices))
    return (
        most
        if asked.max_tokens is None
        else min(most, asked.max_tokens * max(1, asked.n, len(answer.choices)))
    )


def degenerate(choice: Choice) -> bool:
    """Whether a text says one thing for ever: a character, a word, or a phrase. Rules of dashes and the like do not count."""
    text = choice.text[:_LOOKED_AT]
    words = text.split()
    # "12 crates + 18 crates" counts something; only neighbours repeat each other, and few texts have any that do.
    if sum(map(operator.eq, words, words[1:])) >= 3:
        again = sum(a == b and any(map(str.isalpha, a)) for a, b in pairwise(words))
        spoken = sum(any(map(str.isalpha, word)) for word in words)
        if spoken >= 8 and again >= 3 and again / spoken >= 0.25:
            return True
    if any(match[1].isalpha() or match[1] in "!?\ufffd" for match in _runs(text)):
        return True
    if choice.finish_reason not in ("length", "repetition") or len(text) < 400:
        return False
    tail = text[-2_000:].encode("utf-8", "replace")
    return len(zlib.compress(tail, 6)) < len(tail) / 12


def _runs(text: str) -> Iterator[re.Match[str]]:
    """Where one character stands ``_LONGEST_RUN`` times in a row or more."""
    half = _LONGEST_RUN // 2
    # A run that long fills one of these parts; most texts have none and need no closer look.
    if any(text[at : at + half] == text[at] * half for at in range(0, len(text), half)):
        yield from _RUN.finditer(text)


def _between(asked: Asked, baseline: Observation, candidate: Observation) -> Iterator[Finding]:
    """What only the two answers together show."""
    old, new = baseline.answer or Answer(), candidate.answer or Answer()
    yield from _media(old, new)
    was, now = old.first.reasoning_field, new.first.reasoning_field
    if was and now and was != now:
        yield _finding("contract.field_renamed", "candidate", f"{was} became {now}")
    bad = [next(filter(None, map(broken_arguments, answer.choices)), None) for answer in (old, new)]
    if bad[0] is not None and bad[1] is not None:
        yield Finding(
            comparator="tools",
            category="tools.arguments_invalid_json",
            severity=Severity.WARN,
            message="both sides give tool arguments that are not JSON",
            evidence=both(bad[0], bad[1]),
        )
    formats = _id_format(old), _id_format(new)
    if None not in formats and formats[0] != formats[1]:
        yield _finding("tools.id_format", "candidate", f"{formats[0]} became {formats[1]}")
    counts = (
        (old.usage.prompt_tokens if old.usage else None),
        (new.usage.prompt_tokens if new.usage else None),
    )
    if counts[0] and counts[1] and counts[0] != counts[1]:
        pictures = asked.pictures and not 0.9 <= counts[1] / counts[0] <= 1.1
        code = "usage.multimodal_basis" if pictures else "usage.prompt_tokens"
        yield _finding(code, "candidate", f"{counts[0]} became {counts[1]} ({counts[1] - counts[0]:+d})")


def _media(old: Answer, new: Answer) -> Iterator[Finding]:
    """Pictures and sounds: as many of each kind on both sides, or a user is served differently. Two are never the same bytes."""
    had, has = ([one for choice in answer.choices for one in choice.media] for answer in (old, new))
    kinds = [Counter(one.partition(":")[0] for one in side) for side in (had, has)]
    if kinds[0] != kinds[1]:
        yield _finding("media.missing", "candidate", f"{dict(kinds[0])} became {dict(kinds[1])}")
    elif sorted(had) != sorted(has):
        yield _finding("media.differs", "candidate", f"{sum(kinds[0].values())} parts with other content")


def _id_format(answer: Answer) -> str | None:
    ids = [call.id for choice in answer.choices for call in choice.tool_calls if call.id]
    if not ids:
        return None
    return next((name for pattern, name in _ID_FORMATS if pattern.match(ids[0])), "another format")


def _header(seen: Observation, name: str) -> str:
    return next((value.lower() for key, value in seen.headers if key.lower() == name), "")
