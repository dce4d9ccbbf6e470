"""A sentence read for what it affirms and what it denies.

It is cut into clauses. A negation denies its whole clause ("no", "never", "not" behind an auxiliary) or what stands behind it
("without", any other "not"); two of them affirm. What matters is the head, the word that a negation stands before: "not
approved" tells the opposite of "approved", while "not open" and "closed" share no head, and tell nothing by themselves.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reports.compare.guards.lexicon import (
    ABROAD,
    AUXILIARIES,
    BOUNDARIES,
    COUNTING,
    DENYING,
    FOCUSING,
    FUNCTION,
    RAISING,
    TURNING,
    stem,
    undone,
)
from reports.compare.guards.lexicon import words as lexicon
from reports.compare.guards.tokens import tokens

_CUTS = frozenset(",;:()-")
_EXCEPTIVE = lexicon("until till except without")
_ARTICLES = lexicon("a an the some any")
_ASKING = lexicon("why what who when where how which")
_SUBJECTS = lexicon("i you he she it we they there this these those")
_NEGATIONS = frozenset(["not", *DENYING])
_FOCUSED = "not-"
"""Stands before what alone is denied in "not at one but at zero"."""
_DENIALS = _NEGATIONS | TURNING | ABROAD
_NO_CONTENT = FUNCTION | {_FOCUSED} | _DENIALS | COUNTING.keys() | FOCUSING


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What a negation stands before, or behind where nothing follows it."""

    stems: tuple[str, ...]
    sign: int
    """Of the first of them: 1 where another negation undoes this one."""
    follows: bool
    """The negation comes first. Else ("but a tuple cannot") the head is a guess."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a sentence affirms and denies. A sign is 1 or -1."""

    text: str
    stems: frozenset[str]
    """Of its content words."""
    signs: dict[str, tuple[int, ...]]
    """The sign of each occurrence of each of them, sorted."""
    heads: tuple[Head, ...]
    turned: tuple[tuple[str, str, int], ...]
    """(stem, a stem that it means the opposite of, the sign of that one)."""
    counts: frozenset[str]
    """How much it speaks of: none, few, some, many, all, not all."""
    focused: bool
    """It holds only of what it names."""
    places: tuple[str, ...]
    """The stems that "not" stands right before within a clause and denies alone ("not ten minutes ago"), sorted."""


def read(sentence: str) -> Reading:
    """A normalised sentence. Time is linear in it."""
    clauses = [_read(words) for words in _clauses(_restricted(list(tokens(sentence))))]
    signs: dict[str, list[int]] = {}
    turned = []
    for clause in clauses:
        for word, sign in clause.signed:
            name = stem(word)
            signs.setdefault(name, []).append(sign)
            turned += [(name, other, -sign) for other in undone(word)]
    return Reading(
        text=sentence,
        stems=frozenset(signs),
        signs={name: tuple(sorted(found)) for name, found in signs.items()},
        heads=tuple(head for clause in clauses for head in clause.heads),
        turned=tuple(turned),
        counts=frozenset(count for clause in clauses for count in clause.counts),
        focused=any(clause.focused for clause in clauses),
        places=tuple(sorted(place for clause in clauses for place in clause.places)),
    )


def joined(one: Reading, two: Reading) -> Reading:
    """Two neighbouring sentences as one."""
    stems = one.stems | two.stems
    return Reading(
        text=f"{one.text}. {two.text}",
        stems=stems,
        signs={name: tuple(sorted((*one.signs.get(name, ()), *two.signs.get(name, ())))) for name in stems},
        heads=one.heads + two.heads,
        turned=one.turned + two.turned,
        counts=one.counts | two.counts,
        focused=one.focused or two.focused,
        places=tuple(sorted(one.places + two.places)),
    )


def same_content(one: str, two: str) -> bool:
    """Whether two sentences have the same content words, in any form and order."""
    return read(one).stems == read(two).stems


@dataclass(frozen=True, slots=True, kw_only=True)
class _Clause:
    signed: tuple[tuple[str, int], ...]
    heads: tuple[Head, ...]
    counts: tuple[str, ...]
    focused: bool
    places: tuple[str, ...]


def _read(words: Sequence[str]) -> _Clause:
    content = [at for at, word in enumerate(words) if word not in _NO_CONTENT]
    last = content[-1] if content else -1
    cues = [  # a "not" with nothing behind it denies what stands before it
        (cue, whole or (words[cue] == "not" and cue > last)) for cue, whole in _cues(words)
    ]
    signs = _signs(words, content, cues)
    firm = [at for at in content if words[at] not in RAISING]
    heads = [
        Head(stems=tuple(stem(words[at]) for at in places), sign=signs[places[0]], follows=places[0] > cue)
        for cue, whole in cues
        for places in _heads(words, firm, cue)
        if places and (whole or places[0] > cue)
    ]
    parts = [cue for cue, whole in cues if not whole and words[cue] in ("not", _FOCUSED) and cue]
    return _Clause(
        signed=tuple((words[at], sign) for at, sign in signs.items()),
        heads=tuple(heads),
        counts=tuple(_counts(words)),
        focused=any(word in FOCUSING for word in words),
        places=tuple(stem(words[cue + 1]) for cue in parts if signs.get(cue + 1)),
    )


