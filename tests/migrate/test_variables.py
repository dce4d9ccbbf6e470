"""A secret in place of a variable's name is refused, and said nowhere."""

from __future__ import annotations

import pytest

from migrate.config import ConfigError, parse

KEYS = [
    "sk-abcdefghijklmnop12345678",
    "hf_QwErTyUiOpAsDfGhJkLzXcVbNm12345678",
    "Bearer abc",
    "a key",
    "HF_TOKEN=hf_x",
    "A;touch x",
    "a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d6",
    "dapi0123456789abcdef0123456789ab",
]
"""What people paste."""


def refusal(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse(text)
    return str(caught.value)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    "place",
    [
        "api_key_env: '{}'",
        "launch: {{model: m, secrets: ['{}']}}",
        "launch: {{model: m, env: {{'{}': x}}}}",
    ],
)
def test_a_key_for_a_name_is_refused_and_not_repeated(place: str, key: str) -> None:
    said = refusal("baseline: {kind: vllm, url: 'http://a:1', " + place.format(key) + "}")
    assert "variable" in said or "no name" in said
    assert key not in said


@pytest.mark.parametrize(
    "held",
    [
        "unchecked: [--api-key, swordfish99]",
        "unchecked: [--hf-token, mysecret]",
        "unchecked: ['--api-key=swordfish99']",
        "env: {HF_TOKEN: abc123}",
        "env: {MY_SECRET: abc123}",
        "env: {OPENAI_APIKEY: abc123}",
        "args: {hub_token: abc123}",
        "unchecked: [--apikey, abc123]",
    ],
)
def test_what_is_called_a_secret_is_one_whatever_it_looks_like(held: str) -> None:
    said = refusal(f"baseline: {{kind: vllm, url: 'http://a:1', launch: {{model: m, {held}}}}}")
    assert "looks like a secret" in said
    assert not any(word in said for word in ("swordfish99", "mysecret", "abc123"))


def test_names_are_taken() -> None:
    made = parse(
        "baseline: {kind: vllm, url: 'http://a:1', api_key_env: MY_KEY_2, "
        "launch: {model: m, secrets: [HF_TOKEN], env: {TOKENIZERS_PARALLELISM: 'false'}, unchecked: [--tokenizer, x]}}"
    )
    assert made.baseline.api_key_env == "MY_KEY_2"
