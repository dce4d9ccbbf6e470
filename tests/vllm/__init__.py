"""Tests against a real vLLM on the CPU; ``make test-vllm`` runs them, ``make test`` does not collect them."""
