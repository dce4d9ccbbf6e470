"""The words of an English sentence, with what is spelled in several ways spelled in one: "can't" and "cannot"."""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(r"[^\W_]+(?:'[^\W_]+)?|[,;:()]|(?<=\s)-(?=\s)")
_ALIASED = re.compile(
    r"'|\bno|n(?:o?t|one|ever)\b|\b(?:unless|rather|instead|opposed|free|absence|almost|a few|a little|yet to|stop|quit|too)"
    r"|\b(?:hardly|scarcely|barely)\b"
)
"""A sentence without any of it has no spelling that stands for another; most have not."""
_ALIASES = tuple(
    (re.compile(pattern), f" {words} ")
    for pattern, words in (
        (r"n't\b|(?<=\bcan)not\b|(?<=\b(?:ca|wo|do|is))nt\b|(?<=\b(?:did|was|are|has|had))nt\b", "not"),
        (r"'(?:re|ve|ll|d|m)\b|'s(?= +not\b)", "are"),
        (r"\bunless\b", "if never"),
        # An answer, which denies nothing in the sentence.
        (r"\A\W*nop?e?\b(?=\s*(?:[,.;:!-]|\Z))|[:,] no\W*\Z", ","),
        (r"\bno (?:doubt|problem|worries|wonder)\b|\bnot to mention\b|\bor not\b|\bwhy not\b|\bif not,", ","),
        (r"\bnot +(?:only|just|merely|simply|solely)\b", ","),
        (r"\bno one\b", "nobody"),
        (r"\bnot +(?:one|a single|even one|even a)\b", "no"),
        (r"\bat no time\b|\bnot +ever\b|\bnot +once\b|\bno longer\b", "never"),
        (r"\bnothing but\b|\bno more than\b", "only"),
        (r"\b(?:nobody|nothing|none|never|not|no \w+) +(?:but|except|other than|apart from)\b", "only"),
        (r"\b(?:rather than|instead of|as opposed to|free (?:of|from)|absence of)\b", "without"),
        (r"\balmost (?:no|nobody|nothing|none|never)\b", "hardly"),
        (r"\b(?:hardly|scarcely|barely) (?:any|ever)\b", "hardly"),
        (r"\bnot +(?:very |so |that |too )?(?:many|much|often)\b", "hardly"),
        (r"\bnot +an? (?:little|few)\b", "plenty"),
        (r"\bnot +enough\b|\btoo (?:few|little)\b", "hardly"),
        (r"\ba (?:few|little)\b", "some"),
        (r"\b(have|has|had|am|is|are|was|were) yet to\b", "have not"),
        (r"\b(?:stop|stops|stopped|quit) (?=[a-z]+ing\b)", "without"),
    )
)


def tokens(sentence: str) -> Iterator[str]:
    """Lower-case words, and marks that may end a clause. Time is linear in the sentence."""
    text = sentence.lower()
    if _ALIASED.search(text):
        for pattern, words in _ALIASES:
            text = pattern.sub(words, text)
    for match in _TOKEN.finditer(text):
        yield match[0].partition("'")[0]
