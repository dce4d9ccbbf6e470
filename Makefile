# One command a habit. Each makes .venv and installs what it needs when that is missing; nothing else has to be done first.
PYTHON ?= python3
SCENARIO ?= good
SIZE ?= 1GB
SEEDS ?= 200
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint requirements.lock
SOURCES := migrate replay reports tests benchmarks

.DEFAULT_GOAL := help
.PHONY: help install demo test check format calibrate bench bench-compare bench-decoding bench-embedding bench-import bench-recording bench-workload bench-peers bench-replay bench-report test-vllm test-servers test-gpu test-sdks docs lock dist-check clean

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(BIN)/python:
	@echo "making .venv" >&2
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed: make PYTHON=python3.12 …") if sys.version_info < (3, 11) else None'
	@$(PYTHON) -m venv .venv

.venv/.demo: pyproject.toml requirements.lock | $(BIN)/python
	@echo "installing llm-migrate with what the main job needs (a few minutes the first time)" >&2
	@$(PIP) --editable '.[demo]'
	@touch $@

.venv/.dev: .venv/.demo
	@echo "installing the tools of development" >&2
	@$(PIP) --editable '.[demo,dev]'
	@touch $@

install: .venv/.demo ## .venv with what the main job needs

demo: .venv/.demo ## two simulated backends, real traffic, a verdict (SCENARIO=good)
	@$(BIN)/python -m migrate.demo --scenario $(SCENARIO)

test: .venv/.dev ## the test-suite
	@$(BIN)/python -m pytest

check: .venv/.dev ## format, lint, types, import contracts, the built wheel
	@$(BIN)/ruff format --check $(SOURCES)
	@$(BIN)/ruff check $(SOURCES)
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(MAKE) --no-print-directory dist-check

docs: .venv/.dev ## the pages of docs/ as a site, in site/; what is made from the code is made anew
	@$(BIN)/python scripts/reference
	@$(BIN)/zensical build --strict

format: .venv/.dev ## rewrite the sources in the one format
	@$(BIN)/ruff format $(SOURCES)
	@$(BIN)/ruff check --fix $(SOURCES)

dist-check: .venv/.dev ## build the wheel, install it in a clean environment, ask its version
	@scripts/dist-check

calibrate: .venv/.demo ## how often the verdict is wrong and how soon it is right, beside four other judges (SEEDS=200)
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.calibrate --seeds $(SEEDS) --strict

bench: .venv/.demo ## what the gateway costs, beside a yardstick
	@$(BIN)/python -m benchmarks.gateway

bench-compare: .venv/.demo ## whether answers are called different when people call them so, beside plain cosine
	@$(BIN)/python -m benchmarks.compare

bench-decoding: .venv/.dev ## how fast answers are read, beside two yardsticks, and 200,000 broken ones
	@$(BIN)/python -m benchmarks.decoding

bench-embedding: .venv/.demo ## what embedding 10,000 pairs of answers costs, beside sentence-transformers at its defaults
	@$(BIN)/python -m benchmarks.embedding

bench-import: .venv/.demo ## how fast a log is imported (SIZE=1GB), beside json.loads, and in how much memory
	@$(BIN)/python -m benchmarks.importing --size $(SIZE)

bench-recording: .venv/.demo ## what the recording transport costs a caller of the OpenAI SDK
	@$(BIN)/python -m benchmarks.recording

bench-workload: .venv/.demo .venv-vllm/.ready ## real arrival times and prompts through the gateway to a real vLLM
	@$(BIN)/python -m benchmarks.workload

bench-replay: .venv/.demo ## whether a replay sends on time and times what it gets, beside what the server knows
	@$(BIN)/python -m benchmarks.fidelity

bench-report: .venv/.demo ## what a verdict costs: pairs in columns, and a report on a store of a million pairs
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.report

bench-peers: .venv/.demo .venv-guidellm/.ready .venv-aiperf/.ready ## replay beside guidellm and aiperf: who sends on time, who measures right
	@$(BIN)/python -m benchmarks.peers

.venv-guidellm/.ready .venv-aiperf/.ready: .venv-%/.ready: scripts/peers-env benchmarks/peers-%.lock
	@PYTHON=$(PYTHON) scripts/peers-env $*

.venv-vllm/.ready: scripts/vllm-env tests/vllm/requirements.lock
	@PYTHON=$(PYTHON) scripts/vllm-env

test-vllm: .venv/.dev .venv-vllm/.ready ## the gateway in front of a real vLLM on the CPU (builds .venv-vllm, about 4 GB)
	@$(BIN)/python -m pytest tests/vllm --capture=no --override-ini addopts="-ra -p no:randomly" --override-ini timeout=150

.venv-llama/.ready: scripts/llama-env tests/servers/requirements.lock tests/servers/tiny_model.py tests/vllm/tiny_model.py
	@PYTHON=$(PYTHON) scripts/llama-env

test-servers: .venv/.dev .venv-llama/.ready ## the gateway in front of a real llama.cpp on the CPU (builds .venv-llama, about 320 MB)
	@$(BIN)/python -m pytest tests/servers --override-ini addopts="-ra -p no:randomly"

test-gpu: .venv/.dev ## the same in front of the vLLM and the TensorRT-LLM of this machine (GPU_VLLM, GPU_TRTLLM, GPU_MODEL)
	@scripts/test-gpu

.venv-sdk/.ready: scripts/sdk-envs requirements.lock pyproject.toml
	@PYTHON=$(PYTHON) scripts/sdk-envs

test-sdks: .venv-sdk/.ready ## the recording transport with the oldest and the newest OpenAI SDKs (builds .venv-sdk, about 500 MB)
	@scripts/test-sdks

lock: .venv/.dev ## move requirements.lock to today's versions
	@scripts/lock

clean: ## remove everything that make made
	@rm -rf .venv .venv-vllm .venv-llama .venv-sdk .venv-guidellm .venv-aiperf build dist demo-output bench-output .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
