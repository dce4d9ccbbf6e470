"""The choice of a runtime, and how many cores there are for it; the real runtimes are for tests/embeddings."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from migrate.cores import cores
from migrate.embedder import Embedder
from migrate.runtimes import BOUND, Runtime, choose, has_bfloat16
from reports.compare.model import Vectors
from tests.migrate.test_embedder import Shelf, made

SAMPLE = [[f"pier {n}", f"boat {n * n}"] for n in range(4)]
TEXTS = [f"text {n} {'and so on ' * 40}" for n in range(1_000)]


def spread_out(texts: Sequence[str]) -> Vectors:
    """A direction for each text."""
    return np.array([[len(text) % 7, sum(map(ord, text)) % 11, 3] for text in texts], dtype=np.float32)


def runtime(name: str, *, seconds: float = 0.0, bent: float = 0.0, kind: str = "f4") -> Runtime:
    """Takes ``seconds`` a batch, and bends its vectors by about ``bent`` in cosine."""

    def encode(texts: Sequence[str]) -> Vectors:
        time.sleep(seconds)
        exact = spread_out(texts)
        return (exact / np.linalg.norm(exact, axis=1, keepdims=True) + [[bent, 0, 0]]).astype(kind)

    return Runtime(name=name, encode=encode)


SLOW = runtime("float32", seconds=0.02)


def test_the_fastest_is_chosen_and_the_reason_has_figures() -> None:
    choice = choose([SLOW, runtime("slower", seconds=0.03), runtime("fast")], SAMPLE)
    assert choice.runtime.name == "fast"
    assert "float32 took 0.0" in choice.why
    assert "slower is 0." in choice.why and "fast is " in choice.why


def test_what_is_hardly_faster_changes_nothing() -> None:
    clock = iter([0.0, 1.0, 1.0, 1.95, 2.0, 3.0, 3.0, 3.95])
    choice = choose([runtime("float32"), runtime("other")], SAMPLE, clock=lambda: next(clock))
    assert choice.runtime.name == "float32"


def test_the_best_turn_counts_so_that_a_busy_moment_decides_nothing() -> None:
    clock = iter([0.0, 2.0, 2.0, 10.0, 10.0, 12.0, 12.0, 13.0])
    choice = choose([runtime("float32"), runtime("other")], SAMPLE, clock=lambda: next(clock))
    assert choice.runtime.name == "other"


def test_fast_and_wrong_is_not_chosen() -> None:
    choice = choose([SLOW, runtime("int8", bent=0.3)], SAMPLE)
    assert choice.runtime.name == "float32"
    assert "int8 is off by 0." in choice.why and f"at most {BOUND}" in choice.why


def test_what_is_off_by_less_than_the_bound_may_be_chosen() -> None:
    assert choose([SLOW, runtime("bfloat16", bent=0.001)], SAMPLE).runtime.name == "bfloat16"


@pytest.mark.parametrize("kind", ["f2", "f8"])
def test_another_dtype_than_float32_is_read(kind: str) -> None:
    choice = choose([SLOW, runtime("other", kind=kind)], SAMPLE)
    assert choice.runtime.name == "other"


def fails(texts: Sequence[str]) -> Vectors:
    raise RuntimeError("could not create a primitive")


def no_numbers(texts: Sequence[str]) -> Vectors:
    return np.full((len(texts), 3), np.nan, dtype=np.float32)


def too_few(texts: Sequence[str]) -> Vectors:
    return spread_out(texts[1:])


@pytest.mark.parametrize("encode", [fails, no_numbers, too_few])
def test_a_runtime_that_does_not_work_here_is_not_chosen(encode: object) -> None:
    assert choose([SLOW, Runtime(name="broken", encode=encode)], SAMPLE).runtime.name == "float32"  # type: ignore[arg-type]


def test_batches_are_computed_by_several_threads_and_given_in_order() -> None:
    meet = threading.Barrier(3, timeout=10)

    def encode(texts: Sequence[str]) -> Vectors:
        meet.wait()
        return spread_out(texts)

    batches = [[f"{n}" * n] for n in range(1, 10)]
    rows = list(Runtime(name="float32", encode=encode, workers=3).vectors(batches))
    assert [row.tolist() for row in rows] == [spread_out(batch).tolist() for batch in batches]


def test_little_work_is_done_without_a_measurement() -> None:
    embedder = Embedder(load=lambda _: made(SLOW, runtime("fast")))
    embedder(TEXTS[:100])
    assert embedder.choice is None


def test_much_work_in_many_calls_is_worth_a_measurement() -> None:
    embedder = Embedder(load=lambda _: made(runtime("float32", seconds=0.002), runtime("fast")))
    for start in range(0, len(TEXTS), 50):
        embedder(TEXTS[start : start + 50])
    assert embedder.choice is not None and embedder.choice.runtime.name == "fast"


def test_vectors_beyond_the_bound_never_reach_the_cache() -> None:
    shelf, plain = Shelf(), Shelf()
    wrong = Embedder(load=lambda _: made(SLOW, runtime("int8", bent=0.3)), read=shelf.read, write=shelf.write)
    wrong(TEXTS)
    Embedder(load=lambda _: made(SLOW), read=plain.read, write=plain.write)(TEXTS)
    assert wrong.choice is not None and shelf.kept == plain.kept


GROUPS = [
    ("0::/a/b", {"a/b/cpu.max": "max 100000"}, None),
    ("0::/a/b", {"a/b/cpu.max": "150000 100000"}, 1),
    ("0::/a/b", {"a/b/cpu.max": "max 100000", "a/cpu.max": "100000 100000"}, 1),
    ("0::/", {"cpu.max": "50000 100000"}, 1),
    ("0::/", {"cpu.max": "100000000 100000"}, None),
    ("0::/", {"cpu.max": "damaged"}, None),
    (
        "3:cpu,cpuacct:/docker/x\n1:memory:/m",
        {"cpu,cpuacct/cpu.cfs_quota_us": "100000\n", "cpu,cpuacct/cpu.cfs_period_us": "100000\n"},
        1,
    ),
    ("1:cpu:/", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
    ("damaged", {}, None),
]


@pytest.mark.parametrize(("group", "files", "limit"), GROUPS)
def test_limits_of_control_groups_are_cores(
    tmp_path: Path, group: str, files: dict[str, str], limit: int | None
) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(group + "\n")
    for name, text in files.items():
        file = tmp_path / "sys/fs/cgroup" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert cores(tmp_path) == (limit or cores(tmp_path / "nothing"))


@pytest.mark.parametrize(
    ("text", "has"),
    [
        ("flags\t\t: fpu avx512f avx512_bf16 xsaves", True),
        ("flags : amx_tile amx_bf16", True),
        ("Features : fp asimd bf16", True),
        ("flags : fpu avx2 avx512f", False),
    ],
)
def test_a_cpu_says_whether_it_has_bfloat16(tmp_path: Path, text: str, has: bool) -> None:
    (tmp_path / "cpuinfo").write_text(text)
    assert has_bfloat16(tmp_path / "cpuinfo") is has
    assert not has_bfloat16(tmp_path / "absent")
