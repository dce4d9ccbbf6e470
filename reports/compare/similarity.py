"""What rules cannot decide: the lowest cosine over aligned chunks of the two texts.

An embedding model reads a few hundred tokens and ignores the rest, and one vector of a long text hides a wrong
sentence in it. So both texts are cut at sentence ends into the same number of chunks, and the worst chunk counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reports.compare.model import Comparison, Embed, Vectors, both, worst
from reports.judgement import Finding, Severity

TOKENS = 190
"""Estimated tokens a chunk; the default model reads 256, and estimates are off."""
MAX_CHUNKS = 64
"""A text that needs more is left unscored."""
_PIECE = TOKENS // 4
_LETTERS = 5
"""Letters a token in prose; each further started five count one more."""
_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    """The chunks of two texts."""

    baseline: tuple[str, ...]
    candidate: tuple[str, ...]


def resolve(comparisons: Iterable[Comparison], embed: Embed | None, floor: float) -> tuple[Comparison, ...]:
    """Decides the undecided comparisons: below ``floor`` BLOCK, else NOTE. The others pass through.

    All distinct chunks go to ``embed`` in one call. Without ``embed``, or when it fails, the undecided stay
    unscored, with a NOTE that says why. Never raises.
    """
    results = tuple(comparisons)
    chunked = {
        at: tuple(align(*texts) for texts in result.undecided)
        for at, result in enumerate(results)
        if result.undecided
    }
    table, problem = _embedded(chunked.values(), embed)
    return tuple(
        result if at not in chunked else _decided(result, chunked[at], table, problem, floor)
        for at, result in enumerate(results)
    )


def align(baseline: str, candidate: str) -> _Pair:
    """Both texts (one sentence a line) cut into the same number of chunks, as far as they are long enough."""
    old, new = _pieces(baseline), _pieces(candidate)
    count = max(1, -(-_cost(old) // TOKENS), -(-_cost(new) // TOKENS))
    return _Pair(baseline=_cut(old, count), candidate=_cut(new, count))


def _embedded(groups: Iterable[tuple[_Pair, ...]], embed: Embed | None) -> tuple[dict[str, Vectors], str]:
    """The vector of each distinct chunk, or none and why not."""
    pairs = [pair for group in groups for pair in group if not _too_long(pair)]
    texts = list(dict.fromkeys(chunk for pair in pairs for chunk in (*pair.baseline, *pair.candidate)))
    if embed is None:
        return {}, "no embedding model is installed"
    if not texts:
        return {}, ""
    try:
        vectors = np.asarray(embed(texts), dtype=np.float32)
    except Exception as error:  # noqa: BLE001 - whatever a model runtime raises costs the similarity, not the report
        return {}, f"the embedding failed: {error}"
    if vectors.ndim != 2 or len(vectors) != len(texts):
        return {}, f"the embedding gave an array of shape {vectors.shape} for {len(texts)} texts"
    return dict(zip(texts, vectors, strict=True)), ""


def _decided(
    result: Comparison, pairs: tuple[_Pair, ...], table: dict[str, Vectors], problem: str, floor: float
) -> Comparison:
    if any(map(_too_long, pairs)):
        return _unscored(result, f"a text is longer than {MAX_CHUNKS} chunks of {TOKENS} tokens")
    if problem:
        return _unscored(result, problem)
    lowest = min((_lowest(pair, table) for pair in pairs), key=lambda found: found[0])
    similarity, texts = lowest
    if not np.isfinite(similarity):
        return _unscored(result, "the embedding holds a value that is no number")
    findings = (*result.findings, _finding(similarity, texts, floor))
    return replace(
        result,
        severity=worst(findings),
        findings=findings,
        similarity=similarity,
        scored=not any(finding.severity is Severity.INVALID for finding in findings),
        undecided=(),
    )


def _lowest(pair: _Pair, table: dict[str, Vectors]) -> tuple[float, tuple[str, str]]:
    """The lowest of every chunk's best cosine with the chunks around the same place on the other side."""
    old = np.stack([table[chunk] for chunk in pair.baseline])
    new = np.stack([table[chunk] for chunk in pair.candidate])
    cosine = old @ new.T
    near = (
        np.abs(_places(len(old))[:, None] - _places(len(new))[None, :])
        <= 1.0 / max(len(old), len(new)) + 1e-9
    )
    cosine = np.where(near, cosine, -2.0)
    row, column = int(cosine.max(axis=1).argmin()), int(cosine.max(axis=0).argmin())
    worst_old = float(cosine[row].max()), (pair.baseline[row], pair.candidate[int(cosine[row].argmax())])
    worst_new = (
        float(cosine[:, column].max()),
        (pair.baseline[int(cosine[:, column].argmax())], pair.candidate[column]),
    )
    if not (np.isfinite(old).all() and np.isfinite(new).all()):
        return float("nan"), worst_old[1]
    return min(worst_old, worst_new, key=lambda found: found[0])


