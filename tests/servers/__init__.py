"""Tests against a real llama.cpp server on the CPU; ``make test-servers`` runs them, ``make test`` does not collect them."""
