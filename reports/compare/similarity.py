"""What rules cannot decide: the lowest cosine over aligned chunks of the two texts.

An embedding model reads a few hundred tokens and ignores the rest, and one vector of a long text hides a wrong
sentence in it. So both texts are cut at sentence ends into the same number of chunks, and the worst chunk counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from reports.compare.model import Comparison, Embed, Vectors, both, worst
from reports.judgement import Finding, Severity

TOKENS = 190
"""Estimated tokens a chunk; the default model reads 256, and estimates are off."""
MAX_CHUNKS = 64
"""A text that needs more is left unscored."""
_PIECE = TOKENS // 4
_DRIFT = 6
"""Pieces by which a cut may be moved to fall on the same sentence in both texts."""
_LETTERS = 5
"""Letters a token in prose; each further started five count one more."""
_WORD = re.compile(r"\S+")

Pieces = list[tuple[str, int]]
"""Sentences, and parts of long ones, with their estimated tokens."""


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


def align(baseline: str, candidate: str) -> _Pair | None:
    """Both texts (one sentence a line) cut into the same number of chunks, as far as they are long enough.

    ``None`` when that takes more than ``MAX_CHUNKS``.
    """
    first, second = sorted((baseline, candidate))  # so that swapping the sides changes no cut
    guide, follower = _pieces(first), _pieces(second)
    count = max(1, -(-_cost(guide) // TOKENS), -(-_cost(follower) // TOKENS))
    if count > MAX_CHUNKS:
        return None
    starts = _starts(guide, count)
    chunks = {
        first: _joined(guide, starts),
        second: _joined(follower, _following(guide, starts, follower, _starts(follower, count))),
    }
    return _Pair(baseline=chunks[baseline], candidate=chunks[candidate])


def _embedded(
    groups: Iterable[tuple[_Pair | None, ...]], embed: Embed | None
) -> tuple[dict[str, Vectors], str]:
    """The vector of each distinct chunk, or none and why not."""
    pairs = [pair for group in groups for pair in group if pair]
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
    result: Comparison,
    aligned: tuple[_Pair | None, ...],
    table: dict[str, Vectors],
    problem: str,
    floor: float,
) -> Comparison:
    pairs = [pair for pair in aligned if pair]
    if len(pairs) < len(aligned):
        return _unscored(result, f"a text is longer than {MAX_CHUNKS} chunks of {TOKENS} tokens")
    if problem:
        return _unscored(result, problem)
    if not all(
        np.isfinite(table[chunk]).all() for pair in pairs for chunk in (*pair.baseline, *pair.candidate)
    ):
        return _unscored(result, "the embedding holds a value that is no number")
    similarity, texts = min((_lowest(pair, table) for pair in pairs), key=lambda found: found[0])
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
        <= 1.0 / min(len(old), len(new)) + 1e-6
    )
    cosine = np.where(near, cosine, -2.0)
    row, column = int(cosine.max(axis=1).argmin()), int(cosine.max(axis=0).argmin())
    worst_old = float(cosine[row].max()), (pair.baseline[row], pair.candidate[int(cosine[row].argmax())])
    worst_new = (
        float(cosine[:, column].max()),
        (pair.baseline[int(cosine[:, column].argmax())], pair.candidate[column]),
    )
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


def _pieces(text: str) -> Pieces:
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


def _cost(pieces: Pieces) -> int:
    return sum(tokens for _, tokens in pieces)


def _starts(pieces: Pieces, count: int) -> list[int]:
    """Where the second and later of ``count`` chunks of about equal length begin; fewer when pieces are few."""
    share, spent = _cost(pieces) / count, 0
    starts: list[int] = []
    for at, (_, tokens) in enumerate(pieces):
        # A piece belongs to the chunk in which its middle lies.
        if at > (starts[-1] if starts else 0) and spent + tokens / 2 >= share * (len(starts) + 1):
            starts.append(at)
        spent += tokens
    return starts[: count - 1]


def _following(guide: Pieces, starts: list[int], follower: Pieces, own: list[int]) -> list[int]:
    """The follower's cuts, moved to where the guide is cut if that very sentence stands near: one inserted sentence
    would otherwise shift the content of every later chunk."""
    cuts: list[int] = []
    for start, usual in zip(starts, own, strict=False):
        lowest = (cuts[-1] if cuts else 0) + 1
        near = range(max(lowest, usual - _DRIFT), min(len(follower), usual + _DRIFT + 1))
        found = [(abs(at - usual), at) for at in near if follower[at] == guide[start]]
        cuts.append(min(found)[1] if found else max(usual, lowest))
    return [cut for cut in cuts if cut < len(follower)]


def _joined(pieces: Pieces, starts: list[int]) -> tuple[str, ...]:
    bounds = [0, *starts, len(pieces)]
    return tuple(" ".join(text for text, _ in pieces[low:high]) for low, high in pairwise(bounds))
