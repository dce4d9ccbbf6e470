"""The packaged model for real: what it scores, that it needs no network, and that it is quiet."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import numpy as np
import pytest

from migrate.embedder import Embedder, EmbeddingsMissing, load_model
from reports.compare import Embed, resolve
from reports.judgement import Severity
from tests.reports.said import compared


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
