"""Every sample imports to its expected records, and nothing is invented."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from replay.formats import FORMATS, Undetected, detect, read, sources_of
from replay.formats.record import Item, Skip
from replay.formats.sources import Source
from replay.formats.unpacking import zstd

SAMPLES = Path(__file__).parents[1] / "fixtures" / "formats"
FOLDERS = sorted(path.name for path in SAMPLES.iterdir())


def cases() -> list[Any]:
    found = []
    for folder in FOLDERS:
        expected = json.loads((SAMPLES / folder / "expected.json").read_text())
        for case in expected["cases"]:
            name = case.get("format", expected["format"])
            paths = [SAMPLES / folder / one for one in case["inputs"]]
            found.append(
                pytest.param(name, paths, case["records"], id=f"{folder}-{'+'.join(case['inputs'])}")
            )
    return found


def shown(item: Item) -> dict[str, Any]:
    """A record as the expectations write it."""
    if isinstance(item, Skip):
        return {"line": item.line, "skip": item.reason, "detail": item.detail}
    asked, answered = item.request, item.response
    record: dict[str, Any] = {
        "line": item.line,
        "use": item.use.value,
        "captured_at": None
        if item.captured_at is None
        else datetime.fromtimestamp(item.captured_at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "request": None
        if asked is None
        else {
            "method": asked.method,
            "path": asked.path,
            "headers": [list(p) for p in asked.headers],
            "body": asked.body,
        },
        "response": None,
        "timing": {"ttft_s": item.ttft_s, "duration_s": item.duration_s},
        "model": item.model,
        "user": item.user,
        "session": item.session,
        "trace": item.trace,
        "cost_usd": item.cost_usd,
        "tokens": {"input": item.input_tokens, "output": item.output_tokens},
        "notes": list(item.notes),
    }
    if answered is not None:
        said = (
            {"body": answered.body}
            if answered.stream is None
            else {"stream": [list(piece) for piece in answered.stream]}
        )
        record["response"] = {
            "status": answered.status,
            "headers": [list(p) for p in answered.headers],
            **said,
        }
    return record


def comparable(record: dict[str, Any]) -> Any:
    """With tool arguments as JSON and numbers rounded, and without the details of a skip, which are our own words."""
    if "skip" in record:
        return {"line": record["line"], "skip": record["skip"]}
    return json.loads(
        json.dumps(record), object_hook=_arguments, parse_float=lambda text: round(float(text), 6)
    )


def _arguments(value: dict[str, Any]) -> dict[str, Any]:
    if isinstance(value.get("arguments"), str):
        value["arguments"] = json.loads(value["arguments"])
    return value


@pytest.mark.parametrize(("name", "paths", "expected"), cases())
def test_every_sample_gives_its_expected_records(
    name: str, paths: list[Path], expected: list[dict[str, Any]]
) -> None:
    sources = sources_of(paths)
    formats = {detect(source) for source in sources}
    assert len(formats) == 1 and (name == "timing-traces" or formats == {name})
    items = list(read(sources, formats.pop()))
    got = [comparable(shown(item)) for item in items]
    for record, item, wanted in zip(got, items, expected, strict=True):
        for key in ("ttfb_s", "offset_s"):
            if key in wanted:
                record[key] = getattr(item, key)
        assert record == comparable(wanted)


@pytest.mark.parametrize(
    "path",
    sorted(path for path in SAMPLES.rglob("*.*") if path.name != "expected.json"),
    ids=lambda path: f"{path.parent.name}/{path.name}",
)
def test_a_file_is_told_by_its_content_and_by_no_other_format(path: Path) -> None:
    folder = path.relative_to(SAMPLES).parts[0]
    try:
        found = detect(Source(path))
    except Undetected:
        found = None
    known = {"timing-traces": {"azure-trace", "burstgpt", "mooncake"}}.get(folder, {folder} & FORMATS.keys())
    assert found in known if known else found is None


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress], ids=["gzip", "zstd"])
def test_compressed_files_are_read_as_they_are(tmp_path: Path, pack: Any) -> None:
    path = SAMPLES / "chat-jsonl" / "pairs.jsonl"
    packed = tmp_path / "any.name"
    packed.write_bytes(pack(path.read_bytes()))
    assert list(read([Source(packed)], "chat-jsonl")) == list(read([Source(path)], "chat-jsonl"))


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """Records come one by one: the first is there before the last line was read."""
    line = (SAMPLES / "litellm-payload" / "batch_08-15-40_0000.jsonl").read_bytes().split(b"\n")[0] + b"\n"
    path = tmp_path / "big.jsonl"
    path.write_bytes(line * 20_000)
    source = Source(path)
    items = read([source], "litellm-payload")
    next(items)
    assert source.done < 3_000_000 < path.stat().st_size


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    "data", [b"", b"\n\n", b"{", b"[", b"\xff\xfe\x00", b"null\n1\n[]\n", b'{"a":' * 300, b"a,b\n1\n"]
)
def test_what_is_broken_is_skipped_and_raises_nothing(tmp_path: Path, name: str, data: bytes) -> None:
    path = tmp_path / "broken"
    path.write_bytes(data)
    for item in read([Source(path)], name):
        assert isinstance(item, Skip)


def test_the_documentation_names_every_format() -> None:
    page = (Path(__file__).parents[2] / "docs" / "formats.md").read_text()
    assert all(f"`{name}`" in page for name in FORMATS)
    assert f"[{len(FORMATS)} are known]" in (Path(__file__).parents[2] / "README.md").read_text()
