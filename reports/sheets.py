"""Some thousand pairs of a run as plain arrays: what was found out about them once, and need not be found out again. Pure.

A sheet forgets nothing that a report on the run needs, except the texts; it is put together with others in ``gathered``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from hashlib import blake2b
from itertools import chain
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
LABELLED = "label:"
"""Before the name of a dimension."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """Pairs in time order."""

    arrays: dict[str, NDArray[Any]]
    """By name, those of an arm with its name and a dot before; an array of floats that are all NaN has no length."""
    gaps: dict[str, Counted]
    """Between chunks of an arm's answers; seconds, to the microsecond."""
    observations: int
    """From which it was made."""
    words: JSON
    """Ids, what the codes in arrays stand for (by the name of the array), and the causes."""

    def __len__(self) -> int:
        return int(self.arrays["at"].size)

    @property
    def first(self) -> tuple[float, str]:
        """Time and id of its first pair. There is one."""
        return float(self.arrays["at"][0]), self.words["ids"][0]

    @property
    def last(self) -> tuple[float, str]:
        """Time and id of its last pair. There is one."""
        return float(self.arrays["at"][-1]), self.words["ids"][-1]


def sheet(items: Iterable[Item], *, observations: int = 0) -> Sheet:
    """The sheet of these items. Raises ValueError as ``columns`` does."""
    ordered = sorted(items, key=lambda item: (item.pair.at, item.pair.id))
    pairs = [item.pair for item in ordered]
    table = columns(pairs, most=None)
    words, leads = _leading(ordered)
    arrays = {name: getattr(table, name) for name in OF_A_PAIR} | {
        "session": _digests([pair.session for pair in pairs]),
        "prompt": _digests([pair.prompt or None for pair in pairs]),
        "system": np.array([pair.system_prompt for pair in pairs], dtype=np.bool_),
        "severity": np.array([_severity(item) for item in ordered], dtype=np.int8),
        "similarity": np.array([_similarity(item) for item in ordered], dtype=np.float64),
        "leading": leads,
    }
    codes: dict[str, Sequence[str]] = {"leading": words}
    for column, (name, values) in enumerate(table.dimensions):
        arrays[f"{LABELLED}{name}"] = table.slices[:, column]
        codes[f"{LABELLED}{name}"] = values
    gaps, with_gaps = {}, {}
    for name in ARMS.values():
        seen = [_of(pair, name) for pair in pairs]
        arrays |= {f"{name}.{key}": value for key, value in _arm(getattr(table, name), seen).items()}
        codes[f"{name}.version"] = table.versions
        codes[f"{name}.language"] = [one.removeprefix(LANGUAGE) for one in table.traits[len(RATES) :]]
        streamed = [one.itl_s for one in seen if one and one.outcome is Outcome.OK and one.itl_s]
        gaps[name] = Counted.of(np.array(list(chain.from_iterable(streamed)), dtype=np.float64).round(6))
        with_gaps[name] = len(streamed)
    found = causes((item.pair.at, item.comparison) for item in ordered if item.comparison)
    return Sheet(
        arrays={name: _short(array) for name, array in arrays.items()},
        gaps=gaps,
        observations=observations,
        words={
            "ids": [pair.id for pair in pairs],
            "codes": codes,
            "with_gaps": with_gaps,
            "causes": [asdict(cause) for cause in found],
        },
    )


def _of(pair: Pair, arm: str) -> Measured | None:
    seen: Measured | None = getattr(pair, arm)
    return seen


def _arm(answers: Answers, seen: Sequence[Measured | None]) -> dict[str, NDArray[Any]]:
    return {name: getattr(answers, name) for name in (*OF_AN_ARM, "version")} | {
        "rates": answers.traits[:, : len(RATES)],
        "language": _language(answers.traits[:, len(RATES) :]),
        "answer": _digests([one.traits.answer if one and one.traits else None for one in seen]),
        "prompt_tokens": np.array([one.prompt_tokens or 0 if one else 0 for one in seen], dtype=np.int64),
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
    arrays = dict(page.arrays)
    for name, gaps in page.gaps.items():
        ticks = np.rint(gaps.values * 1e6).astype(np.int64)
        arrays[f"{name}.gaps"] = np.diff(ticks, prepend=0)  # which compress better than they do
        arrays[f"{name}.counts"] = gaps.counts
    head = {
        "arrays": [(name, array.dtype.str, array.shape) for name, array in arrays.items()],
        "observations": page.observations,
        "words": page.words,
    }
    data = (np.ascontiguousarray(array).tobytes() for array in arrays.values())
    return b"".join([json.dumps(head).encode(), b"\n", *data])


def unpacked(data: bytes) -> Sheet:
    """The sheet behind ``packed``. Raises ValueError, TypeError or KeyError when it is none."""
    head, _, rest = data.partition(b"\n")
    said, start = json.loads(head), 0
    arrays: dict[str, NDArray[Any]] = {}
    for name, dtype, shape in said["arrays"]:
        count = int(np.prod(shape))
        arrays[name] = np.frombuffer(rest, dtype=np.dtype(dtype), count=count, offset=start).reshape(shape)
        start += arrays[name].nbytes
    gaps = {  # without the rest of the bytes
        name: Counted(np.cumsum(arrays.pop(f"{name}.gaps")) / 1e6, arrays.pop(f"{name}.counts").copy())
        for name in ARMS.values()
    }
    return Sheet(arrays=arrays, gaps=gaps, observations=said["observations"], words=said["words"])
