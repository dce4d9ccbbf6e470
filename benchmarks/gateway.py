"""What the gateway costs, beside a yardstick: ``python -m benchmarks.gateway [--quick] [--strict]``.

Every figure is the median of interleaved rounds in this one run, so that whatever else the machine does falls on all
alike. Direct, yardstick and gateways share one upstream; loads and parts are processes of their own. A candidate that
misbehaves stands for another machine: it gets the processor time that is left over. Exit code 0, or 1
when a target is missed and ``--strict`` is given.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from benchmarks.parts import Gateway, gateway, load, process

PATHS = ("direct", "yardstick", "gateway 0 %", "gateway 10 %", "gateway 100 %")
FAULTS = ("hang", "reset", "flood", "absent")
Found = dict[str, list[dict[str, float]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much is measured."""

    rounds: int = 5
    seconds: float = 1.5
    rate: int = 200
    fault_seconds: float = 3.0
    page_seconds: float = 8.0
    memory: tuple[int, int] = (50_000, 200_000)


QUICK = Plan(rounds=2, seconds=1.0, fault_seconds=1.0, page_seconds=2.0, memory=(5_000, 20_000))


@dataclass(slots=True)
class Targets:
    """What was promised, and whether it was kept."""

    lines: list[tuple[bool, str]] = field(default_factory=list)

    def check(self, kept: bool, text: str) -> None:
        self.lines.append((kept, text))

    def show(self) -> None:
        print("\nTargets")
        for kept, text in self.lines:
            print(f"  {'PASS' if kept else 'FAIL'}  {text}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.gateway", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a target is missed")
    words = parser.parse_args()
    plan, targets = (QUICK if words.quick else Plan()), Targets()
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {plan.rounds} rounds"
    )
    with tempfile.TemporaryDirectory() as name, process("benchmarks.upstream", "0") as upstream:
        folder = Path(name)
        with process("benchmarks.upstream", "0") as candidate:
            cost(plan, targets, folder, upstream, candidate)
            memory(plan, targets, folder, upstream, candidate)
            looked_at(plan, targets, folder, upstream, candidate)
        faults(plan, targets, folder, upstream, "answers at once")
        with process("benchmarks.upstream", "0", "answer", "0.02") as slow:
            faults(plan, targets, folder, slow, "answers after 20 ms")
    targets.show()
    return int(words.strict and not all(kept for kept, _ in targets.lines))


def cost(plan: Plan, targets: Targets, folder: Path, upstream: int, candidate: int) -> None:
    """Latency, throughput and streams of every path, in turns."""
    with contextlib.ExitStack() as stack:
        ports = {"direct": upstream}
        ports["yardstick"] = stack.enter_context(
            process("benchmarks.passthrough", f"http://127.0.0.1:{upstream}")
        )
        gateways: dict[str, Gateway] = {}
        for percent in (0, 10, 100):
            name = f"gateway {percent} %"
            gateways[name] = stack.enter_context(
                gateway(folder / str(percent), baseline=upstream, candidate=candidate, percent=percent)
            )
            ports[name] = gateways[name].port
        for port in ports.values():
            load("whole", port, 32, 0.5)
        single = turns(plan.rounds, ports, gateways, lambda port: load("whole", port, 1, plan.seconds))
        many = turns(plan.rounds, ports, gateways, lambda port: load("whole", port, 32, plan.seconds))
        streams = turns(plan.rounds, ports, gateways, lambda port: load("streams", port, 50, 1))
    show_cost(single, many, streams)
    judge_cost(targets, single, many, streams)


def turns(
    rounds: int,
    ports: dict[str, int],
    gateways: dict[str, Gateway],
    measure: Callable[[int], dict[str, float]],
) -> Found:
    """Each path in turn, so many rounds; between them a mirror may finish what it has."""
    found: Found = {name: [] for name in ports}
    for _ in range(rounds):
        for name, port in ports.items():
            found[name].append(measure(port))
            if name in gateways:
                gateways[name].settle()
    return found


def middle(found: Found, name: str, key: str) -> float:
    """The median over rounds."""
    return median(one[key] for one in found[name])


def show_cost(single: Found, many: Found, streams: Found) -> None:
    """One table, a line a path; latencies in milliseconds."""
    print("\nCost              1 connection, ms            32 connections    50 streams of 50 tokens/s, ms")
    print(
        "                  p50    p99    added p50      requests/s        TTFT p50   late p50   late p99   errors"
    )
    direct = middle(single, "direct", "p50")
    for name in PATHS:
        p50, p99 = (middle(single, name, key) * 1e3 for key in ("p50", "p99"))
        ttft, late, worst = (middle(streams, name, key) * 1e3 for key in ("ttft_p50", "late_p50", "late_p99"))
        errors = sum(one["errors"] for found in (single, many, streams) for one in found[name])
        print(
            f"{name:<15} {p50:6.3f} {p99:6.3f} {p50 - direct * 1e3:12.3f} {middle(many, name, 'rate'):15,.0f}"
            f" {ttft:15.3f} {late:10.3f} {worst:10.3f} {errors:8.0f}"
        )


