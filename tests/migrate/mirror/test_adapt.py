"""What a copy says: what the request said, but for the declared edits."""

from __future__ import annotations

import dataclasses

import orjson

from migrate.config import Backend, Shadow
from migrate.mirror.adapt import body_for, call_for, model_names
from tests.migrate.samples import request

BASELINE = Backend(kind="vllm", url="http://10.0.0.5:8000", model="harbor-7b")
CANDIDATE = Backend(
    kind="tensorrt-llm", url="http://10.0.0.9:8000", model="harbor-fp8", models={"small": "s-1"}
)


def test_nothing_to_edit_keeps_the_bytes() -> None:
    body = b'{ "model":"x", "stream" : true }'
    assert body_for(body, {}) is body


def test_only_model_and_store_are_edited_and_the_order_of_keys_stays() -> None:
    body = {
        "stream": True,
        "model": "harbor-7b",
        "tools": [{"type": "function"}],
        "store": True,
        "seed": 7,
        "logprobs": True,
        "response_format": {"type": "json_object"},
        "temperature": 0.3,
    }
    got = orjson.loads(body_for(orjson.dumps(body), model_names(BASELINE, CANDIDATE)))
    assert got == body | {"model": "harbor-fp8", "store": False}
    assert list(got) == list(body)


def test_models_are_mapped_by_name_and_unknown_ones_stay() -> None:
    names = model_names(BASELINE, CANDIDATE)
    for asked, sent in (("harbor-7b", "harbor-fp8"), ("small", "s-1"), ("other", "other")):
        assert orjson.loads(body_for(orjson.dumps({"model": asked}), names))["model"] == sent


def test_the_clients_identity_stays_behind_and_the_copy_is_marked() -> None:
    asked = dataclasses.replace(
        request(), headers=(("Content-Type", "application/json"), ("User-Agent", "me"), ("X-Request-Id", "7"))
    )
    call = call_for(asked, CANDIDATE, names={}, key="own-key", shadow=Shadow())
    assert dict(call.headers) == {
        "Content-Type": "application/json",
        "X-LLM-Migrate-Copy": "1",
        "Authorization": "Bearer own-key",
    }
    assert call.url == "http://10.0.0.9:8000/v1/chat/completions?x=1"


def test_without_a_key_nothing_claims_one() -> None:
    call = call_for(request(), CANDIDATE, names={}, key=None, shadow=Shadow())
    assert "Authorization" not in dict(call.headers)