def _cues(words: Sequence[str]) -> Iterator[tuple[int, bool]]:
    """Where negations stand, and whether they deny the whole clause."""
    asks = words[0] in AUXILIARIES or (words[0] in _ASKING and words[1:2] != [] and words[1] in AUXILIARIES)
    for at, word in enumerate(words):
        if word == "not":
            yield at, asks or (at > 0 and words[at - 1] in AUXILIARIES)
        elif word in DENYING or word in ABROAD:
            yield at, True
        elif word in TURNING or word == _FOCUSED:
            yield at, False


def _signs(words: Sequence[str], content: Sequence[int], cues: Sequence[tuple[int, bool]]) -> dict[int, int]:
    sign = -1 if sum(whole for _, whole in cues) % 2 else 1
    turns: list[int] = []
    for cue, whole in cues:
        if not whole:
            turns.append(cue)
            if cue and words[cue - 1] in _ARTICLES:  # "a not very long day" denies "long" only
                turns.append(content[bisect_right(content, cue)])
    turning = iter(turns)
    turn = next(turning, None)
    signs = {}
    for at in content:
        while turn is not None and turn < at:
            sign, turn = -sign, next(turning, None)
        signs[at] = 1 if words[at] in RAISING else sign
    return signs


def _heads(words: Sequence[str], firm: Sequence[int], cue: int) -> Iterator[Sequence[int]]:
    """The first content word behind a negation, and the next where that is an adverb; of "no", all that stand together
    there ("no entrance fee"). Where nothing stands behind, the last word before it."""
    behind = firm[(start := bisect_right(firm, cue)) : start + 3]
    if words[cue] == "no":
        yield [at for n, at in enumerate(behind) if at == cue + 1 + n] or behind[:1] or firm[-1:]
    else:
        yield behind[:1] or firm[-1:]
        if behind[1:] and _adverb(words[behind[0]]):
            yield behind[1:2]


def _adverb(word: str) -> bool:
    return word.endswith("ly") and len(word) > 4 and not word.endswith(("ply", "mily"))


def _counts(words: Sequence[str]) -> Iterator[str]:
    """Quantities, in the light of a "not" before or behind them."""
    denials = [at for at, word in enumerate(words) if word == "not"]
    for at, word in enumerate(words):
        kind = COUNTING.get(word)
        before, behind = bool(denials) and denials[0] < at, bool(denials) and denials[-1] > at
        if word in DENYING:
            yield DENYING[word]
        elif kind == "any" and before:
            yield "none"
        elif kind == "all":
            yield "not all" if before else "none" if behind else "all"
        elif kind == "some":
            yield "not all" if before or behind else "some"
        elif kind == "many":
            yield "few" if before else "many"


def _restricted(spelled: list[str]) -> list[str]:
    """ "Not … until", "not … without" say "only … from", "only … with", in either order."""
    excepts = next((at for at in range(len(spelled)) if _excepts(spelled, at)), None)
    denies = next(
        (at for at, word in enumerate(spelled) if word in _NEGATIONS and not _excepts(spelled, at)), None
    )
    if excepts is None or denies is None:
        return spelled
    between = spelled[min(excepts, denies) : max(excepts, denies)]
    if denies < excepts and any(word in _CUTS or word in ("and", "or") for word in between):
        return spelled
    changed = {denies: "only", excepts: ","}
    return [changed.get(at, word) for at, word in enumerate(spelled)]


def _excepts(spelled: Sequence[str], at: int) -> bool:
    return spelled[at] in _EXCEPTIVE or (at > 0 and spelled[at - 1] == "if" and spelled[at] == "never")


def _clauses(spelled: Sequence[str]) -> Iterator[list[str]]:
    """Cut at punctuation and at words that begin another clause."""
    words: list[str] = []
    for at, word in enumerate(spelled):
        if (
            word == "nor"
            or word in _CUTS
            or (word in BOUNDARIES and not _passes(word, words))
            or _goes_on(spelled, at)
        ):
            if word == "but" and _contrasts(spelled[at + 1 : at + 8]):
                words = _focus(words)
            if words:
                yield words
            words = ["nor"] if word == "nor" else []
        else:
            words.append(word)
    if words:
        yield words


def _passes(word: str, words: Sequence[str]) -> bool:
    """ "I don't think that …" and "she denies that …" deny what follows."""
    return word == "that" and any(before in RAISING or before in TURNING for before in words)


def _goes_on(spelled: Sequence[str], at: int) -> bool:
    """ "and" or "or" before another clause, which has a subject or a verb of its own."""
    if spelled[at] not in ("and", "or"):
        return False
    following = spelled[at + 1 : at + 5]
    opens = following[:1] != [] and (following[0] in _SUBJECTS or following[0] in _DENIALS)
    return opens or any(word in AUXILIARIES for word in following)


def _contrasts(following: Sequence[str]) -> bool:
    """What stands behind "but" has no verb of its own: "not at one but at zero"."""
    for word in following:
        if word in _CUTS:
            break
        if word in AUXILIARIES or word in _SUBJECTS or word in _NEGATIONS:
            return False
    return True


def _focus(words: list[str]) -> list[str]:
    """A clause that only its last word is denied of."""
    content = [at for at, word in enumerate(words) if word not in _NO_CONTENT]
    if "not" not in words or not content or content[-1] < words.index("not"):
        return words
    return [*(word for word in words[: content[-1]] if word != "not"), _FOCUSED, *words[content[-1] :]]
