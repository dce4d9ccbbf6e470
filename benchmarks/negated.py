"""Sentences of real prompts with a negation put into them, or taken out, and the same with contractions: pure.

A reader of two such sentences is told opposite things, or, with contractions, the same thing.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_AUXILIARY = r"is|are|was|were|can|could|will|would|should|must"
_CONTRACTED = {
    "is not": "isn't",
    "are not": "aren't",
    "was not": "wasn't",
    "were not": "weren't",
    "cannot": "can't",
    "can not": "can't",
    "could not": "couldn't",
    "will not": "won't",
    "would not": "wouldn't",
    "should not": "shouldn't",
    "must not": "mustn't",
    "has not": "hasn't",
    "have not": "haven't",
    "do not": "don't",
    "does not": "doesn't",
    "did not": "didn't",
    "it is": "it's",
    "he is": "he's",
    "she is": "she's",
    "they are": "they're",
    "you are": "you're",
    "we are": "we're",
    "I am": "I'm",
    "I have": "I've",
    "that is": "that's",
    "there is": "there's",
    "she will": "she'll",
    "you will": "you'll",
}
_LONG = re.compile(rf"\b(?:{'|'.join(_CONTRACTED)})\b(?! not)")
_ORDERS = """write use find calculate give explain describe compare create provide suggest discuss add return remove
include check identify convert determine implement show get book order draft help make take"""


def _after_auxiliary(text: str) -> str | None:
    changed = re.sub(rf"(?<=\w )\b({_AUXILIARY})\b (?!not\b)(?=\w)", r"\1 not ", text, count=1)
    return None if changed == text or text.endswith("?") else changed.replace("can not ", "cannot ")


def _contracted_auxiliary(text: str) -> str | None:
    changed = _after_auxiliary(text)
    return None if changed is None else contract(changed)


def _never(text: str) -> str | None:
    changed = re.sub(r"\b([Hh]e|[Ss]he|[Ii]t|[Tt]hey) (?=[a-z]+(?:s|ed)\b)", r"\1 never ", text, count=1)
    return None if changed == text else changed


def _does_not(text: str) -> str | None:
    changed = re.sub(
        r"\b([Hh]e|[Ss]he|[Ii]t) ([a-z]{2,}[^s\W])s\b(?<! is)(?<! has)(?<! was)",
        r"\1 does not \2",
        text,
        count=1,
    )
    return None if changed == text else changed


def _order(text: str) -> str | None:
    word, _, rest = text.partition(" ")
    return f"Do not {word.lower()} {rest}" if word.lower() in _ORDERS.split() else None


def _never_order(text: str) -> str | None:
    changed = _order(text)
    return None if changed is None else changed.replace("Do not", "Never", 1)


def _quantifier(text: str) -> str | None:
    changed = re.sub(r"\b(all|every|each|both) (?=\w)", r"not \1 ", text, count=1)
    if changed == text:
        changed = re.sub(r"\bsome (?=\w)", "no ", text, count=1)
    return None if changed == text else changed


def _without(text: str) -> str | None:
    changed = re.sub(r"\bwith (?=an? |the )", "without ", text, count=1)
    return None if changed == text else changed


def _taken_out(text: str) -> str | None:
    changed = re.sub(r"\b(\w+)(?: not|n't)\b(?! only)", r"\1", text, count=1)
    return None if changed == text or "n't" in changed or " not " in changed else changed


WAYS: dict[str, Callable[[str], str | None]] = {
    "not": _after_auxiliary,
    "n't": _contracted_auxiliary,
    "never": _never,
    "does not": _does_not,
    "do not": _order,
    "never do": _never_order,
    "quantifier": _quantifier,
    "without": _without,
    "taken out": _taken_out,
}


def sentences(text: str) -> list[str]:
    """Sentences of prose with 5 to 40 words."""
    prose = " ".join(text.split())
    return [part for part in _SENTENCE.split(prose) if 5 <= len(part.split()) <= 40 and part[-1] in ".!?"]


def negated(texts: Iterable[str], most: int) -> Iterator[tuple[str, str, str]]:
    """(way, one text, the other), at most ``most`` for each way. One in three stands amid two more sentences."""
    chance = random.Random(7)
    counts = dict.fromkeys(WAYS, 0)
    for text in texts:
        parts = sentences(text)
        for at, part in enumerate(parts):
            made = [(name, new) for name, way in WAYS.items() if (new := way(part)) and counts[name] < most]
            if not made:
                continue
            name, new = chance.choice(made)
            counts[name] += 1
            around = parts[max(0, at - 1) : at + 2] if chance.random() < 1 / 3 else [part]
            pair = [" ".join(around), " ".join(_replaced(around, part, new))]
            chance.shuffle(pair)
            yield name, pair[0], pair[1]


def contracted(texts: Iterable[str], most: int) -> Iterator[tuple[str, str, str]]:
    """("contraction", one text, the same with each contraction that it allows)."""
    seen: set[str] = set()
    for text in texts:
        for part in sentences(text):
            for sentence in (part, _after_auxiliary(part) or part):
                short = contract(sentence)
                if short != sentence and sentence not in seen and len(seen) < most:
                    seen.add(sentence)
                    yield "contraction", sentence, short


def contract(text: str) -> str:
    """``is not`` to ``isn't`` and so on, wherever a word follows."""
    return _LONG.sub(
        lambda match: _CONTRACTED[match[0]] if text[match.end() :].strip(" .!?") else match[0], text
    )


def _replaced(parts: Sequence[str], old: str, new: str) -> list[str]:
    return [new if part == old else part for part in parts]
