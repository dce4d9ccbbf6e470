"""What a server says of itself. What it does not say is ``None``."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Event
from typing import Any

import httpx

_PAGES = ("/version", "/v1/models", "/server_info?config_format=json")
_LIMIT_S = 3.0
_LARGEST = 8 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One server. vLLM tells what stands below ``context`` with VLLM_SERVER_DEV_MODE=1 only; TensorRT-LLM never does."""

    version: str | None = None
    models: tuple[str, ...] | None = None
    context: int | None = None
    """Tokens of the longest prompt with its answer."""
    revision: str | None = None
    quantization: str | None = None
    dtype: str | None = None
    kv_cache_dtype: str | None = None
    gpu: str | None = None


def told(url: str, key: str | None, stop: Event) -> Told:
    """Asks the server at ``url``; no further page once ``stop`` is set. Never raises for what it answers."""
    headers = {"authorization": f"Bearer {key}"} if key else {}
    with httpx.Client(base_url=url, headers=headers, timeout=_LIMIT_S, trust_env=False) as client:
        pages = [None if stop.is_set() else _page(client, path) for path in _PAGES]
    return read(*pages)


def read(version: Any, listed: Any, info: Any) -> Told:
    """The same from the three documents; ``None`` for one that there is not."""
    cards = _at(listed, "data") if isinstance(_at(listed, "data"), list) else None
    first = cards[0] if cards else None
    config = _at(info, "vllm_config")
    context = _at(first, "max_model_len")
    return Told(
        version=_text(_at(version, "version")),
        models=None if cards is None else tuple(filter(None, (_text(_at(card, "id")) for card in cards))),
        context=context if isinstance(context, int) else None,
        revision=_text(_at(config, "model_config", "revision")),
        quantization=_text(_at(config, "model_config", "quantization")),
        dtype=_text(_at(config, "model_config", "dtype")),
        kv_cache_dtype=_text(_at(config, "cache_config", "cache_dtype")),
        gpu=_text(_at(info, "system_env", "nvidia_gpu_models")),
    )


def _page(client: httpx.Client, path: str) -> Any:
    try:
        with client.stream("GET", path) as answer:
            if answer.status_code != 200:
                return None
            data = b""
            for piece in answer.iter_bytes():
                data += piece
                if len(data) > _LARGEST:
                    return None
            return httpx.Response(200, content=data).json()
    except (httpx.HTTPError, ValueError, RecursionError):
        return None


def _at(data: Any, *path: str) -> Any:
    for name in path:
        data = data.get(name) if isinstance(data, dict) else None
    return data


def _text(value: Any) -> str | None:
    return value[:500] if isinstance(value, str) and value else None
