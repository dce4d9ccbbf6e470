"""What ``migrate import`` costs: ``python -m benchmarks.importing [--size 1GB] [--strict]``.

A LiteLLM log of that size is made from a seed, with secrets, addresses, cards and phone numbers in one record of twenty. Reading
alone stands against ``json.loads`` over the same lines; the whole import is ``migrate import`` as its user runs it, redaction and
SQLite included, with the resident memory of all its processes added up.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from replay.formats import read
from replay.formats.record import Skip
from replay.formats.sources import Source
from replay.units import parse_size

ROUNDS = 3
START = 1_790_000_000.0
WORDS = """
the of and to in is for that it on with as this are be by not or from at an you can your if have will we use when which more
one about their there they time order value key token result answer request server model data list number small harbour tide
weather boat price report week first second third table column city street train ticket refund account delivery summary
question policy example function return string total amount between because however although should would could after before
during without within customer support message letter invoice product service meeting agenda
"""
CODE = (
    "```python\ndef total(rows):\n    return sum(row['amount'] for row in rows)\n```",
    '{"city": "Oslo", "unit": "celsius", "days": 3}',
    "| item | amount |\n| --- | --- |\n| rope | 12 |\n| sail | 3 |",
    "See https://docs.example.org/guides/moving-house?step=2 for the rest.",
    "SELECT id, name FROM orders WHERE created > '2026-10-01' LIMIT 20;",
)
NUMBERS = (
    "It costs 1,299.00 EUR, or 42 % less.",
    "We meet on 2026-11-03 at 14:30.",
    "Version 3.11.7 came out in 2023.",
    "Order 48213 has 12 items.",
    "Die Fähre fährt täglich, außer an Feiertagen \N{EN DASH} siehe Aushang.",
)
PRIVATE = (
    "Please write to {name}.{number}@example.org.",
    "My card is 4111 1111 1111 1111, valid until next year.",
    "Call me at +44 20 7946 {four} or 555-123-{four}.",
    "export OPENAI_API_KEY=sk-proj-a1B2c3D4e5F6g7H8{number}",
    "Authorization: Bearer tok{number}abcdef0123456789",
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.importing", description=__doc__)
    parser.add_argument("--size", type=parse_size, default="1GB", help="of the log [default: 1GB]")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a target is missed")
    words = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    with tempfile.TemporaryDirectory() as name:
        log = Path(name) / "log.jsonl"
        start = time.perf_counter()
        count = make(log, words.size)
        size = log.stat().st_size
        print(
            f"{size / 1e9:.2f} GB, {count:,} records of {size // count:,} bytes, "
            f"made in {time.perf_counter() - start:.0f} s"
        )
        kept = [reading(log, count), importing(log, count)]
    return int(words.strict and not all(kept))


def make(log: Path, size: int) -> int:
    """Writes a log of about ``size`` bytes. Returns how many records it holds."""
    chance = random.Random(1)
    sentences = [_sentence(chance) for _ in range(4_000)]
    systems = [" ".join(chance.choices(sentences, k=7)) for _ in range(8)]
    written = count = 0
    with log.open("wb") as out:
        while written < size:
            line = json.dumps(_record(count, chance, sentences, systems)).encode() + b"\n"
            written += out.write(line)
            count += 1
    return count


def _sentence(chance: random.Random) -> str:
    rare = chance.random()
    if rare < 0.03:
        return chance.choice(CODE)
    if rare < 0.12:
        return chance.choice(NUMBERS)
    words = chance.choices(WORDS.split(), k=chance.randint(6, 18))
    return " ".join((words[0].capitalize(), *words[1:])) + chance.choice(".....?")


def _said(chance: random.Random, sentences: list[str], least: int, most: int) -> str:
    return " ".join(chance.choices(sentences, k=chance.randint(least, most)))


def _record(
    number: int, chance: random.Random, sentences: list[str], systems: list[str]
) -> dict[str, object]:
    """One call as LiteLLM's callbacks write it; one in six has a turn before it, one in ten calls a tool, one in fifty failed."""
    asked = _said(chance, sentences, 1, 8)
    if chance.random() < 0.05:
        told = chance.choice(PRIVATE).format(
            name=chance.choice(WORDS.split()), number=number, four=f"{number % 10_000:04}"
        )
        asked = f"{asked} {told}"
    turns = [{"role": "system", "content": chance.choice(systems)}]
    if chance.random() < 1 / 6:
        turns += [
            {"role": "user", "content": _said(chance, sentences, 1, 4)},
            {"role": "assistant", "content": _said(chance, sentences, 2, 8)},
        ]
    turns.append({"role": "user", "content": asked})
    answer: dict[str, object] = {"role": "assistant", "content": _said(chance, sentences, 2, 14)}
    kind = chance.random()
    parameters: dict[str, object] = {"temperature": 0.2, "max_tokens": 512}
    if kind < 0.1:
        call = {"name": "book_berth", "arguments": json.dumps({"boat": f"B-{number}", "nights": number % 9})}
        answer = {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": f"call_{number:024x}", "type": "function", "function": call}],
        }
        parameters["tools"] = [TOOL]
    failed = kind > 0.98
    identity, begin = f"chatcmpl-{chance.getrandbits(96):024x}", START + number * 0.05
    took = chance.uniform(0.4, 6.0)
    usage = {"prompt_tokens": 40 + len(asked) // 4, "completion_tokens": 9 + number % 300}
    usage["total_tokens"] = sum(usage.values())
    response = {
        "id": identity,
        "object": "chat.completion",
        "created": int(begin + took),
        "model": "vendor/harbor-7b",
        "choices": [{"index": 0, "message": answer, "finish_reason": "tool_calls" if kind < 0.1 else "stop"}],
        "usage": usage,
    }
    error = {
        "error_code": "429",
        "error_class": "RateLimitError",
        "error_message": "Too many requests; try again in 2 s.",
    }
    return {
        **AROUND,
        "id": identity,
        "trace_id": f"{chance.getrandbits(128):032x}",
        "session_id": f"session-{number // 3}",
        "call_type": "acompletion",
        "stream": number % 2 == 0,
        "status": "failure" if failed else "success",
        **usage,
        "startTime": begin,
        "endTime": begin + took,
        "completionStartTime": begin + took / 4,
        "response_time": took / 4,
        "model": "vendor/harbor-7b",
        "model_group": "harbor-7b",
        "end_user": f"user-{number % 997}",
        "messages": turns,
        "model_parameters": parameters,
        "response": {} if failed else response,
        "error_information": error if failed else None,
    }


TOOL = {
    "type": "function",
    "function": {
        "name": "book_berth",
        "description": "Books a berth for a boat.",
        "parameters": {
            "type": "object",
            "properties": {"boat": {"type": "string"}, "nights": {"type": "integer"}},
            "required": ["boat"],
        },
    },
}
AROUND: dict[str, object] = {
    "litellm_call_id": "3f8e2a54-7c7e-4a26-9f6c-0d1f2a3b4c5d",
    "response_cost": 0.00012,
    "status_fields": {"llm_api_status": "success", "guardrail_status": "not_run"},
    "custom_llm_provider": "openai",
    "model_map_information": {"model_map_key": "harbor-7b", "model_map_value": None},
    "model_id": "dep-1",
    "api_base": "https://llm.example.com/v1",
    "metadata": {
        "user_api_key_hash": "88dc28d0f030c55ed4ab77ed8faf098196cb1c05df778539800c9f1243fe6b4b",
        "user_api_key_alias": "kiosk",
        "user_api_key_team_id": "team-a",
        "user_api_key_org_id": None,
        "requester_ip_address": "10.0.0.7",
        "requester_metadata": {},
        "requester_custom_headers": {"x-app": "kiosk"},
        "spend_logs_metadata": None,
        "usage_object": None,
    },
    "cache_hit": None,
    "cache_key": None,
    "saved_cache_cost": 0.0,
    "request_tags": ["kiosk"],
    "requester_ip_address": "10.0.0.7",
    "user_agent": "OpenAI/Python 2.4.0",
    "error_str": None,
    "hidden_params": {
        "model_id": "dep-1",
        "cache_key": None,
        "api_base": "https://llm.example.com/v1",
        "response_cost": 0.00012,
        "litellm_overhead_time_ms": 3.1,
        "additional_headers": {},
        "batch_models": None,
        "litellm_model_name": "vendor/harbor-7b",
        "usage_object": None,
    },
    "guardrail_information": None,
    "standard_built_in_tools_params": None,
    "cost_breakdown": None,
}


def reading(log: Path, count: int) -> bool:
    """Reading alone against ``json.loads``, in turns."""
    taken: dict[str, list[float]] = {"json.loads": [], "reading": []}
    for _ in range(ROUNDS):
        start = time.perf_counter()
        with log.open("rb") as lines:
            for line in lines:
                json.loads(line)
        between = time.perf_counter()
        assert not any(isinstance(item, Skip) for item in read([Source(log)], "litellm-payload"))
        taken["json.loads"].append(between - start)
        taken["reading"].append(time.perf_counter() - between)
    middle = {name: median(times) for name, times in taken.items()}
    for name, took in middle.items():
        print(f"{name:12}{took:8.1f} s{count / took:10,.0f} records/s")
    ratio = middle["reading"] / middle["json.loads"]
    return told(ratio <= 2, f"reading takes {ratio:.2f} times json.loads (at most 2)")


def importing(log: Path, count: int) -> bool:
    """``migrate import`` into a new store."""
    store = log.with_name("store.db")
    command = [
        *(sys.executable, "-m", "migrate", "import", str(log), "--store", f"sqlite:///{store}", "--quiet"),
        *("--config", str(log.with_name("migrate.yaml"))),
    ]
    log.with_name("migrate.yaml").write_text(CONFIG)
    start, before, peak = time.perf_counter(), _processor_time(), 0.0
    with subprocess.Popen(command, env={**os.environ, "XDG_STATE_HOME": str(log.parent)}) as running:
        while running.poll() is None:
            peak = max(peak, sum(map(_rss, _family(running.pid))))
            time.sleep(0.1)
    took, spent = time.perf_counter() - start, _processor_time() - before
    if running.returncode:
        raise SystemExit(f"migrate import ended with exit code {running.returncode}")
    print(
        f"{'import':12}{took:8.1f} s{count / took:10,.0f} records/s, {spent / count * 1e6:.0f} µs of processor time a record, "
        f"{peak:.0f} MB of memory at most, a store of {store.stat().st_size / 1e9:.2f} GB"
    )
    return all(
        [
            told(count / took >= 10_000, f"{count / took:,.0f} records/s into the store (at least 10,000)"),
            told(peak <= 300, f"{peak:.0f} MB of memory (at most 300)"),
        ]
    )


CONFIG = """\
baseline: {kind: vllm, url: 'http://127.0.0.1:1', model: harbor-7b}
candidate: {kind: vllm, url: 'http://127.0.0.1:2', model: harbor-7b}
"""


def _processor_time() -> float:
    """Seconds that all ended processes of this one used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _family(pid: int) -> Iterator[int]:
    """A process and all that it started."""
    yield pid
    with contextlib.suppress(OSError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            yield from _family(int(child))


def _rss(pid: int) -> float:
    """Resident memory in MB; 0 when the process is gone."""
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    return 0.0


def told(kept: bool, text: str) -> bool:
    print(f"  {'PASS' if kept else 'FAIL'}  {text}", flush=True)
    return kept


if __name__ == "__main__":
    sys.exit(main())
