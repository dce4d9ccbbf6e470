"""Whatever a log holds, reading it raises nothing: each record comes out as a record or is skipped with a reason."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from migrate.imports import observed
from replay.formats import read, sources_of
from replay.formats.record import Item, Record, Skip, Use
from tests.replay.test_formats import SAMPLES, cases

CASES = {case.id: case.values for case in cases()}
LINES = {
    "chat-jsonl": "chat-jsonl/pairs.jsonl",
    "litellm-payload": "litellm-payload/batch_08-15-40_0000.jsonl",
    "openai-batch": "openai-batch/input.jsonl",
    "portkey": "portkey/export.jsonl",
    "access-log": "access-log/nginx.jsonl",
    "mooncake": "timing-traces/mooncake.jsonl",
}
REASONS = {
    "malformed",
    "incomplete",
    "not-a-model-call",
    "request-missing",
    "request-truncated",
    "request-redacted",
    "request-encrypted",
    "request-external",
    "foreign-dialect",
    "duplicate",
}
NOTES = {
    "request-rebuilt",
    "response-rebuilt",
    "request-translated",
    "path-assumed",
    "model-missing",
    "status-inferred",
    "status-missing",
    "response-missing",
    "response-truncated",
    "answer-split",
    "stream-joined",
    "stream-no-times",
    "time-zone-assumed",
    "captured-at-end",
    "cached",
    "credentials-dropped",
}
OTHER = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(
        ("[", "{'a': 1}", '"{\\"a\\": 1}"', "9" * 400, "2026-11-02", "***", "[truncated]", "0.5", "-1")
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)


def sound(items: list[Item]) -> None:
    """What a record promises, whatever it was made of."""
    for item in items:
        assert item.line >= 1
        if isinstance(item, Skip):
            assert item.reason in REASONS and item.detail
            continue
        assert set(item.notes) <= NOTES and list(item.notes) == sorted(item.notes)
        if item.captured_at is not None:
            datetime.fromtimestamp(item.captured_at, UTC)
        for lasted in (item.duration_s, item.ttft_s, item.ttfb_s):
            assert lasted is None or lasted >= 0
        if item.use is not Use.TIMING:
            asked(item)
        observed(item, "0" * 32)


def asked(item: Record) -> None:
    assert (
        item.request is not None and item.request.path.startswith("/") and isinstance(item.request.body, dict)
    )
    assert any(item.request.body.get(name) for name in ("messages", "prompt", "input"))
    answered = item.response is not None and (
        item.response.body is not None or item.response.stream is not None
    )
    assert item.use is (Use.PAIR if answered else Use.REPLAY)
    assert all(
        name is None or isinstance(name, str) for name in (item.model, item.user, item.session, item.trace)
    )


def imported(name: str, files: dict[str, bytes]) -> list[Item]:
    with tempfile.TemporaryDirectory() as folder:
        for file, data in files.items():
            (Path(folder) / file).parent.mkdir(exist_ok=True)
            (Path(folder) / file).write_bytes(data)
        return list(read(sources_of(Path(folder) / file for file in files), name))


def files_of(paths: list[Path]) -> dict[str, bytes]:
    inner = [file for path in paths for file in (sorted(path.iterdir()) if path.is_dir() else [path])]
    return {str(file.relative_to(file.parents[1])): file.read_bytes() for file in inner}


def format_of(name: str, paths: list[Path]) -> str:
    traces = {"azure": "azure-trace", "burst": "burstgpt", "moonc": "mooncake"}
    return traces.get(paths[0].name[:5].lower(), name)


def cut(data: bytes, draw: Callable[[Any], Any]) -> bytes:
    return data[: draw(st.integers(0, len(data)))]


def flipped(data: bytes, draw: Callable[[Any], Any]) -> bytes:
    changed = bytearray(data)
    for _ in range(draw(st.integers(1, 5))):
        changed[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(changed)


def changed(data: bytes, draw: Callable[[Any], Any]) -> bytes:
    """With a value somewhere in its JSON removed, or something else in its place; other files as they are."""
    lines = data.split(b"\n") if b"\n{" in data.strip() else [data]
    place = draw(st.integers(0, len(lines) - 1))
    try:
        lines[place] = json.dumps(altered(json.loads(lines[place]), draw)).encode()
    except ValueError:
        return data
    return b"\n".join(lines)


def altered(value: Any, draw: Callable[[Any], Any]) -> Any:
    if isinstance(value, str) and value[:1] in ("{", "[") and draw(st.booleans()):
        try:
            return json.dumps(altered(json.loads(value), draw))
        except ValueError:
            return draw(OTHER)
    keys = (
        list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    )
    if not keys or draw(st.integers(0, 9)) == 0:
        return draw(OTHER)
    key = draw(st.sampled_from(keys))
    if isinstance(value, dict) and draw(st.integers(0, 3)) == 0:
        return {name: inner for name, inner in value.items() if name != key}
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[key] = altered(value[key], draw)
    return copy


@pytest.mark.parametrize("case", CASES)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_damaged_sample_gives_records_and_skips(case: str, data: st.DataObject) -> None:
    name, paths, _ = CASES[case]
    files = files_of(paths)
    which = data.draw(st.sampled_from(sorted(files)))
    how = data.draw(st.sampled_from((cut, flipped, changed)))
    files[which] = how(files[which], data.draw)
    sound(imported(format_of(name, paths), files))


@pytest.mark.parametrize("name", LINES)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_records_and_skips_account_for_every_line(name: str, data: st.DataObject) -> None:
    how = data.draw(st.sampled_from((cut, flipped, changed)))
    log = how((SAMPLES / LINES[name]).read_bytes(), data.draw)
    log = log if not log.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")) else b" " + log
    items = imported(name, {"log": log})
    assert sorted(item.line for item in items) == list(range(1, len(items) + 1))
    assert len(items) == sum(1 for line in log.removeprefix(b"\xef\xbb\xbf").split(b"\n") if line.strip())


@pytest.mark.parametrize("case", CASES)
def test_no_call_has_the_place_of_another(case: str) -> None:
    name, paths, _ = CASES[case]
    items = imported(format_of(name, paths), files_of(paths))
    assert len({item.line for item in items}) == len(items)
