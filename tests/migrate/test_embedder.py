"""The cache, the batches and the progress around an embedding model; the model itself is for tests/embeddings."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from migrate.embedder import DEFAULT_MODEL, Embedder, EmbeddingsMissing, cache_key
from migrate.gathering import compared
from migrate.runtimes import Model, Runtime
from migrate.store import Store, Writer
from reports.compare import Embed
from reports.compare.model import Vectors
from reports.policy import Policy
from tests.reports.builders import exchange
from tests.reports.made import START


class Shelf:
    """Vectors by (model, hash), as the store keeps them."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], bytes] = {}

    def read(self, model: str, hashes: Sequence[str]) -> dict[str, bytes]:
        return {name: self.kept[model, name] for name in hashes if (model, name) in self.kept}

    def write(self, model: str, vectors: Mapping[str, bytes]) -> None:
        self.kept |= {(model, name): vector for name, vector in vectors.items()}


def made(*runtimes: Runtime) -> Model:
    """A model that reads a token in four letters, 256 at most, and a token before and after."""
    return Model(tokens=lambda texts: [min(256, 2 + -(-len(text) // 4)) for text in texts], runtimes=runtimes)


class Letters:
    """A model that counts letters; it keeps what it was asked for."""

    def __init__(self) -> None:
        self.loaded: list[str] = []
        self.batches: list[list[str]] = []

    def load(self, model: str) -> Model:
        self.loaded.append(model)
        return made(Runtime(name="float32", encode=self.encode))

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.batches.append(list(texts))
        return np.array([[len(text), text.count("a"), 1] for text in texts], dtype=np.float32)

    @property
    def texts(self) -> list[str]:
        return [text for batch in self.batches for text in batch]


def refuse(model: str) -> Model:
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


def test_batches_are_bounded_in_tokens_and_of_like_length() -> None:
    model = Letters()
    Embedder(load=model.load)(["a" * (1 + n * 37 % 1_200) for n in range(1_200)])
    costs = [min(256, 2 + -(-len(text) // 4)) for text in model.texts]
    assert costs == sorted(costs)
    assert max(len(batch) for batch in model.batches) <= 64
    assert max(len(batch) * min(256, 2 + len(batch[-1]) // 4) for batch in model.batches) <= 2_048
    assert min(len(batch) for batch in model.batches[:-1]) == 8


def test_little_work_is_shared_among_the_workers() -> None:
    model = Letters()
    shared = Runtime(name="float32", encode=model.encode, workers=4)
    Embedder(load=lambda _: made(shared))([f"{n:040}" for n in range(8)])
    assert [len(batch) for batch in model.batches] == [2] * 4


def breaks_after(texts: int, error: type[BaseException], model: Letters) -> Embed:
    def encode(batch: Sequence[str]) -> Vectors:
        if len(model.texts) >= texts:
            raise error
        return model.encode(batch)

    return encode


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("workers", [1, 3])
def test_what_was_done_when_it_breaks_off_is_kept(error: type[BaseException], workers: int) -> None:
    model, shelf, rest = Letters(), Shelf(), Letters()
    texts = [f"text {n}" for n in range(2_000)]
    breaking = Runtime(name="float32", encode=breaks_after(900, error, model), workers=workers)
    with pytest.raises(error):
        Embedder(load=lambda _: made(breaking), read=shelf.read, write=shelf.write)(texts)
    assert len(shelf.kept) == len(model.texts) >= 900
    Embedder(load=rest.load, read=shelf.read, write=shelf.write)(texts)
    assert sorted(model.texts + rest.texts) == sorted(texts)


def test_ctrl_c_between_batches_ends_at_once_and_loses_nothing_that_was_counted() -> None:
    model, shelf = Letters(), Shelf()
    counted = 0

    def encode(batch: Sequence[str]) -> Vectors:
        time.sleep(0.01)
        return model.encode(batch)

    def pressed(done: int, total: int) -> None:
        nonlocal counted
        counted = done
        if done > total // 2:
            raise KeyboardInterrupt

    slow = Runtime(name="float32", encode=encode)
    embedder = Embedder(load=lambda _: made(slow), read=shelf.read, write=shelf.write, progress=pressed)
    with pytest.raises(KeyboardInterrupt):
        embedder([f"{n:08}" for n in range(2_000)])
    assert len(shelf.kept) == counted / 4
    assert len(model.texts) < 2_000


def test_progress_counts_tokens_so_that_long_texts_take_their_time() -> None:
    seen: list[tuple[int, int]] = []
    embedder = Embedder(load=Letters().load, progress=lambda done, total: seen.append((done, total)))
    embedder(["a" * 400, *(f"{n:04}" for n in range(200)), "b" * 400])
    assert (seen[0], seen[-1]) == ((0, 804), (804, 804))
    assert seen[1] == (64 * 3, 804)
    assert seen == sorted(seen)


def test_progress_is_of_what_the_cache_did_not_hold() -> None:
    shelf = Shelf()
    seen: list[tuple[int, int]] = []
    Embedder(load=Letters().load, read=shelf.read, write=shelf.write)(["aaaa", "bbbb"])
    embedder = Embedder(
        load=Letters().load, read=shelf.read, progress=lambda done, total: seen.append((done, total))
    )
    embedder(["aaaa", "bbbb"])
    assert seen == []
    embedder(["aaaa", "bbbb", "cccc", "dddd"])
    assert seen == [(0, 6), (6, 6)]


BOATS = ("ferry", "trawler", "cutter", "barge", "dinghy", "tug")


def test_a_report_on_a_live_run_embeds_only_what_is_new(tmp_path: Path) -> None:
    said = [
        (f"The {boat} leaves the harbour every morning", f"Every morning the {boat} leaves the harbour")
        for boat in BOATS
    ]
    with Store.open(f"sqlite:///{tmp_path}/m.db", create=True) as store:
        policy = Policy()
        store.begin_run(
            kind="shadow", config={}, policy=policy.model_dump(mode="json", by_alias=True), seed=1, at=START
        )
        run = store.run(None)
        asked: list[list[str]] = []
        for count in (4, 4, 6):
            writer = Writer(store, run.id)
            for one in [exchange(n, *said[n], repeat=False) for n in range(store.count(run.id), count)]:
                for seen in (one.request, one.baseline, one.candidate):
                    assert writer.offer(seen)
            assert writer.close(20)
            model = Letters()
            embed = Embedder(load=model.load, read=store.vectors, write=store.put_vectors)
            items = compared(store, run, policy, embed)
            assert [item.comparison.similarity is not None for item in items] == [True] * count
            asked.append(sorted(model.texts))
    assert asked[1] == []
    assert asked[0] == sorted(text for pair in said[:4] for text in pair)
    assert asked[2] == sorted(text for pair in said[4:] for text in pair)


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
