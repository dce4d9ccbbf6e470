"""From a store to a document: the only place that feeds the pure judge from what was recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pydantic import ValidationError

from migrate.config import JudgeSection
from migrate.costing import of_report
from migrate.embedder import Embedder, missing
from migrate.errors import ConfigError
from migrate.gathering import compared, gathered
from migrate.opinions import SecondOpinion
from migrate.store import Run, Store
from replay.exchange import JSON
from reports.acknowledgement import Acknowledgement
from reports.advice import LATENCY_RULES
from reports.canary import judge_canary
from reports.columns import Columns
from reports.compare import Embed
from reports.document import Document, RunFacts, Target, build, iso
from reports.gathered import Gathered, of_items
from reports.judgement import Judgement
from reports.picking import sample, worth_a_look
from reports.policy import Policy
from reports.shown import Item, Shown, show, worst_first
from reports.standing import judge_since

Look = Callable[[Sequence[str] | None], list[Item]]
"""The pairs of these ids (``None``: all), with their comparisons."""
Progress = Callable[[str, int, int], None]
"""(what is being done, how many are done, of how many)."""


def report(
    store: Store,
    run: Run,
    *,
    policy: Policy | None,
    now: float,
    embed: Embed | None,
    second: SecondOpinion | None = None,
    notes: tuple[str, ...] = (),
) -> Document:
    """The document on one run.

    ``policy``: another than the run's own, for a second judgement of the same observations; the document says what differs.
    ``now``: epoch seconds at which a run that still goes on is judged. ``embed``: without it, pairs that need similarity
    stay unscored. ``second``: a judge model, asked about close calls of similarity. Raises ConfigError when the run's own
    policy cannot be read.
    """
    found = judge_run(store, run, policy=policy, now=now, embed=embed, second=second)
    changed = _changed(run, found.policy) if policy else ()
    return document_of(store, run, found, (*notes, *changed, *(second.notes if second else ())))


def document_of(store: Store, run: Run, found: JudgedRun, notes: tuple[str, ...] = ()) -> Document:
    """The document on a run that is judged already."""
    worst = worst_first(
        found.look(worth_a_look(found.seen, found.policy)),
        found.policy,
        slow_first=found.judgement.code in LATENCY_RULES,
    )
    document = build(
        found.judgement,
        found.seen,
        _facts(run, found, notes),
        counters=found.counters,
        shown=in_full(store, run, worst),
        readings=store.readings(run.id),
        told=store.told(run.id),
        cost=of_report(run, found.seen, found.counters, now=found.judged_at),
    )
    return replace(document, sample=_sample(store, run, found, document))


def _sample(store: Store, run: Run, found: JudgedRun, document: Document) -> tuple[Shown, ...]:
    """Pairs of every kind in full, without those that are shown anyway; the examples of causes first."""
    chosen = sample(found.seen, run.seed, examples=[cause.example for cause in document.causes])
    for pair in document.worst:
        chosen.pop(pair.id, None)
    items = {item.pair.id: item for item in found.look(list(chosen))}
    return tuple(in_full(store, run, [items[one] for one in chosen], chosen))


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRun:
    """A run, compared and judged."""

    policy: Policy
    seen: Gathered
    look: Look
    counters: dict[str, int]
    judged_at: float
    judgement: Judgement
    acknowledgements: tuple[Acknowledgement, ...]

    @property
    def since(self) -> float | None:
        """The time of the last one: pairs from before make no ROLLBACK."""
        return self.acknowledgements[-1].at if self.acknowledgements else None


def judge_run(
    store: Store,
    run: Run,
    *,
    policy: Policy | None,
    now: float,
    embed: Embed | None,
    second: SecondOpinion | None = None,
) -> JudgedRun:
    """A run's judgement with what it was made of. The arguments are those of ``report``."""
    rules = _rules(run, policy)
    seen, look = look_at(store, run, rules, embed, second)
    counters = store.counters(run.id) | _late(store, run)
    judged_at = now if run.ended_at is None else run.ended_at
    noted = store.acknowledgements(run.id)
    since = noted[-1].at if noted else None
    return JudgedRun(
        policy=rules,
        seen=seen,
        look=look,
        counters=counters,
        judged_at=judged_at,
        judgement=judged(seen.columns, run, rules, now=judged_at, counters=counters, since=since),
        acknowledgements=noted,
    )


def look_at(
    store: Store, run: Run, policy: Policy, embed: Embed | None, second: SecondOpinion | None
) -> tuple[Gathered, Look]:
    """A run, and how to look closer at some of its pairs. A judge model is asked about all of them at once."""
    if second is None:
        return gathered(store, run, policy, embed), partial(compared, store, run, policy, embed, None)
    items = {item.pair.id: item for item in compared(store, run, policy, embed, second)}
    return of_items(list(items.values())), lambda ids: [items[one] for one in (items if ids is None else ids)]


def in_full(store: Store, run: Run, items: Sequence[Item], why: Mapping[str, str] = {}) -> list[Shown]:
    """These pairs as they are printed; ``why`` some of them were chosen, by id."""
    return [
        show(
            item,
            store.exchange(run.id, item.pair.id),
            iso(item.pair.at),
            why.get(item.pair.id, "worst"),
        )
        for item in items
    ]


