"""Assembly of answers: chat completions and completions, streamed or not, into one ``Answer``."""

from __future__ import annotations

from typing import Any

import orjson

from replay.exchange import JSON, Answer, Choice, ToolCall, Usage
from replay.failures import body_failure


class _Call:
    """A tool call while its pieces arrive."""

    __slots__ = ("arguments", "id", "name")

    def __init__(self) -> None:
        self.id: str | None = None
        self.name = ""
        self.arguments: list[str] = []


class _Choice:
    """One choice while its pieces arrive."""

    __slots__ = ("calls", "finish", "index", "reasoning", "refusal", "text")

    def __init__(self, index: int) -> None:
        self.index = index
        self.text: list[str] = []
        self.reasoning: list[str] = []
        self.refusal: list[str] = []
        self.calls: dict[int, _Call] = {}
        self.finish: str | None = None

    def built(self) -> Choice:
        calls = (self.calls[key] for key in sorted(self.calls))
        return Choice(
            index=self.index,
            text="".join(self.text),
            reasoning="".join(self.reasoning),
            refusal="".join(self.refusal),
            tool_calls=tuple(ToolCall(name=c.name, arguments="".join(c.arguments), id=c.id) for c in calls),
            finish_reason=self.finish,
        )


class Assembler:
    """Takes the JSON objects of an answer in order and builds the ``Answer`` they mean.

    A whole (unstreamed) body is one object whose choices hold ``message`` or ``text`` in place of ``delta``.
    """

    __slots__ = ("_choices", "_error", "_model", "_oddities", "_usage")

    def __init__(self) -> None:
        self._choices: dict[int, _Choice] = {}
        self._usage: Usage | None = None
        self._model: str | None = None
        self._error: JSON | None = None
        self._oddities: dict[str, None] = {}

    def odd(self, code: str) -> None:
        """Notes a peculiarity of the wire, once."""
        self._oddities.setdefault(code)

    def feed(self, chunk: JSON) -> bool:
        """Takes one object. True when it carried a token: non-empty content, reasoning or tool arguments."""
        if chunk.get("error") or chunk.get("object") == "error":
            self._error = self._error or chunk
            return False
        if isinstance(model := chunk.get("model"), str):
            self._model = model
        if isinstance(usage := chunk.get("usage"), dict):
            self._usage = _usage(usage)
        choices = chunk.get("choices")
        if not isinstance(choices, list):
            self.odd("envelope.choices_missing")
            return False
        # A sum, not any(): every choice of the chunk has to be taken in.
        return sum(self._choice(choice) for choice in choices if isinstance(choice, dict)) > 0

    def finish(self, status: int | None) -> Answer:
        """Everything fed so far as a value; ``status`` is the HTTP status that an error object came under."""
        return Answer(
            choices=tuple(self._choices[index].built() for index in sorted(self._choices)),
            usage=self._usage,
            model=self._model,
            error=body_failure(self._error, status) if self._error else None,
            oddities=tuple(self._oddities),
        )

    @property
    def finished(self) -> bool:
        """Every choice seen so far has a finish reason, and there is one."""
        return bool(self._choices) and all(choice.finish for choice in self._choices.values())

    def _choice(self, data: JSON) -> bool:
        index = data.get("index")
        if not isinstance(index, int):
            self.odd("envelope.index_missing")
            index = 0
        choice = self._choices.get(index) or self._choices.setdefault(index, _Choice(index))
        if isinstance(finish := data.get("finish_reason"), str):
            choice.finish = finish
        carried = self._add(choice.text, data.get("text"))
        for key in ("delta", "message"):
            if isinstance(message := data.get(key), dict):
                carried = self._message(choice, message, streamed=key == "delta") or carried
        return carried

    def _message(self, choice: _Choice, message: JSON, *, streamed: bool) -> bool:
        reasoning = message.get("reasoning") or message.get("reasoning_content")
        carried = self._add(choice.text, message.get("content"))
        carried = self._add(choice.reasoning, reasoning) or carried
        carried = self._add(choice.refusal, message.get("refusal")) or carried
        calls = message.get("tool_calls")
        for position, call in enumerate(calls if isinstance(calls, list) else ()):
            if not isinstance(call, dict):
                continue
            if streamed and choice.calls and "id" in call and not isinstance(call.get("index"), int):
                self.odd("tools.index_missing")
            carried = self._call(choice, call, position) or carried
        return carried

    def _add(self, parts: list[str], value: Any) -> bool:
        if isinstance(value, list):
            value = "".join(
                part["text"] for part in value if isinstance(part, dict) and isinstance(part.get("text"), str)
            )
        if not isinstance(value, str) or not value:
            return False
        parts.append(value)
        return True

    def _call(self, choice: _Choice, data: JSON, position: int) -> bool:
        call = _find_call(choice.calls, data, position)
        if isinstance(identity := data.get("id"), str) and identity:
            call.id = identity
        function = data.get("function")
        if not isinstance(function, dict):
            return False
        if isinstance(name := function.get("name"), str) and name:
            call.name = name
        arguments = function.get("arguments")
        if isinstance(arguments, dict | list):
            self.odd("tools.arguments_type")
            arguments = orjson.dumps(arguments).decode()
        if not isinstance(arguments, str) or not arguments:
            return False
        call.arguments.append(arguments)
        return True


def _find_call(calls: dict[int, _Call], data: JSON, position: int) -> _Call:
    """The call that a piece belongs to: by index as clients do; without one, an id opens a new call."""
    stated = data.get("index")
    if isinstance(stated, int):
        return calls.setdefault(stated, _Call())
    identity = data.get("id")
    for call in calls.values():
        if identity and call.id == identity:
            return call
    if identity or not calls:
        return calls.setdefault(len(calls), _Call())
    return calls.get(position) or next(reversed(calls.values()))


def _usage(data: JSON) -> Usage:
    details = data.get("prompt_tokens_details")
    return Usage(
        prompt_tokens=_count(data.get("prompt_tokens")),
        completion_tokens=_count(data.get("completion_tokens")),
        cached_tokens=_count(details.get("cached_tokens")) if isinstance(details, dict) else None,
    )


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None
