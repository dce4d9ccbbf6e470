"""The verdict on a canary, whose clients chance has split in two. Pure.

What is judged on what:

- Outputs, on pairs: each answer of the candidate to a client beside the baseline's answer to a copy of the request.
- Errors, timeouts and latencies, between concurrent randomised groups: what clients of the one side met beside what clients of
  the other met, both seen at the client's side. A copy is not timed as a client's answer is, so its times prove nothing.

Groups are matched: every conversation of the smaller one with the conversation of the other that began nearest in time, streams
with streams, each once, their requests in order. A side is drawn by a hash, whatever a conversation is about, so that two matched
ones are exchangeable as long as the backends do not differ; signs of their differences are then as good as those of pairs (the
randomisation argument of the sign test), if wider spread. Conversations count once, as in ``judge``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from reports.columns import Columns
from reports.judge import judge_columns
from reports.judgement import Check, Judgement, Verdict
from reports.policy import Policy
from reports.rules import RULES
from reports.stats import Flags, Floats

SIDE = "side"
"""The dimension of a pair that says which arm its conversation was drawn for."""
OUTPUTS = frozenset({"disagreement", "format_breaks", "refusals", "truncations", "tool_calls", "cost"})
"""Rules that are judged on pairs."""
APART_S = 300.0
"""How far apart two matched conversations may begin, and two matched requests be."""


def judge_canary(
    table: Columns,
    policy: Policy,
    *,
    now: float,
    final: bool = False,
    timeout_s: float = 600.0,
    mirrored: int | None = None,
    everybody: bool = False,
) -> Judgement:
    """The verdict on the requests of a canary; arguments as of ``judge``.

    Both judgements get half of ``alpha``, so that the chance of a wrong ROLLBACK stays what the policy says. Where no baseline
    group is left, as at a share of 100 %, every rule rests on pairs. ``mirrored``: requests that were handed over for recording;
    ``None``: not known. ``everybody``: the candidate answers all, and the few that a gateway sent to the baseline before it heard
    so make no group.
    """
    pairs, groups = paired(table), matched(table)
    ask = partial(judge_columns, now=now, final=final, timeout_s=timeout_s)
    if everybody or not len(groups):
        return _counted(ask(pairs, policy), table, policy, mirrored)
    outputs = ask(pairs, _only(policy, outputs=True))
    service = ask(groups, _only(policy, outputs=False))
    return _counted(_joined(outputs, service), table, policy, mirrored)


def paired(table: Columns) -> Columns:
    """What the candidate answered clients, with the baseline's answers to copies."""
    return table.take(drawn(table, "candidate"))


def drawn(table: Columns, side: str) -> Flags:
    """Where the conversation was drawn for this side."""
    for column, (name, values) in enumerate(table.dimensions):
        if name == SIDE and side in values:
            found: Flags = table.slices[:, column] == values.index(side)
            return found
    return np.zeros(len(table), dtype=np.bool_)


def matched(table: Columns) -> Columns:
    """Requests of candidate clients, each with one of a baseline client as its baseline. In order of time; no repeats, nothing
    to compare texts by."""
    ours: list[NDArray[np.intp]] = []
    theirs: list[NDArray[np.intp]] = []
    for streamed in (False, True):  # a stream has times that a whole answer has not
        new = _conversations(table, drawn(table, "candidate"), streamed=streamed)
        old = _conversations(table, drawn(table, "baseline"), streamed=streamed)
        for one, other in _nearest(_starts(table, new), _starts(table, old)):
            count = min(new[one].size, old[other].size)
            ours.append(new[one][:count])
            theirs.append(old[other][:count])
    none = np.zeros(0, dtype=np.intp)
    rows, mates = np.concatenate(ours or [none]), np.concatenate(theirs or [none])
    near = np.abs(table.at[rows] - table.at[mates]) <= APART_S
    rows, mates = rows[near], mates[near]
    at = np.maximum(table.at[rows], table.at[mates])  # only then both were on their way
    order = np.argsort(at, kind="stable")
    here, there = table.take(rows[order]), table.take(mates[order])
    unknown = np.full(len(here), -1, dtype=np.int8)
    return replace(
        here,
        at=at[order],
        baseline=there.baseline,
        repeated=np.zeros(len(here), dtype=np.bool_),
        streamed=here.streamed & there.streamed,
        differs=unknown,
        repeat_differs=unknown,
    )


