"""Plausible English from a hash: the same question and seed give the same text in any process."""

from __future__ import annotations

import random
import re

from replay.simulator import chance

_PLACES = (
    "Hull",
    "Bergen",
    "Porto",
    "Leith",
    "Aarhus",
    "Trieste",
    "Cork",
    "Gdansk",
    "Malmo",
    "Nantes",
    "Split",
    "Vigo",
)
_THINGS = (
    "bridge",
    "ferry",
    "library",
    "harbour",
    "market",
    "museum",
    "workshop",
    "greenhouse",
    "archive",
    "station",
)
_PARTS = (
    "filter",
    "gasket",
    "ledger",
    "schedule",
    "sensor",
    "valve",
    "contract",
    "battery",
    "index",
    "timetable",
)
_MANNERS = (
    "reliable",
    "quiet",
    "expensive",
    "narrow",
    "popular",
    "seasonal",
    "modern",
    "crowded",
    "sturdy",
    "free",
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_UNITS = ("boats", "visitors", "crates", "letters", "seats", "samples", "copies", "passengers")

_OPENINGS = (
    "The short answer on {topic} is {number} {unit}.",
    "For {topic}, start with the {part}.",
    "{place} is the usual example for {topic}.",
    "There are {number} points to know about {topic}.",
    "As for {topic}, the {thing} in {place} is a good guide.",
)
_SENTENCES = (
    "The {thing} in {place} is {manner} and holds {number} {unit}.",
    "It is open on {day} from {hour}:00.",
    "Check the {part} before {day}, because it is often {manner}.",
    "The fee is {number} dollars for each visit.",
    "{place} has {number} {unit}, and most of them are {manner}.",
    "The {part} was replaced in {year} and is still in use.",
    "You can reach the {thing} from {place} in {number} minutes.",
    "In {year} the {thing} was moved to {place}.",
    "About {number} percent of the {unit} are counted on {day}.",
    "A {manner} {thing} can serve {number} {unit} in an hour.",
    "The {part} is checked every {number} days.",
    "Nobody in {place} has complained about the {part} since {year}.",
)
_COMMON_WORDS = """about also answer been could does each find from give have help here into know like list make
many more most much need only please question should show some tell than that their them then there these they
this using want were what when where which will with would write your"""
_COMMON = frozenset(_COMMON_WORDS.split())
REFUSAL = "I'm sorry, but I can't help with that request."

_PIECE = re.compile(r"\s*(?:\w{1,7}|[^\w\s]+)|\s+")
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]{3,}")
_NUMBER = re.compile(r"\d+")
_VERB = re.compile(r"\b(is|are|was|has|can)\b")
_NEGATED = {"is": "is not", "are": "are not", "was": "was not", "has": "does not have", "can": "cannot"}


def text(question: str, *parts: object) -> str:
    """Two to six sentences on the subject of ``question``; everything else is drawn from ``parts``."""
    rng = chance.stream("answer", *parts)
    sentences = [chance.pick(rng, _OPENINGS)]
    sentences += [chance.pick(rng, _SENTENCES) for _ in range(chance.between(rng, 1, 5))]
    topic = _topic(question)
    return " ".join(_filled(sentence, rng, topic) for sentence in sentences)


def lengthened(start: str, count: int, *parts: object) -> tuple[str, ...]:
    """Exactly ``count`` tokens that begin with ``start`` and go on with further sentences."""
    rng = chance.stream("more", *parts)
    tokens = list(pieces(start))
    while len(tokens) < count:
        tokens += pieces(" " + _filled(chance.pick(rng, _SENTENCES), rng, ""))
    return tuple(tokens[:count])


def reworded(answer: str, *parts: object) -> str:
    """The same facts under another opening: what a sampling backend does to its own answer."""
    rng = chance.stream("rewording", *parts)
    lead = ("Sure. ", "Certainly. ", "In short: ", "Here is what I know. ", "Briefly, this. ", "To sum up: ")
    close = ("", " Let me know if you need more.", " I hope this helps.", " That is all.")
    return chance.pick(rng, lead) + answer + chance.pick(rng, close)


def wrong(answer: str, question: str, *parts: object) -> str:
    """Another answer to the same question: a number changed, a negation, or other facts."""
    rng = chance.stream("wrong", *parts)
    options = (_other_number(answer), _negated(answer), text(question, "wrong", *parts))
    chosen = chance.pick(rng, options)
    return chosen if chosen != answer else text(question, "wrong again", *parts)


def pieces(answer: str) -> tuple[str, ...]:
    """Tokens whose concatenation is ``answer``: up to seven letters or punctuation, with a space before."""
    return tuple(_PIECE.findall(answer))


def _other_number(answer: str) -> str:
    return _NUMBER.sub(lambda match: str(int(match[0]) * 3 + 7), answer, count=1)


def _negated(answer: str) -> str:
    return _VERB.sub(lambda match: _NEGATED[match[0]], answer, count=1)


def _topic(question: str) -> str:
    """The two longest telling words of the question, in their order: enough to stay on its subject."""
    words = dict.fromkeys(word.lower() for word in _WORD.findall(question[-4000:]))
    telling = [word for word in words if word not in _COMMON]
    longest = sorted(telling, key=len, reverse=True)[:2]
    return " ".join(word for word in telling if word in longest) or "this question"


def _filled(sentence: str, rng: random.Random, topic: str) -> str:
    return sentence.format(
        topic=topic,
        number=chance.between(rng, 2, 96),
        hour=chance.between(rng, 6, 11),
        year=chance.between(rng, 1901, 2024),
        place=chance.pick(rng, _PLACES),
        thing=chance.pick(rng, _THINGS),
        part=chance.pick(rng, _PARTS),
        manner=chance.pick(rng, _MANNERS),
        day=chance.pick(rng, _DAYS),
        unit=chance.pick(rng, _UNITS),
    )
