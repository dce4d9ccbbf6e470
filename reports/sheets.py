"""Some thousand pairs of a run as plain arrays: what was found out about them once, and need not be found out again. Pure.

A sheet forgets nothing that a report on the run needs, except the texts; it is put together with others in ``gathered``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replay.exchange import JSON, Arm, Outcome
from reports.causes import causes
from reports.columns import LANGUAGE, RATES, Answers, columns
from reports.compare.model import rank
from reports.counted import Counted
from reports.judgement import Measured, Pair
from reports.shown import Item, leading

ARMS = {Arm.BASELINE: "baseline", Arm.CANDIDATE: "candidate", Arm.BASELINE_REPEAT: "repeat"}
OF_AN_ARM = tuple(field.name for field in fields(Answers) if field.name not in ("version", "traits"))
OF_A_PAIR = (
    *(
        "at",
        "repeated",
        "streamed",
        "comparable",
        "differs",
        "repeat_differs",
        "differs_by",
        "repeat_differs_by",
    ),
)
"""Columns that are kept as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """Pairs in time order."""

    arrays: dict[str, NDArray[Any]]
    """By name, those of an arm with its name and a dot before; an array of floats that are all NaN has no length."""
    words: JSON
    """Ids, what the numbers in arrays stand for, and the causes."""

    def __len__(self) -> int:
        return int(self.arrays["at"].size)

    @property
    def last(self) -> tuple[float, str]:
        """Time and id of its last pair. There is one."""
        return float(self.arrays["at"][-1]), self.words["ids"][-1]


def sheet(items: Iterable[Item]) -> Sheet:
    """The sheet of these items. Raises ValueError as ``columns`` does."""
    ordered = sorted(items, key=lambda item: (item.pair.at, item.pair.id))
    pairs = [item.pair for item in ordered]
    table = columns(pairs, most=None)
    words, codes = _leading(ordered)
    arrays = {name: getattr(table, name) for name in (*OF_A_PAIR, "slices")} | {
        "session": _digests([pair.session for pair in pairs]),
        "prompt": _digests([pair.prompt or None for pair in pairs]),
        "system": np.array([pair.system_prompt for pair in pairs], dtype=np.bool_),
        "severity": np.array([_severity(item) for item in ordered], dtype=np.int8),
        "similarity": np.array([_similarity(item) for item in ordered], dtype=np.float64),
        "leading": codes,
    }
    gaps: dict[str, int] = {}
    for name in ARMS.values():
        seen = [_of(pair, name) for pair in pairs]
        arrays |= {f"{name}.{key}": value for key, value in _arm(getattr(table, name), seen).items()}
        gaps[name] = sum(bool(one and one.outcome is Outcome.OK and one.itl_s) for one in seen)
    found = causes((item.pair.at, item.comparison) for item in ordered if item.comparison)
    return Sheet(
        arrays={name: _short(array) for name, array in arrays.items()},
        words={
            "ids": [pair.id for pair in pairs],
            "versions": table.versions,
            "languages": [name.removeprefix(LANGUAGE) for name in table.traits[len(RATES) :]],
            "dimensions": table.dimensions,
            "leading": words,
            "with_gaps": gaps,
            "causes": [asdict(cause) for cause in found],
        },
    )


def _of(pair: Pair, arm: str) -> Measured | None:
    seen: Measured | None = getattr(pair, arm)
    return seen


def _arm(answers: Answers, seen: Sequence[Measured | None]) -> dict[str, NDArray[Any]]:
    gaps = [gap for one in seen if one and one.outcome is Outcome.OK for gap in one.itl_s]
    counted = Counted.of(np.array(gaps, dtype=np.float64).round(6))
    return {name: getattr(answers, name) for name in (*OF_AN_ARM, "version")} | {
        "rates": answers.traits[:, : len(RATES)],
        "language": _language(answers.traits[:, len(RATES) :]),
        "answer": _digests([one.traits.answer if one and one.traits else None for one in seen]),
        "prompt_tokens": np.array([one.prompt_tokens or 0 if one else 0 for one in seen], dtype=np.int64),
        "gaps": counted.values,
        "gap_counts": counted.counts,
    }


def _language(spoken: NDArray[np.int8]) -> NDArray[np.int64]:
    """Which column says yes; -1 where none does."""
    found = np.concatenate([np.zeros((len(spoken), 1), dtype=np.int8), spoken], axis=1) > 0
    place: NDArray[np.int64] = found.argmax(axis=1) - 1
    return place


def _digests(texts: Sequence[str | None]) -> NDArray[np.uint64]:
    """A number for each text, equal for equal ones; 0 for none."""
    known = {text: _digest(text) for text in set(texts)}
    return np.array([known[text] for text in texts], dtype=np.uint64)


def _digest(text: str | None) -> int:
    if text is None:
        return 0
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()) or 1


def _severity(item: Item) -> int:
    """-1 without a comparison."""
    return rank(item.comparison.severity) if item.comparison else -1


def _similarity(item: Item) -> float:
    similarity = item.comparison.similarity if item.comparison else None
    return np.nan if similarity is None else similarity


def _leading(items: Sequence[Item]) -> tuple[list[str], NDArray[np.int32]]:
    known: dict[str, int] = {}
    codes = [known.setdefault(leading(item), len(known)) for item in items]
    return list(known), np.array(codes, dtype=np.int32)


def _short(array: NDArray[Any]) -> NDArray[Any]:
    unknown = array.dtype == np.float64 and array.size and np.isnan(array).all()
    return array[:0] if unknown else array


def packed(page: Sheet) -> bytes:
    """As bytes: a line of JSON, then the arrays one after the other."""
    head = {
        "arrays": [(name, array.dtype.str, array.shape) for name, array in page.arrays.items()],
        "words": page.words,
    }
    return b"".join(
        [
            json.dumps(head).encode(),
            b"\n",
            *(np.ascontiguousarray(one).tobytes() for one in page.arrays.values()),
        ]
    )


def unpacked(data: bytes) -> Sheet:
    """The sheet behind ``packed``. Raises ValueError, TypeError or KeyError when it is none."""
    head, _, rest = data.partition(b"\n")
    said, start, arrays = json.loads(head), 0, {}
    for name, dtype, shape in said["arrays"]:
        count = int(np.prod(shape))
        arrays[name] = np.frombuffer(rest, dtype=np.dtype(dtype), count=count, offset=start).reshape(shape)
        start += arrays[name].nbytes
    return Sheet(arrays=arrays, words=said["words"])
