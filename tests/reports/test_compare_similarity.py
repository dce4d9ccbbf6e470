"""The second phase: chunks, one call of the model, the floor, and what happens without a model."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest

from reports.compare import Comparison, resolve
from reports.compare.model import Vectors
from reports.compare.similarity import MAX_CHUNKS, TOKENS, align
from reports.judgement import Severity
from tests.reports.said import categories, compared

FLOOR = 0.85
OLD = "The ferry leaves the harbour every morning and returns by evening."
NEAR = "Every morning the ferry leaves the harbour, and returns by evening."
FAR = "Bread rises because the yeast in the dough makes small bubbles of gas."


def bag(texts: Sequence[str]) -> Vectors:
    """Words hashed into 512 directions: texts with the same words point the same way."""
    vectors = np.zeros((len(texts), 512), dtype=np.float32)
    for row, text in enumerate(texts):
        for word in re.findall(r"\w+", text.lower()):
            vectors[row, sum(ord(char) * 31**at for at, char in enumerate(word)) % 512] += 1
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)


class Counting:
    """An embedder that keeps what it was asked for."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def __call__(self, texts: Sequence[str]) -> Vectors:
        self.calls.append(list(texts))
        return bag(texts)


def only(old: str, new: str) -> Comparison:
    return resolve([compared(old, new)], bag, FLOOR)[0]


def essay(seed: int, sentences: int) -> list[str]:
    rng = np.random.default_rng(seed)
    words = [f"{a}{b}{c}" for a in "bdfgklmn" for b in "aeiou" for c in "rstv"]
    return [" ".join(rng.choice(words, 12)).capitalize() + "." for _ in range(sentences)]


class TestFloor:
    def test_at_or_above_it_is_a_note(self) -> None:
        result = only(OLD, NEAR)
        assert (categories(result), result.severity, result.scored) == (
            ["text.reworded"],
            Severity.NOTE,
            True,
        )
        assert result.similarity is not None and result.similarity >= FLOOR
        assert result.undecided == ()

    def test_below_it_is_blocked(self) -> None:
        result = only(OLD, FAR)
        assert (categories(result), result.severity, result.scored) == (
            ["text.similarity"],
            Severity.BLOCK,
            True,
        )
        assert result.findings[0].evidence.startswith("baseline: The ferry leaves")
        assert "candidate: Bread rises" in result.findings[0].evidence

    def test_it_is_the_policy_that_sets_it(self) -> None:
        assert resolve([compared(OLD, FAR)], bag, -1.0)[0].severity is Severity.NOTE

    def test_the_decision_is_symmetric(self) -> None:
        for new in (NEAR, FAR):
            assert only(OLD, new).similarity == pytest.approx(only(new, OLD).similarity)


class TestChunks:
    def test_an_ending_beyond_what_a_model_reads_still_counts(self) -> None:
        head = essay(1, 40)
        old, new = " ".join(head + essay(2, 30)), " ".join(head + essay(3, 30))
        assert only(old, new).severity is Severity.BLOCK

    def test_an_inserted_sentence_does_not_shift_the_rest(self) -> None:
        text = essay(4, 80)
        result = only(" ".join(text), " ".join(["Here is what I know about it.", *text]))
        assert result.similarity is not None and result.similarity > 0.95

    def test_no_chunk_is_longer_than_a_model_reads(self) -> None:
        for text in ("\n".join(essay(5, 90)), "word " * 3_000, "x" * 9_000, "\u6c34" * 3_000):
            pair = align(text, text + " tail")
            assert pair is not None and len(pair.baseline) > 1
            assert max(len(chunk.split()) for chunk in pair.baseline) <= TOKENS * 1.3
            assert "".join("".join(pair.baseline).split()) == "".join(text.split())

    def test_texts_of_very_different_length_are_compared(self) -> None:
        result = only("Paris is the capital of France today.", " ".join(essay(6, 60)))
        assert (result.severity, result.scored) == (Severity.BLOCK, True)
        assert result.similarity is not None and -1 <= result.similarity <= 1

    def test_a_text_of_too_many_chunks_is_not_scored(self) -> None:
        text = "word " * (TOKENS * (MAX_CHUNKS + 1))
        result = only(text, text + "and a tail")
        assert (categories(result), result.scored, result.similarity) == (
            ["similarity.unscored"],
            False,
            None,
        )


class TestOneCall:
    def test_each_distinct_text_is_embedded_once_for_all_pairs(self) -> None:
        embed = Counting()
        results = resolve(
            [compared(OLD, NEAR), compared(OLD, FAR), compared(NEAR, OLD), compared(OLD, OLD)], embed, FLOOR
        )
        assert [len(call) for call in embed.calls] == [3]
        assert [r.severity for r in results] == [Severity.NOTE, Severity.BLOCK, Severity.NOTE, Severity.EQUAL]

    def test_nothing_undecided_needs_no_model(self) -> None:
        embed = Counting()
        decided = [compared(OLD, OLD), compared("Paris", "Lyon")]
        assert resolve(decided, embed, FLOOR) == tuple(decided)
        assert embed.calls == []


def fails(texts: Sequence[str]) -> Vectors:
    raise RuntimeError("out of memory")


def too_few(texts: Sequence[str]) -> Vectors:
    return bag(texts)[:-1]


def not_numbers(texts: Sequence[str]) -> Vectors:
    return bag(texts) * np.float32("nan")


class TestWithoutSimilarity:
    @pytest.mark.parametrize("embed", [None, fails, too_few, not_numbers])
    def test_the_undecided_are_not_scored_and_the_others_are(self, embed: object) -> None:
        results = resolve([compared(OLD, NEAR), compared("Paris", "Lyon")], embed, FLOOR)  # type: ignore[arg-type]
        assert [result.scored for result in results] == [False, True]
        assert (results[0].severity, results[0].similarity) == (Severity.NOTE, None)
        assert categories(results[0]) == ["similarity.unscored"]

    def test_the_reason_is_told(self) -> None:
        assert "out of memory" in resolve([compared(OLD, NEAR)], fails, FLOOR)[0].findings[0].message