def judge_cost(targets: Targets, single: Found, many: Found, streams: Found) -> None:
    """The promises about a share of 10 %."""
    name = "gateway 10 %"
    added = (middle(single, name, "p50") - middle(single, "direct", "p50")) * 1e3
    share = middle(many, name, "rate") / middle(many, "yardstick", "rate")
    ttft = (middle(streams, name, "ttft_p50") - middle(streams, "direct", "ttft_p50")) * 1e3
    late = middle(streams, name, "late_p99") * 1e3
    errors = sum(
        one["errors"] for found in (single, many, streams) for rounds in found.values() for one in rounds
    )
    targets.check(added <= 0.30, f"added p50 at 10 %: {added:.3f} ms (at most 0.30)")
    targets.check(share >= 0.8, f"requests/s at 10 %: {share:.2f} of the yardstick (at least 0.8)")
    targets.check(ttft <= 2, f"added TTFT p50 at 10 %: {ttft:.3f} ms (at most 2)")
    targets.check(late <= 20, f"tokens late at p99 at 10 %: {late:.2f} ms (at most 20)")
    targets.check(errors == 0, f"errors seen by clients: {errors:.0f}")


def memory(plan: Plan, targets: Targets, folder: Path, upstream: int, candidate: int) -> None:
    """Resident memory between two counts of requests at 10 %."""
    first, last = plan.memory
    with gateway(folder / "memory", baseline=upstream, candidate=candidate, percent=10) as running:
        load("count", running.port, 32, first)
        before = running.rss()
        load("count", running.port, 32, last - first)
        after = running.rss()
    print(f"\nMemory of the gateway: {before:.1f} MB after {first:,} requests, {after:.1f} MB after {last:,}")
    targets.check(
        abs(after - before) <= 20, f"RSS from {first:,} to {last:,} requests: {after - before:+.1f} MB (± 20)"
    )


def looked_at(plan: Plan, targets: Targets, folder: Path, upstream: int, candidate: int) -> None:
    """Throughput at 10 % with the live page open, which has the run judged beside it, and without, in turns."""
    found: dict[bool, list[float]] = {False: [], True: []}
    with gateway(folder / "page", baseline=upstream, candidate=candidate, percent=10) as running:
        load("whole", running.port, 32, 1)
        for turn in range(plan.rounds):
            for open_ in (False, True) if turn % 2 else (True, False):
                with running.looked_at() if open_ else contextlib.nullcontext():
                    found[open_].append(load("whole", running.port, 32, plan.page_seconds)["rate"])
                running.settle()
    closed, opened = (median(found[which]) for which in (False, True))
    print(f"\nLive page: {closed:,.0f} requests/s closed, {opened:,.0f} open")
    targets.check(
        opened >= 0.97 * closed,
        f"throughput with the live page open: {opened / closed - 1:+.1%} (at least -3 %)",
    )


def faults(plan: Plan, targets: Targets, folder: Path, upstream: int, name: str) -> None:
    """Production beside a candidate that misbehaves, against the same gateway with its mirror switched off."""
    print(f"\nFaults at 10 %, baseline {name}, {plan.rate} requests/s: production in ms, mirror off and on")
    print("candidate          p50 off      on   ratio      p99 off      on   ratio   errors")
    for fault in FAULTS:
        pairs = one_fault(plan, folder / f"{fault} {name}", upstream, fault)
        ratios = {key: median(on[key] / off[key] for off, on in pairs) for key in ("p50", "p99")}
        errors = sum(off["errors"] + on["errors"] for off, on in pairs)
        line = f"{fault:<15}"
        for key, ratio in ratios.items():
            off, on = (median(pair[which][key] for pair in pairs) * 1e3 for which in (0, 1))
            line += f"{off:11.3f} {on:7.3f} {ratio:7.2f} "
        print(f"{line} {errors:7.0f}", flush=True)
        p50, p99 = ratios.values()
        text = f"p50 {p50 - 1:+.0%} (10 %), p99 {p99 - 1:+.0%} (20 %), {errors:.0f} errors"
        targets.check(
            p50 <= 1.10 and p99 <= 1.20 and not errors, f"candidate {fault}, baseline {name}: {text}"
        )


def one_fault(plan: Plan, folder: Path, upstream: int, fault: str) -> list[tuple[dict[str, float], ...]]:
    """Rounds of (mirror off, mirror on), in changing order, so that a drift of the machine falls on both alike."""
    pairs = []
    with contextlib.ExitStack() as stack:
        bad = 9
        if fault != "absent":
            bad = stack.enter_context(process("benchmarks.upstream", "0", fault, elsewhere=True))
        running = stack.enter_context(gateway(folder, baseline=upstream, candidate=bad, percent=10))
        load("paced", running.port, plan.rate, 1)
        for turn in range(plan.rounds):
            found = {}
            for on in (False, True) if turn % 2 else (True, False):
                running.mirror(on=on)
                time.sleep(0.3)
                found[on] = load("paced", running.port, plan.rate, plan.fault_seconds)
            pairs.append((found[False], found[True]))
    return pairs


if __name__ == "__main__":
    sys.exit(main())
