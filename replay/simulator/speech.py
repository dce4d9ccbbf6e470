"""What is said to a request: its choices, token by token, with the planted faults of content."""

from __future__ import annotations

from dataclasses import dataclass, replace

import orjson

from replay.simulator import answers, chance, schema
from replay.simulator.ask import Ask, Tool
from replay.simulator.faults import Plan

_CALL_SHARE = 0.8
"""Of the requests with tools where the model may choose."""
_PARALLEL_SHARE = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One tool call; ``id`` is 32 hexadecimal digits that each dialect dresses."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One token: of text, or of the call at ``call``, whose opening piece has an empty text."""

    text: str
    call: int | None = None
    opens: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """One choice of an answer. Its text or its calls are also there in ``pieces``."""

    index: int
    finish: str
    pieces: tuple[Piece, ...]
    text: str = ""
    calls: tuple[Call, ...] = ()
    stop_reason: str | None = None
    """The stop string that ended it."""


def key(ask: Ask) -> int:
    """The prompt's hash, by which answers and faults are drawn."""
    return chance.number(*ask.prompts)


def speak(ask: Ask, *, seed: int, plan: Plan, room: int, tokens: int | None = None) -> tuple[Spoken, ...]:
    """The choices for ``ask``: ``n`` for each prompt, none longer than ``room`` tokens.

    ``tokens`` fixes the length of free text; ``None`` leaves it to the prompt.
    """
    limit = room if ask.limit is None else min(ask.limit, room)
    spoken = []
    for number, (prompt, question) in enumerate(zip(ask.prompts, ask.questions, strict=True)):
        for choice in range(ask.n):
            parts = (seed, prompt, choice)
            calls = _calls(ask, plan, parts)
            index = number * ask.n + choice
            if calls and ask.markup:
                written = "\n".join(_markup(call) for call in calls)
                spoken.append(_saying(ask, index, answers.pieces(written), limit))
            elif calls:
                spoken.append(_calling(ask, index, calls))
            else:
                spoken.append(_saying(ask, index, _words(ask, question, plan, tokens, parts), limit))
    return tuple(_cut(item, plan, limit) for item in spoken)


def _words(
    ask: Ask, question: str, plan: Plan, tokens: int | None, parts: tuple[object, ...]
) -> tuple[str, ...]:
    if plan.refuse:
        return answers.pieces(answers.REFUSAL)
    if ask.schema is not None:
        drawn = schema.value(ask.schema, *_salt(plan), *parts)
        return answers.pieces(orjson.dumps(drawn).decode())
    text = answers.text(question, *parts)
    if plan.noise is not None:
        text = answers.reworded(text, plan.noise, *parts)
    if plan.wrong:
        text = answers.wrong(text, question, *parts)
    wanted = ask.limit if ask.fill and ask.limit is not None else tokens
    return answers.pieces(text) if wanted is None else answers.lengthened(text, wanted, *parts)


def _saying(ask: Ask, index: int, words: tuple[str, ...], limit: int) -> Spoken:
    """Text up to the first stop string, or to the limit, whichever comes first."""
    kept = words[:limit]
    text = "".join(kept)
    found = [(at, stop) for stop in ask.stops if (at := text.find(stop)) >= 0]
    if found:
        at, stop = min(found)
        kept, text = _head(kept, at), text[:at]
        return Spoken(index=index, finish="stop", pieces=_texts(kept), text=text, stop_reason=stop)
    full = len(words) > limit or (ask.fill and len(words) == limit)
    return Spoken(index=index, finish="length" if full else "stop", pieces=_texts(kept), text=text)


def _head(words: tuple[str, ...], length: int) -> tuple[str, ...]:
    """The first ``length`` characters of ``words``, cut within a word where need be."""
    kept = []
    for word in words:
        if length <= 0:
            break
        kept.append(word[:length])
        length -= len(word)
    return tuple(kept)


def _texts(words: tuple[str, ...]) -> tuple[Piece, ...]:
    return tuple(Piece(text=word) for word in words)


def _calling(ask: Ask, index: int, calls: tuple[Call, ...]) -> Spoken:
    pieces: list[Piece] = []
    for number, call in enumerate(calls):
        pieces.append(Piece(text="", call=number, opens=True))
        pieces += [Piece(text=part, call=number) for part in answers.pieces(call.arguments)]
    finish = "stop" if ask.tool_choice == "named" else "tool_calls"
    return Spoken(index=index, finish=finish, pieces=tuple(pieces), calls=calls)


def _cut(spoken: Spoken, plan: Plan, limit: int) -> Spoken:
    """The answer within ``limit`` and, when the plan truncates it, cut short of its end."""
    count = min(len(spoken.pieces), limit)
    if plan.truncate and count > 1:
        count = 1 + int(plan.at * (count - 1))
    if count == len(spoken.pieces):
        return spoken
    pieces = spoken.pieces[:count]
    said = "".join(piece.text for piece in pieces if piece.call is None)
    return replace(
        spoken,
        finish="length",
        pieces=pieces,
        text=said,
        calls=_partial(spoken.calls, pieces),
        stop_reason=None,
    )


def _partial(calls: tuple[Call, ...], pieces: tuple[Piece, ...]) -> tuple[Call, ...]:
    begun = sum(piece.opens for piece in pieces)
    return tuple(
        replace(call, arguments="".join(piece.text for piece in pieces if piece.call == number))
        for number, call in enumerate(calls[:begun])
    )


def _calls(ask: Ask, plan: Plan, parts: tuple[object, ...]) -> tuple[Call, ...]:
    if not ask.tools or ask.tool_choice == "none" or plan.refuse or plan.refuse_tools:
        return ()
    if ask.tool_choice == "auto" and (ask.answered_tool or chance.share("call", *parts) >= _CALL_SHARE):
        return ()
    chosen = _chosen(ask, parts)
    return tuple(_call(tool, number, plan, parts) for number, tool in enumerate(chosen))


def _chosen(ask: Ask, parts: tuple[object, ...]) -> tuple[Tool, ...]:
    """The tools called: those whose names share most words with the question first, then by hash."""
    words = ask.questions[0].lower()

    def fit(tool: Tool) -> tuple[int, int]:
        named = tool.name.lower().replace(".", "_").replace("-", "_").split("_")
        return -sum(len(word) > 2 and word in words for word in named), chance.number(tool.name, *parts)

    ranked = sorted(ask.tools, key=fit)
    both = ask.parallel and ask.tool_choice != "named" and chance.share("parallel", *parts) < _PARALLEL_SHARE
    return tuple(ranked[: 2 if both else 1])


def _call(tool: Tool, number: int, plan: Plan, parts: tuple[object, ...]) -> Call:
    drawn = schema.value({"type": "object", **tool.parameters}, tool.name, number, *_salt(plan), *parts)
    arguments = orjson.dumps(drawn if isinstance(drawn, dict) else {}).decode()
    if plan.break_tools:
        arguments = arguments[:-1] + ',"'
    return Call(id=chance.hexes(32, tool.name, number, *parts), name=tool.name, arguments=arguments)


def _markup(call: Call) -> str:
    """A call as models of the Hermes and Qwen families write it."""
    return f'<tool_call>\n{{"name": "{call.name}", "arguments": {call.arguments}}}\n</tool_call>'


def _salt(plan: Plan) -> tuple[object, ...]:
    """What makes generated values differ: a wrong answer, or noise."""
    if plan.wrong:
        return ("wrong",)
    return () if plan.noise is None else ("noise", plan.noise)
