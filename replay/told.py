"""What a server says it is. What it does not say is ``None``. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from replay.exchange import JSON

PAGES = ("/version", "/v1/models", "/server_info?config_format=json")
"""Where a server says it; ``read`` takes the three documents in this order."""
_MOST_MODELS = 20
_LONGEST = 2**31


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

    @classmethod
    def of(cls, data: JSON) -> Self:
        """From its fields as JSON has them."""
        return cls(**data | {"models": None if data["models"] is None else tuple(data["models"])})

    @property
    def words(self) -> str:
        """For people; empty when it says nothing."""
        said = (
            ("version", self.version),
            ("serving", self.models and ", ".join(self.models)),
            ("revision", self.revision),
            ("context", self.context and f"{self.context:,}"),
            ("quantization", self.quantization),
            ("type", self.dtype),
            ("KV cache", self.kv_cache_dtype),
            ("on", self.gpu),
        )
        return ", ".join(f"{name} {value}" for name, value in said if value)


def read(version: Any, listed: Any, info: Any) -> Told:
    """What three documents say; ``None`` for one that there is not."""
    cards = _at(listed, "data") if isinstance(_at(listed, "data"), list) else None
    first = cards[0] if cards else None
    config = _at(info, "vllm_config")
    context = _at(first, "max_model_len")
    return Told(
        version=_text(_at(version, "version")),
        models=None if cards is None else _names(cards),
        context=context if type(context) is int and 0 < context < _LONGEST else None,
        revision=_text(_at(config, "model_config", "revision")),
        quantization=_text(_at(config, "model_config", "quantization")),
        dtype=_text(_at(config, "model_config", "dtype")),
        kv_cache_dtype=_text(_at(config, "cache_config", "cache_dtype")),
        gpu=_text(_at(info, "system_env", "nvidia_gpu_models")),
    )


def _names(cards: list[Any]) -> tuple[str, ...]:
    return tuple(name for card in cards[:_MOST_MODELS] if (name := _text(_at(card, "id"))))


def _at(data: Any, *path: str) -> Any:
    for name in path:
        data = data.get(name) if isinstance(data, dict) else None
    return data


def _text(value: Any) -> str | None:
    """Of at most 200 characters, all of them printable."""
    return "".join(filter(str.isprintable, value[:200])) or None if isinstance(value, str) else None
