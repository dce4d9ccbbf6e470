"""Whether a canary may begin: on a GO that still holds, of the same backends, candidate version and policy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from migrate.canary.entering import same_backends
from migrate.config import Config
from migrate.embedder import DEFAULT_MODEL
from migrate.report import JudgedRun, Progress, embedder, judge_run, second_opinion, stored_judge
from migrate.store import Run, Store
from replay.exchange import Arm
from replay.told import Told
from reports.judgement import Verdict
from reports.policy import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """What a canary may begin on."""

    run: str | None
    """Whose GO it is; ``None`` where no run has these backends."""
    why: str
    """For the audit log; empty when it is not granted."""
    problems: tuple[str, ...]
    """A sentence for each condition that does not hold, with what to do."""

    @property
    def granted(self) -> bool:
        """Every condition holds."""
        return not self.problems


def permitted(
    store: Store, config: Config, now: float, candidate_says: Told | None, progress: Progress | None = None
) -> Permission:
    """Looks at the latest shadow or replay run of these backends, judged by its own policy from what was stored.

    ``now``: epoch seconds. ``candidate_says``: what the candidate says now that it is; ``None`` where it is not asked, as
    somebody else's server is not.
    """
    run = next((one for one in reversed(store.runs()) if _speaks_of(one, config)), None)
    if run is None:
        problem = (
            "no shadow or replay run has this baseline, this candidate and these models; record one with migrate shadow or "
            "migrate replay"
        )
        return Permission(run=None, why="", problems=(problem,))
    found = _judged(store, run, now, progress)
    problems = (
        *_verdict(run, found, now),
        *_policy(run, found.policy, config.policy),
        *_version(run, store.told(run.id).get(Arm.CANDIDATE), candidate_says),
    )
    until = _moment(found.judged_at + found.policy.valid_for)
    return Permission(
        run=run.id, why="" if problems else f"GO of run {run.id}, valid until {until}", problems=problems
    )


def _speaks_of(run: Run, config: Config) -> bool:
    return run.kind in ("shadow", "replay") and same_backends(run, config)


def _judged(store: Store, run: Run, now: float, progress: Progress | None) -> JudgedRun:
    """As ``migrate report`` judges it."""
    model = str(run.config.get("embeddings", {}).get("model", DEFAULT_MODEL))
    embed, _ = embedder(store, model, progress)
    second = second_opinion(store, stored_judge(run), progress)
    return judge_run(store, run, policy=None, now=now, embed=embed, second=second)


def _verdict(run: Run, found: JudgedRun, now: float) -> Iterator[str]:
    judgement = found.judgement
    if judgement.verdict is not Verdict.GO:
        yield (
            f"run {run.id} is {judgement.verdict.value} ({judgement.code}), and a canary begins on GO; see migrate report --run "
            f"{run.id}"
        )
    elif now > (until := found.judged_at + found.policy.valid_for):
        yield (
            f"the GO of run {run.id} expired at {_moment(until)} (policy.valid_for); record a new one with migrate {run.kind}"
        )


def _policy(run: Run, before: Policy, after: Policy) -> Iterator[str]:
    """A replay has a warm-up of its own."""
    if run.kind == "replay":
        after = after.model_copy(update={"warmup": before.warmup})
    if changed := [key for key, value in before if value != getattr(after, key)]:
        yield (
            f"run {run.id} was recorded under another policy ({', '.join(changed)}); record one under this policy with migrate "
            f"{run.kind}, or put the policy back"
        )


def _version(run: Run, before: Told | None, says: Told | None) -> Iterator[str]:
    if says is None:
        return
    was = asdict(before) if before else {}
    changed = [
        f"{key} {_shown(was.get(key))} then, {_shown(value)} now"
        for key, value in asdict(says).items()
        if value != was.get(key)
    ]
    if changed:
        yield (
            f"the candidate of run {run.id} was another one ({'; '.join(changed)}); record a new run with migrate {run.kind}"
        )


def _shown(value: object) -> str:
    if value is None:
        return "unknown"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
