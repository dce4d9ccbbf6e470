"""From a store to a document: the only place that feeds the pure judge from what was recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pydantic import ValidationError

from migrate.embedder import Embedder, missing
from migrate.errors import ConfigError
from migrate.store import Run, Store
from reports.compare import Comparison, Embed, compare, resolve
from reports.document import Document, Item, RunFacts, build, show, worst_first
from reports.judge import judge
from reports.judgement import Pair
from reports.pairing import differs, pair_up
from reports.policy import Policy

Progress = Callable[[str, int, int], None]
"""(what is being done, how many are done, of how many)."""


def report(
    store: Store,
    run: Run,
    *,
    policy: Policy | None,
    now: float,
    embed: Embed | None,
    notes: tuple[str, ...] = (),
) -> Document:
    """The document on one run.

    ``policy``: another than the run's own, for a second judgement of the same observations. ``now``: epoch seconds at which a
    run that still goes on is judged. ``embed``: without it, pairs that need similarity stay unscored.
    """
    rules = policy or stored_policy(run)
    items = compared(store, run, rules, embed)
    counters = store.counters(run.id)
    percent = run.config.get("shadow", {}).get("percent")
    judgement = judge(
        [item.pair for item in items],
        rules,
        now=now if run.ended_at is None else run.ended_at,
        counters=counters if percent is None else counters | {"mirror_ppm": round(percent * 1e4)},
        final=run.ended_at is not None,
        timeout_s=_timeout(run),
    )
    shown = [show(item, store.exchange(run.id, item.pair.id)) for item in worst_first(items)]
    facts = RunFacts(
        id=run.id,
        kind=run.kind,
        status=run.status,
        started_at=run.started_at,
        ended_at=run.ended_at,
        baseline=_named(run, "baseline") or "",
        candidate=_named(run, "candidate"),
        percent=percent,
        seed=run.seed,
        policy=rules.model_dump(mode="json", by_alias=True),
        notes=notes,
    )
    return build(judgement, items, facts, counters=counters, shown=shown)


def embedder(
    store: Store, model: str, progress: Progress | None = None
) -> tuple[Embed | None, tuple[str, ...]]:
    """The embedding function with the store as its cache; ``None`` and a note when the extra is not installed."""
    problem = missing(model)
    if problem:
        return None, (problem,)
    tell = progress or (lambda *_: None)
    return Embedder(
        model,
        read=store.vectors,
        write=store.put_vectors,
        progress=lambda done, total: tell("embedding answers", done, total),
    ), ()


def compared(store: Store, run: Run, policy: Policy, embed: Embed | None) -> list[Item]:
    """Every exchange of a run, compared and paired."""
    pairs: list[Pair] = []
    first: list[Comparison] = []
    again: dict[int, Comparison] = {}
    for at, exchange in enumerate(store.exchanges(run.id)):
        pairs.append(pair_up(exchange))
        first.append(compare(exchange.request, exchange.baseline, exchange.candidate))
        if exchange.repeat is not None:
            again[at] = compare(exchange.request, exchange.baseline, exchange.repeat)
    resolved = resolve([*first, *again.values()], embed, policy.disagreement.similarity)
    candidates, repeats = resolved[: len(first)], dict(zip(again, resolved[len(first) :], strict=True))
    return [_item(pair, candidates[at], repeats.get(at)) for at, pair in enumerate(pairs)]


def _item(pair: Pair, comparison: Comparison, repeat: Comparison | None) -> Item:
    scored = replace(pair, differs=differs(comparison), repeat_differs=differs(repeat))
    return Item(pair=scored, comparison=comparison, repeat=repeat)


def stored_policy(run: Run) -> Policy:
    """The policy under which a run was started. Raises ConfigError when this version no longer reads it."""
    try:
        return Policy.model_validate(run.policy)
    except ValidationError as error:
        raise ConfigError(
            f"run {run.id}: its policy cannot be read ({error.errors()[0]['msg']}); give one with --config"
        ) from None


def _timeout(run: Run) -> float:
    totals = [
        run.config.get(arm, {}).get("timeouts", {}).get("total", 600.0)
        for arm in ("baseline", "candidate")
        if run.config.get(arm)
    ]
    return max([float(total) for total in totals], default=600.0)


def _named(run: Run, arm: str) -> str | None:
    backend = run.config.get(arm)
    return f"{backend['kind']} at {backend['url']}" if backend else None
