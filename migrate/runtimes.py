"""Ways to run an embedding model on this CPU, and the choice of one by a short measurement on the texts at hand.

A batch is computed by one thread, and as many batches at a time as there are cores: threads that share a batch wait for each
other at every layer, the longer the busier the machine is. docs/decisions/0009-embedding-runtime.md has the measurements.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from migrate.cores import cores
from migrate.errors import MigrateError
from reports.compare import Embed
from reports.compare.model import Vectors

BOUND = 0.005
"""Furthest that a cosine may be from the one in float32; a runtime that is further off is not used."""
GAIN = 1.1
"""Times as fast as float32 that a runtime must be to take its place."""
_ROUNDS = 2
_WORKERS = 8
"""Threads that compute batches; more of them than this spend their time on Python's lock, so each has several cores."""
_BFLOAT16 = {"amx_bf16", "avx512_bf16", "bf16"}
"""Flags of CPUs that multiply in bfloat16 faster than in float32 (x86 and Arm)."""
_CPUINFO = Path("/proc/cpuinfo")
_ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "32",
}
"""Set unless the environment says otherwise, before the libraries read them: nothing phones home, and code that was made for
the shape of one batch is not kept for a thousand shapes, at 2 MB each."""

Batches = Sequence[Sequence[str]]


class EmbeddingsMissing(MigrateError):
    """The extra ``embeddings``, or the model, is not on this machine; the message says how to get it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """One way to run a model."""

    name: str
    encode: Embed
    """The vectors of one batch; several threads may call it at once."""
    workers: int = 1
    """Threads that should."""

    def vectors(self, batches: Batches) -> Generator[Vectors, None, None]:
        """The vectors of each batch, in order; as many batches at a time as there are workers."""
        with ThreadPoolExecutor(self.workers) as pool:
            try:
                yield from pool.map(self.encode, batches)
            finally:  # a generator that is left early, by Ctrl-C too, starts no further batch
                pool.shutdown(cancel_futures=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model, ready to run."""

    tokens: Callable[[Sequence[str]], Sequence[int]]
    """How many tokens it reads of each text."""
    runtimes: tuple[Runtime, ...]
    """Ways to run it here; float32 is the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The runtime that was chosen, and what was measured of each."""

    runtime: Runtime
    why: str


def choose(
    runtimes: Sequence[Runtime], sample: Batches, clock: Callable[[], float] = time.perf_counter
) -> Choice:
    """The fastest of ``runtimes`` whose cosines are within ``BOUND`` of the first's, which is float32.

    In turns over ``sample``, the best of each counts: what else the machine does slows some turns and speeds up none.
    """
    first, *others = runtimes
    right = _stacked(first, sample)  # and warms up
    offs = {runtime.name: _deviation(runtime, sample, right) for runtime in others}
    fit = [first, *(runtime for runtime in others if offs[runtime.name] <= BOUND)]
    taken = {runtime.name: float("inf") for runtime in fit}
    for runtime in fit * _ROUNDS:
        start = clock()
        _stacked(runtime, sample)
        taken[runtime.name] = min(taken[runtime.name], clock() - start)
    best = min(fit, key=lambda runtime: taken[runtime.name])
    if taken[best.name] * GAIN > taken[first.name]:
        best = first
    words = [_words(runtime, taken, offs, first) for runtime in others]
    return Choice(runtime=best, why="; ".join((f"{first.name} took {taken[first.name]:.2f} s", *words)))


def _deviation(runtime: Runtime, sample: Batches, right: Vectors) -> float:
    """The furthest that a cosine of two texts of the sample is off; infinite when the runtime fails or gives no numbers."""
    try:
        vectors = _stacked(runtime, sample)
        off = np.abs(vectors @ vectors.T - right @ right.T).max()
    except Exception:  # noqa: BLE001 - whatever a runtime raises, it is not used
        return float("inf")
    return float(off) if np.isfinite(off) else float("inf")


def _words(runtime: Runtime, taken: dict[str, float], offs: dict[str, float], first: Runtime) -> str:
    if runtime.name not in taken:
        return f"{runtime.name} is off by {offs[runtime.name]:.4f} in cosine (at most {BOUND})"
    ratio = taken[first.name] / max(taken[runtime.name], 1e-9)
    return f"{runtime.name} is {ratio:.1f} times as fast and off by {offs[runtime.name]:.4f} in cosine"


def _stacked(runtime: Runtime, sample: Batches) -> Vectors:
    return np.concatenate([unit(vectors) for vectors in runtime.vectors(sample)])


def load(where: str) -> Model:
    """The model ``where`` (a folder, or a name that the hub knows) on this CPU.

    Uses no network unless the environment says HF_HUB_OFFLINE=0. Raises OSError or ValueError when there is no such model.
    """
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    offline = os.environ["HF_HUB_OFFLINE"] not in ("0", "", "false")
    library, torch = import_module("sentence_transformers"), import_module("torch")
    _quiet()
    network = library.SentenceTransformer(where, device="cpu", local_files_only=offline)
    usable = min(cores(), torch.get_num_threads())
    threads = -(-usable // _WORKERS)
    workers = usable // threads
    encode = _encoder(torch, network, threads)

    def bfloat16(texts: Sequence[str]) -> Vectors:
        with torch.autocast("cpu", torch.bfloat16):
            return encode(texts)

    plain = Runtime(name="float32", encode=encode, workers=workers)
    list(
        plain.vectors([[""]])
    )  # the tokenizer takes its settings with the first text; threads must find them there
    half = Runtime(name="bfloat16", encode=bfloat16, workers=workers)
    return Model(
        tokens=lambda texts: _tokens(network, texts), runtimes=(plain, half) if has_bfloat16() else (plain,)
    )


def has_bfloat16(cpuinfo: Path = _CPUINFO) -> bool:
    """Whether the CPU multiplies in bfloat16; False where nothing says so."""
    try:
        return not _BFLOAT16.isdisjoint(cpuinfo.read_text(errors="replace").split())
    except OSError:
        return False


def _tokens(network: Any, texts: Sequence[str]) -> list[int]:
    """By the model's tokenizer; a model without one is asked for characters, which sort as well."""
    read = network.preprocess([_printable(text) for text in texts]).get("attention_mask")
    return [len(text) for text in texts] if read is None else read.sum(dim=1).tolist()


def _encoder(torch: Any, network: Any, threads: int) -> Embed:
    def encode(texts: Sequence[str]) -> Vectors:
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)  # of the calling thread alone
        vectors = network.encode(
            [_printable(text) for text in texts],
            batch_size=len(texts),
            show_progress_bar=False,
            convert_to_tensor=True,
        )
        return unit(vectors.float().numpy())

    return encode


def unit(vectors: Vectors) -> Vectors:
    """Rows of length 1, in float32; a row of zeros stays as it is."""
    rows = np.asarray(vectors, dtype=np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: Vectors = (rows / np.where(lengths == 0, 1, lengths)).astype(np.float32)
    return scaled


def _quiet() -> None:
    """The libraries draw bars of their own over ours while they load."""
    with contextlib.suppress(ImportError, AttributeError):
        logging = import_module("transformers.utils.logging")
        logging.disable_progress_bar()
        logging.set_verbosity_error()


def _printable(text: str) -> str:
    """Without lone surrogates, which no tokenizer takes."""
    return text.encode("utf-8", "replace").decode()
