"""What is known of each kind of backend: its routes, its habits, and what to change when something is missing. Pure data."""

from replay.backends.facts import Facts
from replay.backends.relay import RELAY
from replay.backends.tensorrt_llm import TENSORRT_LLM
from replay.backends.vllm import VLLM

BACKENDS = {facts.kind: facts for facts in (VLLM, TENSORRT_LLM, RELAY)}
"""By ``kind`` of the configuration."""

__all__ = ["BACKENDS", "Facts"]
