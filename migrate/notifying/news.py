"""What is worth telling of a judgement, in the words that people and machines get. Pure.

The words hold the verdict and what it rests on in figures; no prompt, no answer and no secret is among them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from replay.exchange import JSON
from reports.document import Document
from reports.judgement import Verdict
from reports.render.text import plain
from reports.render.words import moment

SCHEMA = {"name": "llm-migrate.notice", "version": 1}
HALT = "HALT"
"""A ROLLBACK by the safety stop: the candidate has an outage."""
_URGENT = (HALT, Verdict.ROLLBACK.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """One thing that may be told. It is news to whom its ``subject`` was last told in another ``state``."""

    run: str
    subject: str
    """``verdict``, ``end`` or ``test``."""
    state: str
    at: str
    """When it was judged, ISO 8601 in UTC."""
    urgent: bool
    """Worth waking somebody."""
    title: str
    lines: tuple[str, ...] = ()
    facts: JSON = field(default_factory=dict)
    """The same for a program."""
    number: int = 1
    """The how manieth time that the receiver is told of the subject; a try again has the same."""

    @property
    def text(self) -> str:
        """All of it, for a person."""
        return "\n".join((self.title, *self.lines))

    @property
    def id(self) -> str:
        """Equal for the same thing sent twice, and for nothing else."""
        return f"{self.run}.{self.subject}.{self.number}.{self.state}"

    def body(self) -> JSON:
        """For a program: the facts with what they are about."""
        about = {"run": self.run, "subject": self.subject, "state": self.state, "urgent": self.urgent}
        return {"schema": SCHEMA, "id": self.id, **about, "text": self.text, **self.facts}


def first_state(subject: str) -> str | None:
    """What everybody knows before anything is told: a run begins without a verdict, which is HOLD."""
    return Verdict.HOLD.value if subject == "verdict" else None


def news_of(document: Document) -> tuple[News, ...]:
    """What a judgement gives to tell: the verdict, and the end of the run where it has ended."""
    state = HALT if document.code == "halt" else document.verdict.value
    whom = plain(str(document.run["candidate"] or document.run["baseline"]), 200)
    verdict = _one(document, "verdict", state, title=f"{state}: {whom}")
    if document.run["ended_at"] is None:
        return (verdict,)
    ended = _one(document, "end", "ended", title=f"Run ended with {state}: {whom}")
    return (verdict, ended)


def _one(document: Document, subject: str, state: str, *, title: str) -> News:
    return News(
        run=str(document.run["id"]),
        subject=subject,
        state=state,
        at=document.judged_at,
        urgent=state in _URGENT,
        title=title,
        lines=tuple(_lines(document)),
        facts=facts_of(document),
    )


def _lines(document: Document) -> Iterator[str]:
    yield f"Why: {plain(document.reason, 1_000)} ({document.code})"
    yield f"Rests on: {_scored(document):,} scored pairs over {_long(document.span_s)}, judged {moment(document.judged_at)}"
    yield f"Next: {plain(document.advice, 500)}"
    yield f"Evidence: migrate report --run {document.run['id']}"
    if document.rehearsal:
        yield "The policy is shortened for a rehearsal: this says nothing about production."


def facts_of(document: Document) -> JSON:
    """A verdict in short, for a program. Times are ISO 8601 in UTC. ``pairs``: all of the run; ``scored_pairs``: those that the
    verdict rests on, as the report says."""
    return {
        "verdict": document.verdict.value,
        "code": document.code,
        "reason": plain(document.reason, 1_000),
        "advice": plain(document.advice, 500),
        "judged_at": document.judged_at,
        "valid_until": document.valid_until,
        "candidate": document.run["candidate"],
        "pairs": document.compared["pairs"],
        "scored_pairs": _scored(document),
        "span_s": document.span_s,
        "rehearsal": document.rehearsal,
        "rules": {rule.rule: rule.verdict.value for rule in document.rules if rule.required},
    }


def _scored(document: Document) -> int:
    return document.ledger.get("scored", 0)


def _long(seconds: float) -> str:
    """A span, in a unit that makes it two figures or so."""
    for unit, size in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def trial(at: str) -> News:
    """What ``migrate notify --test`` sends."""
    return News(
        run="test",
        subject="test",
        state="test",
        at=at,
        urgent=False,
        title="Test of llm-migrate: this receiver will be told of verdicts.",
        lines=("Nothing has happened, and nothing is to be done.",),
    )
