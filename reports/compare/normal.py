"""One spelling for texts that differ in formatting only; what a reader would not call another answer."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

_CHARACTERS = str.maketrans(
    {
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033", '"'),
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4", "'"),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u200b\u2060\ufeff\u00ad", None),
        "\u2026": "...",
        "\u00d7": "x",
    }
)
"""Quotation marks, primes, dashes and the minus sign to ASCII; characters without width to nothing."""
_GROUPED = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:,\d{3})+(?![\d,])")
_NARROW_GROUPED = re.compile(r"(?<=\d)[\u00a0\u2009\u202f](?=\d{3}(?!\d))")
_OPENING = re.compile(r"(?<![\w*_])[*_]{1,3}(?=[\w\"'(\[$#-])")
_CLOSING = re.compile(r"(?<=[\w\"')\].,!?:;%])[*_]{1,3}(?![\w*_])")
_PREFIX = re.compile(r"\A\s*(?:#{1,6}\s+|>\s?|[*+•‣◦-]\s+)")
_RULE = re.compile(r"\A\s*(?:[-*_]\s*){3,}\Z")
_LABEL = re.compile(r"\A\s*(\d{1,3})[.)]\s+(?=\S)")
_SENTENCE_END = re.compile(r"(?<=[.!?\u3002\uff01\uff1f])\s+|(?<=[\u3002\uff01\uff1f])")
_WORD = re.compile(r"\S+")
_LONGEST_WORD = 1024
_TRAILING = " \t.!;:,"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """A text without its formatting."""

    text: str
    """On one line; equal for texts that differ in formatting only."""
    sentences: tuple[str, ...]


def normalise(text: str) -> Plain:
    """Unicode NFC; white space, quotes, dashes, Markdown marks, grouped digits and closing punctuation levelled.

    Lines of fenced code keep their indentation. Time and memory are linear in the text.
    """
    text = _NARROW_GROUPED.sub("", nfc(_printable(text)).translate(_CHARACTERS))
    lines: list[str] = []
    fenced = False
    prose: list[int] = []
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced:
            lines.append(line.rstrip())
        elif not _RULE.match(line):
            prose.append(len(lines))
            lines.append(_unmarked(line))
    _unnumber(lines, prose)
    sentences = [part for line in lines for part in _split(line)]
    return Plain(text=" ".join(sentences).strip(_TRAILING), sentences=tuple(sentences))


def nfc(text: str) -> str:
    """Unicode NFC, word by word. Words beyond any language's stay as they are: a megabyte of combining marks would
    take hours, for composing is quadratic in their number."""
    return text if text.isascii() else _WORD.sub(_composed, text)


def _composed(match: re.Match[str]) -> str:
    word = match[0]
    return unicodedata.normalize("NFC", word) if len(word) <= _LONGEST_WORD else word


def same_text(one: str, two: str) -> bool:
    """Whether two texts differ in formatting at most."""
    return one == two or normalise(one).text == normalise(two).text


def _printable(text: str) -> str:
    """Lone surrogates are no text: no encoder takes them."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _unmarked(line: str) -> str:
    """A line of prose without Markdown marks; grouped digits joined."""
    line = _PREFIX.sub("", line.strip(), count=1).replace("`", "")
    line = _CLOSING.sub("", _OPENING.sub("", line))
    line = _GROUPED.sub(lambda match: match[0].replace(",", ""), line)
    return " ".join(line.split())


def _unnumber(lines: list[str], prose: list[int]) -> None:
    """Drops the labels of a list that counts 1, 2, 3 …; a lone "3. Rome" is an answer and keeps its number."""
    labels = [(at, match) for at in prose if (match := _LABEL.match(lines[at]))]
    if len(labels) > 1 and all(int(match[1]) == n for n, (_, match) in enumerate(labels, start=1)):
        for at, match in labels:
            lines[at] = lines[at][match.end() :]


def _split(line: str) -> list[str]:
    if not line:
        return []
    if line[0] in " \t":  # only fenced code is still indented
        return [line]
    return [part.rstrip(_TRAILING) or part for part in _SENTENCE_END.split(line) if part]
