"""A judge model's opinions on what similarity alone decided: which pairs are taken, what is known, and what changes."""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from migrate.asking import Asker, Progress
from migrate.config import JudgeSection
from reports.compare.judge_model import Opinion, Question, question, settled
from reports.compare.model import Comparison
from reports.compare.texts import Look

_LONGEST_NAME = 80

log = logging.getLogger(__name__)

Read = Callable[[str, Sequence[str]], Mapping[str, str]]
"""(model, keys of questions) to the opinions that are known."""
Write = Callable[[str, Mapping[str, str]], None]

_Questions = tuple[Question | None, Question | None]
"""About a pair and about its repeat."""


class SecondOpinion:
    """Asks a model about pairs that similarity alone decided, in both orders, and applies what both orders agree on.

    ``clean`` redacts a text before it is sent. ``read`` and ``write`` reach the opinions that are kept. Pairs are taken in the
    order in which they come until the budget is used up. What is known already counts against it as if it were asked, so that
    the same pairs are decided in the same way again.
    """

    def __init__(
        self,
        section: JudgeSection,
        *,
        clean: Callable[[str], str] = str,
        read: Read | None = None,
        write: Write | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._section, self._clean, self._progress = section, clean, progress
        self._read, self._write = read or _nothing, write or _nowhere
        self._name = _kept_as(section.model)
        self._ask = Asker(section)
        self._had: dict[str, Opinion] = {}
        self._admitted: set[str] = set()
        self._tokens = self._left = 0
        """Of admitted questions, as far as that can be told beforehand; pairs that were not admitted."""
        self._results: Counter[str] = Counter()

    def __call__(self, before: Sequence[Look], after: Sequence[Look], prompts: Sequence[str]) -> list[Look]:
        """``after`` with the model's opinions. ``before`` are the same looks without similarity, which hold the texts, and
        ``prompts`` what was asked for."""
        asked = [
            self._admitted_of(self._questions(*looks)) for looks in zip(before, after, prompts, strict=True)
        ]
        opinions = self._opinions({key: one for pair in asked for key, one in _both_orders(pair)})
        return [
            (self._settled(first, one, opinions) or first, self._settled(repeat, again, opinions))
            for (first, repeat), (one, again) in zip(after, asked, strict=True)
        ]

    @property
    def notes(self) -> tuple[str, ...]:
        """What a report says of it: whom it asked, what came of it, and what went wrong."""
        section, found, ask = self._section, self._results, self._ask
        lines = [f"judge model {section.model} at {section.url}: {_told(found)}"]
        lines[0] += f"; {ask.sent:,} requests, {ask.tokens:,} tokens"
        if ask.failures:
            why = "; ".join(f"{words} ({count:,} times)" for words, count in ask.failures.most_common(2))
            lines.append(f"judge model: {why}")
        if ask.problem and found["open"]:
            lines.append(f"judge model: {ask.problem}")
        if self._left:
            spent = "judge.max_requests or judge.max_tokens is used up"
            lines.append(f"judge model: {self._left:,} further pairs stay as similarity decided: {spent}")
        return tuple(lines)

    def _questions(self, before: Look, after: Look, prompt: str) -> _Questions:
        first, repeat = (
            self._cleaned(question(old, new, prompt, self._section.between))
            for old, new in zip(before, after, strict=True)
        )
        return first, repeat

    def _cleaned(self, asked: Question | None) -> Question | None:
        if asked is None:
            return None
        prompt, first, second = map(self._clean, (asked.prompt, asked.first, asked.second))
        return Question(prompt=prompt, first=first, second=second)

    def _admitted_of(self, pair: _Questions) -> _Questions:
        """The questions where the budget has room for a pair and its repeat: one without the other would judge the noise
        floor by another measure."""
        new = {key: one for key, one in _both_orders(pair) if key not in self._admitted}
        requests, tokens = len(self._admitted) + len(new), self._tokens + sum(q.tokens for q in new.values())
        limits = self._section
        if self._left or requests > limits.max_requests or tokens > limits.max_tokens:
            self._left += pair != (None, None)
            return None, None
        self._admitted |= new.keys()
        self._tokens = tokens
        return pair

    def _opinions(self, questions: Mapping[str, Question]) -> dict[str, Opinion]:
        """The opinions so far, by their questions' keys; those that could not be had are left out. There are never more than
        requests are allowed."""
        self._had |= self._known([key for key in questions if key not in self._had])
        fresh: dict[str, Opinion] = {}
        unknown = {key: one for key, one in questions.items() if key not in self._had}
        try:
            self._ask(unknown, fresh, self._progress)
        finally:
            self._keep(fresh)
        self._had |= fresh
        return self._had

    def _known(self, keys: Sequence[str]) -> dict[str, Opinion]:
        """Opinions that are kept. They save money and nothing else: what cannot be read is asked again."""
        if not keys:
            return {}
        try:
            return {key: Opinion(word) for key, word in self._read(self._name, keys).items()}
        except Exception:
            log.warning("kept opinions cannot be read; they are asked for again", exc_info=True)
            return {}

    def _keep(self, fresh: Mapping[str, Opinion]) -> None:
        if not fresh:
            return
        try:
            self._write(self._name, {key: opinion.value for key, opinion in fresh.items()})
        except Exception:
            log.warning("opinions cannot be kept; a next report asks for them again", exc_info=True)

    def _settled(
        self, comparison: Comparison | None, asked: Question | None, opinions: Mapping[str, Opinion]
    ) -> Comparison | None:
        if comparison is None or asked is None:
            return comparison
        forward, backward = opinions.get(asked.key), opinions.get(asked.swapped.key)
        if forward is None or backward is None:
            self._results["open"] += 1
            return comparison
        agreed = forward is backward and forward is not Opinion.NONE
        self._results[forward.value.lower() if agreed else "tie"] += 1
        return settled(comparison, forward, backward)


def _both_orders(pair: _Questions) -> Iterator[tuple[str, Question]]:
    for asked in pair:
        if asked is not None:
            yield asked.key, asked
            yield asked.swapped.key, asked.swapped


def _told(found: Counter[str]) -> str:
    return (
        f"of {found.total():,} comparisons that similarity alone decided {found['same']:,} are the same and "
        f"{found['different']:,} different, {found['tie']:,} are ties and {found['open']:,} got no answer"
    )


def _kept_as(model: str) -> str:
    """The name under which a model's opinions are kept."""
    return model if len(model) <= _LONGEST_NAME else hashlib.sha256(model.encode()).hexdigest()


def _nothing(model: str, keys: Sequence[str]) -> Mapping[str, str]:
    return {}


def _nowhere(model: str, opinions: Mapping[str, str]) -> None:
    return None
