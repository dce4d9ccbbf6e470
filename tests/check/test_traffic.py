"""What the captured traffic uses decides whether a difference is a failure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from migrate.cli import cli
from migrate.preflight.traffic import basis, uses
from tests.check.checking import Checked, checked
from tests.check.servers import MODEL, Server, simulated

ASK = {"model": MODEL, "messages": [{"role": "user", "content": "When is high tide?"}]}
TOOLS = {"tools": [{"type": "function", "function": {"name": "get_tide"}}]}


async def with_traffic(
    folder: Path, server: Server, *asked: dict[str, Any], kind: str = "vllm", monkeypatch: pytest.MonkeyPatch
) -> Checked:
    """The check of a candidate after ``asked`` were imported into the store of the configuration."""
    monkeypatch.chdir(folder)
    lines = [orjson.dumps({"request": ASK | one, "response": {"choices": []}}) for one in asked]
    (folder / "log.jsonl").write_bytes(b"\n".join(lines))
    done = CliRunner().invoke(cli, ["import", "log.jsonl", "--store", "sqlite:///migrate.db"])
    assert done.exit_code == 0, done.output
    async with server(folder) as url:
        return await checked(folder, {"kind": kind, "url": url})


async def test_a_lack_that_the_traffic_needs_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = simulated(lacks={"tool-choice"})
    done = await with_traffic(tmp_path, server, TOOLS, TOOLS, {}, monkeypatch=monkeypatch)
    assert done.code == 2 and done.rows["tools"]["result"] == "FAIL"
    assert "2 of 3 captured requests need it" in done.said("tools")
    assert orjson.loads(done.output)["captured_requests"] == 3


async def test_one_that_it_does_not_need_stays_a_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = await with_traffic(tmp_path, simulated(lacks={"tool-choice"}), {}, {}, monkeypatch=monkeypatch)
    assert done.code == 0 and done.rows["tools"]["result"] == "DIFFERS"


async def test_prompts_beyond_a_smaller_context_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = {"messages": [{"role": "user", "content": "tide " * 4_000}]}
    done = await with_traffic(tmp_path, simulated(context=4_096), {}, long, monkeypatch=monkeypatch)
    assert done.rows["context"]["result"] == "FAIL"
    assert "1 of 2 captured requests" in done.said("context")


async def test_fields_of_the_traffic_are_asked_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {
        "enable_thinking": False,
        "top_k": 40,
        "note": "to Anna, in private",
    }
    server = simulated(dialect="tensorrt-llm")
    done = await with_traffic(
        tmp_path, server, asked, {"top_k": 1}, kind="tensorrt-llm", monkeypatch=monkeypatch
    )
    assert done.code == 2 and done.rows["field enable_thinking"]["result"] == "FAIL"
    assert "1 of 2 captured requests" in done.said("field enable_thinking")
    assert done.rows["field top_k"]["result"] == "OK" and "field note" not in done.rows


@pytest.mark.parametrize(
    ("asked", "words"), [((), "no captured request: the store holds none"), (({}, {}), "what 2")]
)
async def test_the_last_line_says_for_which_requests_features_were_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: tuple[dict[str, Any], ...], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if asked:
        (tmp_path / "log.jsonl").write_bytes(
            b"\n".join(orjson.dumps(ASK | one | {"seed": n}) for n, one in enumerate(asked))
        )
        assert (
            CliRunner().invoke(cli, ["import", "log.jsonl", "--store", "sqlite:///migrate.db"]).exit_code == 0
        )
    async with simulated()(tmp_path) as url:
        done = await checked(tmp_path, {"kind": "vllm", "url": url}, form="terminal")
    said = " ".join(done.output.partition("Features are checked for ")[2].split())
    assert said.startswith(words), done.output
    assert ("migrate import FILE" in said) is not bool(asked)


@pytest.mark.parametrize(
    ("bodies", "said"),
    [
        (None, "for no captured request: a check does not wait"),
        (0, "for no captured request: the store holds none"),
        (1, "for what 1 captured request uses."),
        (4, "for what 4 captured requests use."),
        (5, "for what the first 5 captured requests use."),
    ],
)
def test_what_features_were_checked_for_in_words(bodies: int | None, said: str) -> None:
    assert said in basis(None if bodies is None else uses([b"{}"] * bodies), most=5)


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.dictionaries(st.text(), st.text())))
def test_no_text_is_asked_with(asked: dict[str, Any]) -> None:
    fields = uses([json.dumps({"messages": []} | asked).encode()]).fields
    words = [
        word for value in fields.values() for word in (value.values() if isinstance(value, dict) else [value])
    ]
    assert all(
        not isinstance(word, str) or (word.isascii() and len(word) <= 12 and " " not in word)
        for word in words
    )


def test_nothing_is_asked_with_that_names_a_person_or_costs_others() -> None:
    """Only fields that draw or show an answer otherwise."""
    body = {"messages": [], "customer": "smith", "phone_no": 4915112345678, "priority": -100, "best_of": 64}
    body |= {"min_tokens": 4096, "ignore_eos": True, "kv_transfer_params": {"x": 1}, "service_tier": "flex"}
    assert dict(uses([orjson.dumps(body | {"top_k": 3})]).fields) == {"top_k": 3}


def test_bodies_of_any_kind_are_looked_at() -> None:
    bodies = [
        orjson.dumps(ASK | {"stream": True, "stream_options": {"include_usage": True}}),
        orjson.dumps(ASK | {"response_format": {"type": "json_object"}, "logprobs": True}),
        orjson.dumps(ASK | TOOLS | {"tool_choice": "none"}),
        b"not JSON",
        b"[1]",
        orjson.dumps({"stream_options": 1, "response_format": [], "tools": None}),
    ]
    found = uses(bodies)
    assert found.requests == 6
    assert dict(found.features) == {"stream": 1, "usage": 1, "schema": 1, "logprobs": 1}
