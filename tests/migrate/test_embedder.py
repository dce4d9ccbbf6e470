"""The cache, the batches and the progress around an embedding model; the model itself is for tests/embeddings."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from migrate.embedder import DEFAULT_MODEL, Embedder, EmbeddingsMissing, cache_key
from reports.compare import Embed
from reports.compare.model import Vectors


class Shelf:
    """Vectors by (model, hash), as the store keeps them."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], bytes] = {}

    def read(self, model: str, hashes: Sequence[str]) -> dict[str, bytes]:
        return {name: self.kept[model, name] for name in hashes if (model, name) in self.kept}

    def write(self, model: str, vectors: Mapping[str, bytes]) -> None:
        self.kept |= {(model, name): vector for name, vector in vectors.items()}


class Letters:
    """A model that counts letters; it keeps what it was asked for."""

    def __init__(self) -> None:
        self.loaded: list[str] = []
        self.batches: list[list[str]] = []

    def load(self, model: str) -> Embed:
        self.loaded.append(model)
        return self.encode

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.batches.append(list(texts))
        return np.array([[len(text), text.count("a"), 1] for text in texts], dtype=np.float32)

    @property
    def texts(self) -> list[str]:
        return [text for batch in self.batches for text in batch]


def refuse(model: str) -> Embed:
    raise EmbeddingsMissing(f"{model} is not here")


def test_one_unit_vector_a_text_in_the_order_asked() -> None:
    model = Letters()
    vectors = Embedder(load=model.load)(["aaaa", "b", "aaaa"])
    assert vectors.shape == (3, 3)
    assert (
        vectors[0].tolist() == vectors[2].tolist() == pytest.approx((np.array([4, 4, 1]) / 33**0.5).tolist())
    )
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0)


def test_a_text_is_encoded_once_however_often_it_is_asked() -> None:
    model, shelf = Letters(), Shelf()
    first = Embedder(load=model.load, read=shelf.read, write=shelf.write)(["pier", "boat", "pier"])
    again = Embedder(load=model.load, read=shelf.read, write=shelf.write)(["boat", "bell", "pier"])
    assert sorted(model.texts) == ["bell", "boat", "pier"]
    assert again[2].tolist() == first[0].tolist()
    assert again.dtype == np.float32


def test_the_model_is_loaded_when_first_needed_and_once() -> None:
    model, shelf = Letters(), Shelf()
    embedder = Embedder(load=model.load, read=shelf.read, write=shelf.write)
    assert model.loaded == []
    embedder(["pier"])
    embedder(["boat"])
    assert model.loaded == [DEFAULT_MODEL]


def test_what_is_known_needs_no_model() -> None:
    shelf = Shelf()
    known = Embedder(load=Letters().load, read=shelf.read, write=shelf.write)(["pier"])
    elsewhere = Embedder(load=refuse, read=shelf.read)
    assert elsewhere(["pier"]).tolist() == known.tolist()
    with pytest.raises(EmbeddingsMissing):
        elsewhere(["boat"])


def test_models_do_not_share_vectors() -> None:
    shelf, other = Shelf(), Letters()
    Embedder(load=Letters().load, read=shelf.read, write=shelf.write)(["pier"])
    Embedder("another", load=other.load, read=shelf.read, write=shelf.write)(["pier"])
    assert other.texts == ["pier"]


def test_batches_are_bounded_and_of_like_length() -> None:
    model = Letters()
    Embedder(load=model.load)(["a" * (1 + n * 37 % 100) for n in range(100)])
    assert max(len(batch) for batch in model.batches) <= 32
    assert [len(text) for text in model.texts] == list(range(1, 101))


def test_finished_work_is_kept_when_the_rest_fails() -> None:
    model, shelf = Letters(), Shelf()

    def dies(texts: Sequence[str]) -> Vectors:
        if len(model.texts) > 600:
            raise MemoryError
        return model.encode(texts)

    with pytest.raises(MemoryError):
        Embedder(load=lambda _: dies, read=shelf.read, write=shelf.write)([f"text {n}" for n in range(1_000)])
    assert len(shelf.kept) == 512


def test_progress_counts_to_the_number_of_distinct_texts() -> None:
    seen: list[tuple[int, int]] = []
    embedder = Embedder(load=Letters().load, progress=lambda done, total: seen.append((done, total)))
    embedder([f"text {n % 70}" for n in range(100)])
    assert (seen[0], seen[-1]) == ((0, 70), (70, 70))
    assert seen == sorted(seen)


def test_hostile_texts_have_hashes_too() -> None:
    assert Embedder(load=Letters().load)(["\ud800", "", "\x00"]).shape == (3, 3)
    assert Embedder(load=Letters().load)([]).shape[0] == 0


def test_a_folder_whose_content_changed_is_another_model(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"1")
    before = cache_key(str(tmp_path))
    (tmp_path / "model.safetensors").write_bytes(b"12")
    assert before != cache_key(str(tmp_path))
    assert cache_key(DEFAULT_MODEL) == DEFAULT_MODEL


def test_comparing_loads_no_model_library() -> None:
    script = (
        "import sys; import migrate.embedder, reports.compare; migrate.embedder.missing();"
        "print(sorted({'torch', 'transformers', 'sentence_transformers'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.parametrize("damage", [b"", b"\0", b"\0" * 8, np.full(3, np.nan, "<f4").tobytes()])
def test_a_vector_that_is_damaged_is_computed_again(damage: bytes) -> None:
    shelf, model = Shelf(), Letters()
    texts = ["aaaa", "b", "cc"]
    right = Embedder(load=model.load, read=shelf.read, write=shelf.write)(texts)
    shelf.kept[next(iter(shelf.kept))] = damage
    assert np.array_equal(Embedder(load=model.load, read=shelf.read, write=shelf.write)(texts), right)


def test_a_cache_that_is_locked_costs_time_and_no_score(caplog: pytest.LogCaptureFixture) -> None:
    def locked(*_: object) -> Any:
        raise OSError("database is locked")

    model = Letters()
    right = Embedder(load=model.load)(["aaaa", "b"])
    assert np.array_equal(Embedder(load=model.load, read=locked, write=locked)(["aaaa", "b"]), right)
    assert "computed again" in caplog.text
