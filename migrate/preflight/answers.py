"""One token, whole and streamed, and what the first answers say of the engine behind a green health page."""

from __future__ import annotations

import re

from migrate.config import Backend
from migrate.preflight.asking import CHAT, Asking, Told
from migrate.preflight.lines import Line, failed, ok, unknown, unlike
from migrate.preflight.pages import refused_key, wordless
from replay.backends import Facts
from replay.exchange import ErrorClass

_FIRST_S = 4.0
_NEXT_S = 3.0
_COLD = 3.0
"""A first answer so many times slower than the second is that of a server that is not warm."""
_COLD_S = 0.5
_CREDIT = re.compile(r"quota|billing|credit|balance|payment|spend", re.IGNORECASE)


async def answers(
    asking: Asking, facts: Facts, backend: Backend, *, healthy: bool, keyed: bool
) -> tuple[Line, ...]:
    """Lines on a whole answer, a streamed one and the warmth, up to the first that fails.

    ``healthy``: the server said that it is. ``keyed``: a key was sent along.
    """
    first = await asking.chat(within=_FIRST_S, stream=False)
    if first.failure is not None:
        return (_refused(first, facts, backend, healthy=healthy, keyed=keyed),)
    whole = ok("answer", f"one token in {1000 * first.took_s:.0f} ms")
    if first.answer is not None and first.answer.streamed:
        return (
            failed(
                "answer", "a stream came where none was asked for", "look at what stands before the server"
            ),
        )
    streamed = await asking.chat(within=_FIRST_S, stream=True)
    stream = _stream(streamed, first, facts, backend, keyed=keyed)
    if not stream.passed:
        return whole, stream
    second = await asking.chat(within=_NEXT_S, stream=False)
    return whole, stream, _warmth(first, second)


async def lasting(asking: Asking, facts: Facts) -> list[Line]:
    """A line when it no longer answers after all that was asked; none when it does, or when no time is left to tell."""
    told = await asking.chat(within=_NEXT_S, stream=False)
    if told.failure is None or told.late:
        return []
    change = f"{facts.changes['engine']} (--watch waits)"
    return [failed("answer", f"it answered first, and no longer: {told.words}", change, passing=True)]


def _warmth(first: Told, second: Told) -> Line:
    if second.late:
        return unlike(
            "warm", f"the second answer: {second.words}", "it answers, and not always: look at its log"
        )
    if second.failure is not None:
        return failed(
            "warm", f"one answer came, the next did not: {second.words}", "look at its log", passing=True
        )
    detail = f"first answer {1000 * first.took_s:.0f} ms, second {1000 * second.took_s:.0f} ms"
    if first.took_s - second.took_s >= _COLD_S and first.took_s >= _COLD * second.took_s:
        return unlike(
            "warm", detail, "ready is not warm: send it some requests before the run, or keep policy.warmup"
        )
    return ok("warm", detail)


def _stream(told: Told, first: Told, facts: Facts, backend: Backend, *, keyed: bool) -> Line:
    if told.late and told.took_s < 2 * first.took_s:
        return unknown("stream", f"no token within the {told.took_s:.1f} s that were left")
    if told.failure is not None:
        refused = _refused(told, facts, backend, healthy=True, keyed=keyed)
        return failed("stream", refused.detail, refused.change, passing=refused.passing)
    if told.answer is None or not told.answer.streamed:
        change = "what stands before the server, or the server, ignores stream: true"
        return failed("stream", "a whole answer came where a stream was asked for", change)
    return ok("stream", f"one token in {1000 * told.took_s:.0f} ms")


def _refused(told: Told, facts: Facts, backend: Backend, *, healthy: bool, keyed: bool) -> Line:
    """The line for an answer that did not come, by what is behind it."""
    assert told.failure is not None  # noqa: S101 - who calls this has one
    kind, words = told.failure.error_class, told.words
    if told.late:
        began = "an answer began and did not end" if told.status else "no token came"
        green = "health is green, but " if healthy and not told.status else ""
        dead = f"its engine is dead, stalled or still warming up: {facts.changes['engine']} (--watch waits)"
        return failed("answer", f"{green}{began} within {told.took_s:.0f} s", dead, passing=True)
    if told.status == 402 or (kind is ErrorClass.RATE_LIMITED and _CREDIT.search(words)):
        return failed(
            "answer", words, "the account has no credit or quota left: top it up, or raise its limit"
        )
    if kind is ErrorClass.RATE_LIMITED:
        change = "the key's or server's rate limit is used up: raise it, or lower limits: requests_per_minute"
        return failed("answer", f"{words} ({told.sends} times)", change, passing=True)
    if kind is ErrorClass.AUTH:
        return refused_key(told, backend, keyed=keyed)
    if "chat template" in words.lower():
        change = facts.changes.get("chat template", "choose a model that answers chats")
        return failed("answer", f"the model has no chat template ({words})", change)
    if told.failure.code == "contract.model_unknown":
        return failed("answer", words, "set model: or models: to a name that the server knows")
    if kind is ErrorClass.CONTEXT_OVERFLOW:
        return failed("answer", words, facts.changes["context"])
    if kind is ErrorClass.OVERLOADED:
        return failed("answer", words, "it starts, or is too busy (--watch waits)", passing=True)
    if kind is ErrorClass.MALFORMED:
        return failed("answer", words, "is url that of an API? A login page or another program may be there")
    return wordless("answer", told, CHAT, facts)
