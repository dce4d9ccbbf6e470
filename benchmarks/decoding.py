"""What reading answers costs, and what no input may do: ``python -m benchmarks.decoding [--quick] [--strict]``.

Speed: events a second from bytes to a finished answer with times and findings, against the ``openai`` client's stream
decoding and against ``httpx-sse`` with ``json.loads``, which assembles nothing. Medians of interleaved rounds in this one run.
Safety: mutated streams, none of which may raise. Linearity: one line of 64 MB against four of 16 MB.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median

import httpx
import httpx_sse
from openai import OpenAI

from replay.decoding import observe
from replay.exchange import Arm, Ending, Recording

ROOT = Path(__file__).parents[1]
SSE = (("content-type", "text/event-stream"),)
WORDS = ("the", "tide", "turns", "at", "four", "and", "the", "bar", "is", "safe", "by", "six", "caf\u00e9")


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.decoding", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="a hundredth of the mutated streams, fewer rounds"
    )
    parser.add_argument("--strict", action="store_true", help="exit 1 when a target is missed")
    words = parser.parse_args()
    print(f"{platform.machine()}, Python {platform.python_version()}, one core")
    kept = [
        *speed(3 if words.quick else 7),
        linear(16 if words.quick else 64),
        safe(2_000 if words.quick else 200_000),
    ]
    return int(words.strict and not all(kept))


def stream(events: int) -> list[bytes]:
    """The events of an answer as vLLM sends them."""
    chance = random.Random(1)
    head = {
        "id": "chatcmpl-9f0c",
        "object": "chat.completion.chunk",
        "created": 1796145538,
        "model": "harbor-7b",
    }

    def event(delta: dict[str, object], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish, "token_ids": None}
        return b"data: " + json.dumps(head | {"choices": [choice]}, separators=(",", ":")).encode() + b"\n\n"

    middle = [event({"content": " " + chance.choice(WORDS)}) for _ in range(events - 4)]
    usage = json.dumps(head | {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": events - 4}})
    return [
        event({"role": "assistant", "content": ""}),
        *middle,
        event({}, "stop"),
        b"data: " + usage.encode() + b"\n\n",
        b"data: [DONE]\n\n",
    ]


def recorded(pieces: list[bytes]) -> Recording:
    chunks = tuple((n * 1e-3, piece) for n, piece in enumerate(pieces))
    return Recording(
        sent_at=0.0,
        head_at=0.0,
        status=200,
        headers=SSE,
        chunks=chunks,
        ended_at=chunks[-1][0],
        ending=Ending.COMPLETE,
    )


def ours(pieces: list[bytes]) -> None:
    seen = observe(recorded(pieces), request_id="r", arm=Arm.BASELINE, at=0.0, path="/v1/chat/completions")
    assert seen.answer is not None and seen.answer.first.finish_reason == "stop" and not seen.answer.oddities
    assert len(seen.timing.content_times) > 0.9 * EVENTS


class Pieces(httpx.SyncByteStream):
    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.pieces)


def response(pieces: list[bytes]) -> httpx.Response:
    request = httpx.Request("POST", "http://stand.in/v1/chat/completions")
    return httpx.Response(
        200, headers={"content-type": "text/event-stream"}, stream=Pieces(pieces), request=request
    )


def openai_client(pieces: list[bytes]) -> None:
    transport = httpx.MockTransport(lambda _: response(pieces))
    with OpenAI(
        base_url="http://stand.in/v1", api_key="none", http_client=httpx.Client(transport=transport)
    ) as client:
        count = sum(1 for _ in client.chat.completions.create(model="m", messages=[], stream=True))
    assert count == EVENTS - 1


def httpx_sse_and_json(pieces: list[bytes]) -> None:
    source = httpx_sse.EventSource(response(pieces))
    count = sum(1 for event in source.iter_sse() if event.data == "[DONE]" or json.loads(event.data))
    assert count == EVENTS


EVENTS = 20_000


def speed(rounds: int) -> Iterator[bool]:
    events = stream(EVENTS)
    whole = b"".join(events)
    cuts = {
        "one event a read": events,
        "reads of 16 KiB": [whole[at : at + 16_384] for at in range(0, len(whole), 16_384)],
    }
    readers: dict[str, Callable[[list[bytes]], None]] = {
        "ours": ours,
        "openai client": openai_client,
        "httpx-sse + json": httpx_sse_and_json,
    }
    print(f"\nEvents a second, {EVENTS:,} events of {len(whole) // EVENTS} bytes, medians of {rounds} rounds")
    print(f"{'':20}" + "".join(f"{name:>18}" for name in readers) + f"{'to openai':>12}{'to httpx-sse':>14}")
    for cut, pieces in cuts.items():
        taken: dict[str, list[float]] = {name: [] for name in readers}
        for _ in range(rounds):
            for name, read in readers.items():
                taken[name].append(timed(partial(read, pieces)))
        rates = {name: EVENTS / median(times) for name, times in taken.items()}
        openai_ratio, sse_ratio = (
            rates["ours"] / rates[name] for name in ("openai client", "httpx-sse + json")
        )
        shown = "".join(f"{rate:>18,.0f}" for rate in rates.values())
        print(f"{cut:20}{shown}{openai_ratio:>11.1f}x{sse_ratio:>13.1f}x", flush=True)
        yield told(openai_ratio >= 20, f"{cut}: {openai_ratio:.1f} times the openai client (at least 20)")
        yield told(sse_ratio >= 1.5, f"{cut}: {sse_ratio:.1f} times httpx-sse and json (at least 1.5)")


def timed(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def linear(megabytes: int) -> bool:
    """One line of n MB, in small reads, against four of a quarter."""

    def line(size: int) -> list[bytes]:
        data = (
            b'data: {"choices":[{"index":0,"delta":{"content":"'
            + b"x" * size
            + b'"},"finish_reason":"stop"}]}\n\n'
        )
        return [data[at : at + 65_536] for at in range(0, len(data), 65_536)]

    def read(size: int) -> None:
        seen = observe(
            recorded(line(size)), request_id="r", arm=Arm.BASELINE, at=0.0, path="/v1/chat/completions"
        )
        assert seen.answer is not None and len(seen.answer.first.text) == size

    size = megabytes * 1_000_000
    one = min(timed(partial(read, size)) for _ in range(3))
    four = min(sum(timed(partial(read, size // 4)) for _ in range(4)) for _ in range(3))
    print(f"\nOne line of {megabytes} MB: {one:.2f} s; four of {megabytes // 4} MB: {four:.2f} s")
    return told(one <= 4 * four, f"one long line takes {one / four:.2f} times four short ones (at most 4)")


def safe(count: int) -> bool:
    """Streams with bytes changed, cut, doubled and moved: an observation comes out of each."""
    chance = random.Random(2)
    seeds = [b"".join(stream(6))]
    seeds += [
        path.read_bytes().partition(b"\r\n\r\n")[2]
        for path in (ROOT / "tests/fixtures/vllm-0.32").glob("*.http")
    ]
    failed, start = 0, time.perf_counter()
    for number in range(count):
        data = mutated(chance.choice(seeds)[:4_000], chance)
        at = chance.randrange(len(data) + 1)
        pieces = [piece for piece in (data[:at], data[at:]) if piece] or [b"\n"]
        headers = (
            ("content-type", chance.choice(("text/event-stream", "application/json", "text/html", ""))),
        )
        ending = chance.choice((Ending.COMPLETE, Ending.RESET))
        rec = Recording(
            sent_at=0.0,
            head_at=0.0,
            status=chance.choice((200, 200, 200, 400, 500)),
            headers=headers,
            chunks=tuple((0.1, piece) for piece in pieces),
            ended_at=0.2,
            ending=ending,
        )
        try:
            observe(rec, request_id="r", arm=Arm.CANDIDATE, at=0.0, path="/v1/chat/completions")
        except Exception as error:  # noqa: BLE001 - this is what is looked for
            failed += 1
            print(f"  stream {number}: {type(error).__name__}: {error}: {data[:200]!r}")
    took = time.perf_counter() - start
    print(f"\n{count:,} mutated streams in {took:.0f} s ({count / took:,.0f} a second): {failed} raised")
    return told(not failed, f"{failed} of {count:,} mutated streams raised")


def mutated(data: bytes, chance: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(out) + 1)
        span = chance.randint(1, 40)
        kind = chance.randrange(6)
        if kind == 0:
            out[at:at] = bytes(chance.choices(range(256), k=chance.randint(1, 4)))
        elif kind == 1:
            del out[at : at + span]
        elif kind == 2:
            out[at:at] = out[at : at + span]
        elif kind == 3:
            out[at:at] = chance.choice(PIECES)
        elif kind == 4 and out:
            out[min(at, len(out) - 1)] ^= 1 << chance.randrange(8)
        else:
            other = chance.randrange(len(out) + 1)
            out[at:at] = out[other : other + span]
    return bytes(out)


PIECES = (
    b"null", b"[]", b"{}", b"true", b'""', b"-1", b"1e999", b"NaN", b"-Infinity", b"\n\n", b"\r", b"data: ", b": x\n", b"[" * 500,
    b'"index":', b'"tool_calls":[', b'"error":{"code":"\xc2\xb2"}', b'{"type":"response.output_text.delta","delta":1}',
    b'{"type":"content_block_delta","index":0,"delta":{}}', b"\xff\xfe", b"\\ud800", b'"usage":7', b"9" * 400,
)  # fmt: skip


def told(kept: bool, text: str) -> bool:
    print(f"  {'PASS' if kept else 'FAIL'}  {text}", flush=True)
    return kept


if __name__ == "__main__":
    sys.exit(main())