def judged(
    table: Columns,
    run: Run,
    policy: Policy,
    *,
    now: float,
    counters: dict[str, int],
    since: float | None = None,
) -> Judgement:
    """The verdict on a run's pairs, of which those before ``since`` (epoch seconds) make no ROLLBACK."""
    if run.kind == "canary":
        return judge_canary(
            table if since is None else table.take(table.at >= since),
            policy,
            now=now,
            final=run.ended_at is not None,
            timeout_s=timeout_of(run),
            mirrored=counters.get("mirrored") if since is None else None,
        )
    percent = _percent(run)
    sampled = {} if percent is None else {"mirror_ppm": round(percent * 1e4)}
    return judge_since(
        table,
        policy,
        since=since,
        now=now,
        counters=sampled | counters,
        final=run.ended_at is not None,
        timeout_s=timeout_of(run),
    )


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


def second_opinion(
    store: Store, section: JudgeSection | None, progress: Progress | None = None
) -> SecondOpinion | None:
    """The judge model of a configuration with the store as its memory. What the store holds is redacted already."""
    if section is None:
        return None
    tell = progress or (lambda *_: None)
    return SecondOpinion(
        section,
        read=store.opinions,
        write=store.put_opinions,
        progress=lambda done, total: tell("asking the judge model", done, total),
    )


def stored_judge(run: Run) -> JudgeSection | None:
    """The judge model that a run was started with. Raises ConfigError when this version no longer reads it."""
    section = run.config.get("judge")
    try:
        return None if section is None else JudgeSection.model_validate(section)
    except ValidationError as error:
        raise ConfigError(
            f"run {run.id}: its judge model cannot be read ({error.errors()[0]['msg']}); give another with --config"
        ) from None


def _rules(run: Run, policy: Policy | None) -> Policy:
    """A replay was told how much of it is warm-up, whatever a configuration says of live traffic."""
    if policy is None:
        return stored_policy(run)
    return policy if run.kind != "replay" else policy.model_copy(update={"warmup": stored_policy(run).warmup})


def stored_policy(run: Run) -> Policy:
    """The policy under which a run was started. Raises ConfigError when this version no longer reads it."""
    try:
        return Policy.model_validate(run.policy)
    except ValidationError as error:
        raise ConfigError(
            f"run {run.id}: its policy cannot be read ({error.errors()[0]['msg']}); give one with --config"
        ) from None


def _facts(run: Run, found: JudgedRun, notes: tuple[str, ...]) -> RunFacts:
    return RunFacts(
        id=run.id,
        kind=run.kind,
        status=run.status,
        started_at=run.started_at,
        ended_at=run.ended_at,
        judged_at=found.judged_at,
        baseline=_named(run, "baseline") or "unknown",
        candidate=_named(run, "candidate"),
        percent=_percent(run),
        seed=run.seed,
        policy=_dumped(found.policy),
        valid_for=found.policy.valid_for,
        notes=notes,
        acknowledgements=found.acknowledgements,
        targets=_targets(run.config),
    )


def _targets(config: JSON) -> dict[str, Target]:
    """How each arm is asked; the candidate may call a model something else (see ``mirror.adapt.model_names``)."""
    known = {arm: backend for arm in ("baseline", "candidate") if (backend := config.get(arm))}
    called = [backend.get("model") for backend in known.values()]
    names = {called[0]: called[1]} if len(called) == 2 and all(called) else {}
    return {
        arm: Target(
            url=backend["url"],
            key_env=backend.get("api_key_env"),
            models=names | (backend.get("models") or {}) if arm == "candidate" else {},
        )
        for arm, backend in known.items()
    }


def _changed(run: Run, policy: Policy) -> tuple[str, ...]:
    """A margin is set before looking: says so when it is not the one that the run was started under."""
    before, after = dict(_flat(_dumped(Policy(**run.policy)))), dict(_flat(_dumped(policy)))
    parts = [f"{key} {before.get(key)} → {value}" for key, value in after.items() if before.get(key) != value]
    if not parts:
        return ()
    return (f"judged under another policy than the one the run was started under: {', '.join(parts)}",)


def _flat(policy: JSON, before: str = "") -> Iterator[tuple[str, object]]:
    for key, value in policy.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


def _dumped(policy: Policy) -> JSON:
    return policy.model_dump(mode="json", by_alias=True)


def _percent(run: Run) -> float | None:
    percent = run.config.get("shadow", {}).get("percent") if run.kind == "shadow" else None
    return None if percent is None else float(percent)


def _late(store: Store, run: Run) -> dict[str, int]:
    """How late the requests of a replay left; ``{}`` for what had no schedule."""
    late = store.lag(run.id, 0.99)
    return {} if late is None else {"replay_lag_p99_us": round(late * 1e6)}


def timeout_of(run: Run) -> float:
    """The longest total timeout of a run's backends, seconds."""
    totals = [
        run.config.get(arm, {}).get("timeouts", {}).get("total", 600.0)
        for arm in ("baseline", "candidate")
        if run.config.get(arm)
    ]
    return max([float(total) for total in totals], default=600.0)


def _named(run: Run, arm: str) -> str | None:
    backend = run.config.get(arm)
    return f"{backend['kind']} at {backend['url']}" if backend else None
