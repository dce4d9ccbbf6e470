"""Texts that differ in formatting only: the edits that ``benchmarks.changes`` makes such pairs of."""

from __future__ import annotations

import json
import re
from random import Random

from benchmarks.edits import SENTENCE_END, Edit, replaced

_INLINE = (" ", "  ", "\t", "\u00a0")
_GAPS = (*_INLINE, "\n", " \n")
_OPENS = re.compile(r"[-*+>#=]|\d+[.)]\Z")
"""What would begin a list, a heading or a quotation at the start of a line."""
_WORDS = re.compile(r"(?<![\w*_`'-])[A-Za-z]{4,}(?![\w*_`'-])")
_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_PLAIN = re.compile(r"(?<![\w.,:/-])\d{4,7}(?![\w:/%-]|[.,]\d)")


def _spaces(text: str, chance: Random) -> tuple[str, str]:
    words = text.split()
    gaps = [chance.choice(_INLINE if _OPENS.match(word) else _GAPS) for word in (*words[1:], ".")]
    return text, "".join(word + gap for word, gap in zip(words, gaps, strict=True)).rstrip()


def _markdown(text: str, chance: Random) -> tuple[str, str] | None:
    marks = ("**", "*", "_", "`", "__")
    return replaced(text, _WORDS, lambda match: (mark := chance.choice(marks)) + match[0] + mark, chance)


def _quotes(text: str, chance: Random) -> tuple[str, str] | None:
    one, two = chance.choice((("\u201c", "\u201d"), ("\u00ab", "\u00bb"), ("\u201e", "\u201c")))
    edited = replaced(text, _WORDS, lambda match: f'"{match[0]}"', chance)
    if edited is None:
        return None
    quoted = edited[1]
    other = re.sub(r'"([^"]*)"', rf"{one}\1{two}", quoted).replace("'", "\u2019")
    return quoted, other


def _listed(text: str, chance: Random) -> tuple[str, str] | None:
    sentences = SENTENCE_END.split(text)
    if len(sentences) < 2:
        return None
    forms = ["- {}", "* {}", "\u2022 {}", "+ {}", "{n}. {}", "{n}) {}", "{}"]
    one, two = chance.sample(forms, 2)
    return tuple("\n".join(form.format(s, n=n) for n, s in enumerate(sentences, 1)) for form in (one, two))  # type: ignore[return-value]


def _headed(text: str, chance: Random) -> tuple[str, str]:
    marks = chance.sample(
        ["## Answer\n\n{}", "**Answer**\n\n{}", "Answer\n\n{}", "# Answer\n{}", "Answer:\n{}"], 2
    )
    return marks[0].format(text), marks[1].format(text)


def _grouped(text: str, chance: Random) -> tuple[str, str] | None:
    if _GROUPED.search(text):
        return replaced(text, _GROUPED, lambda match: match[0].replace(",", ""), chance)
    return replaced(
        text, _PLAIN, lambda match: f"{int(match[0]):,}" if not _year(match[0]) else match[0], chance
    )


def _year(digits: str) -> bool:
    return len(digits) == 4 and digits[0] in "12"


def _keys(text: str, chance: Random) -> tuple[str, str]:
    value = {"text": text, "words": len(text.split()), "final": True, "tags": [text[:4], None]}
    turned = dict(chance.sample(list(value.items()), len(value)))
    wrap = chance.choice(("{}", "```json\n{}\n```"))
    return wrap.format(json.dumps(value)), wrap.format(json.dumps(turned, indent=chance.choice((1, 2, 4))))


def _punctuated(text: str, chance: Random) -> tuple[str, str]:
    return text.rstrip(".") + ".", text.rstrip(".") + chance.choice(("", " ", "\n", "!"))


FORMATTED: dict[str, Edit] = {
    "white space": _spaces,
    "markdown": _markdown,
    "quotes": _quotes,
    "lists": _listed,
    "headings": _headed,
    "grouped digits": _grouped,
    "key order": _keys,
    "closing mark": _punctuated,
}