def _conversations(table: Columns, where: Flags, *, streamed: bool) -> list[NDArray[np.intp]]:
    """The rows of each conversation that begins with a stream, or with none, in order of time, by their first."""
    rows = np.flatnonzero(where)
    if not rows.size:
        return []
    order = np.argsort(table.session[rows], kind="stable")
    cuts = np.flatnonzero(np.diff(table.session[rows][order])) + 1
    found = (one for one in np.split(rows[order], cuts) if bool(table.streamed[one[0]]) is streamed)
    return sorted(found, key=lambda one: int(one[0]))


def _starts(table: Columns, conversations: list[NDArray[np.intp]]) -> Floats:
    first = np.array([found[0] for found in conversations], dtype=np.intp)
    return table.at[first]


def _nearest(new: Floats, old: Floats) -> list[tuple[int, int]]:
    """Places in two ascending lists of times: each of the shorter one with the nearest that is left behind the last one taken."""
    if new.size > old.size:
        return [(one, other) for other, one in _nearest(old, new)]
    found: list[tuple[int, int]] = []
    free = 0
    for place, (at, right) in enumerate(zip(new.tolist(), np.searchsorted(old, new).tolist(), strict=True)):
        mate = max(free, right)
        if mate > free and (mate == old.size or at - old[mate - 1] <= old[mate] - at):
            mate -= 1
        if mate < old.size and abs(at - old[mate]) <= APART_S:
            found.append((place, mate))
            free = mate + 1
    return found


def _only(policy: Policy, *, outputs: bool) -> Policy:
    """The policy with the rules of one half required."""
    spared = {
        rule.name: rule.promise(policy).model_copy(update={"required": False})
        for rule in RULES
        if (rule.name in OUTPUTS) is not outputs
    }
    return policy.model_copy(update=spared | {"alpha": policy.alpha / 2})


def _joined(outputs: Judgement, service: Judgement) -> Judgement:
    """One judgement: the worse verdict, each rule from the half that judged it, and the checks of both."""
    asked = [half for half in (service, outputs) if any(rule.required for rule in half.rules)]
    worst = max(asked or [service], key=lambda one: _GRAVITY[one.verdict])
    said = {rule.rule: rule for rule in outputs.rules if rule.rule in OUTPUTS}
    rules = tuple(said.get(rule.rule, rule) for rule in service.rules)
    failed = {check.code for check in service.checks if not check.passed}
    checks = [check for check in outputs.checks if outputs in asked and check.code not in failed]
    known = {check.code for check in checks}
    checks += [check for check in service.checks if check.code not in known]
    method = f"outputs on pairs, {outputs.method}; errors and latencies between concurrent randomised groups"
    reason = worst.reason
    if worst.verdict is Verdict.GO:
        count = sum(rule.required for rule in rules)
        reason = f"All {count} required rules show harm below their margins."
    return replace(
        outputs,
        verdict=worst.verdict,
        code=worst.code,
        reason=reason,
        rules=rules,
        checks=tuple(checks),
        growth=(
            *(one for one in outputs.growth if one.rule in OUTPUTS),
            *(one for one in service.growth if one.rule not in OUTPUTS),
        ),
        method=method,
    )


_GRAVITY: Mapping[Verdict, int] = {Verdict.GO: 0, Verdict.HOLD: 1, Verdict.ROLLBACK: 2}
_FEW_LOST = 10


def _counted(judged: Judgement, table: Columns, policy: Policy, mirrored: int | None) -> Judgement:
    """HOLD where requests that were to be recorded are missing: they are lost with whatever they would have shown."""
    if mirrored is None:
        return judged
    lost, most = max(0, mirrored - len(table)), max(_FEW_LOST, (1 - policy.minimum_coverage) * mirrored)
    message = f"{lost:,} of {mirrored:,} requests that were handed over were not recorded, at most {most:,.0f} may be"
    check = Check(code="not_recorded", passed=lost <= most, message=message)
    kept = replace(judged, checks=(check, *(one for one in judged.checks if one.code != check.code)))
    if check.passed or judged.verdict is not Verdict.GO:
        return kept
    return replace(kept, verdict=Verdict.HOLD, code=check.code, reason=f"{message[:1].upper()}{message[1:]}.")