def _places(count: int) -> Vectors:
    """Where the middle of each chunk lies, as a share of the text."""
    return ((np.arange(count) + 0.5) / count).astype(np.float32)


def _finding(similarity: float, texts: tuple[str, str], floor: float) -> Finding:
    below = similarity < floor
    relation = "below" if below else "at or above"
    return Finding(
        comparator="similarity",
        category="text.similarity" if below else "text.reworded",
        severity=Severity.BLOCK if below else Severity.NOTE,
        message=f"lowest cosine of aligned chunks {similarity:.3f}, {relation} the floor {floor:g}",
        evidence=both(*texts),
    )


def _unscored(result: Comparison, why: str) -> Comparison:
    finding = Finding(
        comparator="similarity",
        category="similarity.unscored",
        severity=Severity.NOTE,
        message=f"the texts differ and nothing could say how much: {why}",
    )
    findings = (*result.findings, finding)
    return replace(result, severity=worst(findings), findings=findings, scored=False)


def _too_long(pair: _Pair) -> bool:
    return max(len(pair.baseline), len(pair.candidate)) > MAX_CHUNKS


def _pieces(text: str) -> list[tuple[str, int]]:
    """Sentences, and parts of long ones, with their estimated tokens."""
    return [piece for line in text.split("\n") for piece in _sentence(line)]


def _sentence(line: str) -> Iterator[tuple[str, int]]:
    words: list[str] = []
    spent = 0
    for word in _words(line):
        tokens = _tokens(word)
        if words and spent + tokens > _PIECE:
            yield " ".join(words), spent
            words, spent = [], 0
        words.append(word)
        spent += tokens
    if words:
        yield " ".join(words), spent


def _words(line: str) -> Iterator[str]:
    """Words, the endless ones in parts."""
    for match in _WORD.finditer(line):
        word = match[0]
        for start in range(0, len(word), _PIECE):
            yield word[start : start + _PIECE]


def _tokens(word: str) -> int:
    """Estimated tokens: one for five letters, one for each character beyond the alphabets."""
    wide = sum(char > "\u2e7f" for char in word)
    return max(1, wide + -(-(len(word) - wide) // _LETTERS))


def _cost(pieces: Sequence[tuple[str, int]]) -> int:
    return sum(tokens for _, tokens in pieces)


def _cut(pieces: Sequence[tuple[str, int]], count: int) -> tuple[str, ...]:
    """``count`` chunks of about equal length; fewer when there are fewer pieces."""
    share = _cost(pieces) / count
    chunks: list[list[str]] = [[]]
    spent = 0
    for text, tokens in pieces:
        # A piece belongs to the chunk in which its middle lies.
        if chunks[-1] and spent + tokens / 2 >= share * len(chunks) and len(chunks) < count:
            chunks.append([])
        chunks[-1].append(text)
        spent += tokens
    return tuple(" ".join(chunk) for chunk in chunks)
