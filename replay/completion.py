"""Assembly of chat completions and completions, streamed or not, into one ``Answer``."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any

from replay.exchange import JSON, Answer, Choice, Failure, ToolCall, Usage
from replay.failures import body_failure
from replay.oddities import Oddities
from replay.values import compact

_CHUNK = frozenset(
    {"choices", "created", "error", "id", "model", "object", "obfuscation", "provider"}
    | {"service_tier", "system_fingerprint", "type", "usage"}
)
_CHOICE = frozenset(
    {"delta", "finish_reason", "index", "logprobs", "matched_stop", "message", "native_finish_reason"}
    | {"stop_reason", "text", "token_ids", "usage"}
)
_MESSAGE = frozenset(
    {"annotations", "audio", "content", "function_call", "images", "name", "reasoning"}
    | {"reasoning_content", "refusal", "role", "tool_calls"}
)
_CALL = frozenset(("function", "id", "index", "type"))
_REASONING = ("reasoning", "reasoning_content")
_PIECES = ("content", *_REASONING, "refusal")
_PADDING = "obfuscation"
"""A field that only makes all chunks of one length."""


class _Call:
    """A tool call while its pieces arrive."""

    __slots__ = ("arguments", "id", "ids", "legacy", "name")

    def __init__(self) -> None:
        self.id = ""
        """The first one."""
        self.ids: list[str] = []
        self.legacy = False
        self.name = ""
        self.arguments: list[str] = []

    def built(self) -> ToolCall:
        return ToolCall(name=self.name, arguments=joined(self.arguments), id="".join(self.ids) or None)


class _Choice:
    """One choice while its pieces arrive."""

    __slots__ = (
        "calls",
        "finish",
        "index",
        "loose",
        "media",
        "pieces",
        "reasoning_field",
        "role",
    )

    def __init__(self, index: int) -> None:
        self.index = index
        self.pieces: dict[str, list[str]] = {"content": [], "reasoning": [], "refusal": []}
        self.reasoning_field = ""
        self.media: list[str] = []
        self.calls: dict[int, _Call] = {}
        """As a strict client puts them together: by index."""
        self.loose: list[_Call] = []
        """As their ids suggest."""
        self.finish: str | None = None
        self.role = ""

    def built(self) -> Choice:
        return Choice(
            index=self.index,
            text=joined(self.pieces["content"]),
            reasoning=joined(self.pieces["reasoning"]),
            refusal=joined(self.pieces["refusal"]),
            tool_calls=tuple(self.calls[key].built() for key in sorted(self.calls)),
            finish_reason=self.finish,
            role=self.role,
            reasoning_field=self.reasoning_field,
            media=tuple(self.media),
        )


class _Shape:
    """A chunk that held one piece of text of one choice and nothing else: what all else in it looked like.

    A later chunk of as many fields, of which all these are equal, says nothing new but its piece. ``levels``: for the chunk,
    its choice and the choice's delta the number of fields, what gets those that have to stay, and their values.
    """

    __slots__ = ("add", "field", "levels", "padded")

    def __init__(self, chunk: JSON, choice: JSON, delta: JSON, field: str, parts: list[str]) -> None:
        self.field, self.add = field, parts.append
        self.padded = _PADDING in chunk
        inner = field if delta is choice else "delta"
        self.levels = (
            *_level(chunk, ("choices", _PADDING)),
            *_level(choice, (inner,)),
            *(_level(delta, (field,)) if delta is not choice else (0, None, None)),
        )


def _level(value: JSON, without: tuple[str, ...]) -> tuple[int, Callable[[JSON], Any], Any]:
    keys = [key for key in value if key not in without]
    get: Callable[[JSON], Any] = itemgetter(*keys) if keys else _nothing
    return len(value), get, get(value)


def _nothing(value: JSON) -> None:
    return None


class Completion:
    """Takes the JSON objects of an answer in order and builds the ``Answer`` they mean.

    A whole (unstreamed) body is one object whose choices hold ``message`` or ``text`` in place of ``delta``.
    """

    __slots__ = (
        "_choices",
        "_fingerprint",
        "_id",
        "_model",
        "_shape",
        "_unplaced",
        "_usage",
        "counted",
        "failure",
        "odd",
        "refused",
    )

    def __init__(self, odd: Oddities) -> None:
        self.odd = odd
        self.failure: Failure | None = None
        """An error object among the chunks."""
        self.counted = False
        """The server has stated that it generated a token."""
        self._choices: dict[int, _Choice] = {}
        self._usage: Usage | None = None
        self._model: str | None = None
        self._id: str | None = None
        self._fingerprint: str | None = None
        self._shape: _Shape | None = None
        self._unplaced = b""
        """The first piece of a choice without an index."""

    def quick(self, chunk: JSON) -> bool:
        """Takes a chunk that says nothing new but a piece of text. False: it is for ``feed``."""
        shape = self._shape
        if shape is None:
            return False
        size, get, value, choice_size, choice_get, choice_value, delta_size, delta_get, delta_value = (
            shape.levels
        )
        try:
            if len(chunk) != size or get(chunk) != value:
                return False
            choices = chunk["choices"]
            choice = delta = choices[0]
            if len(choices) != 1 or len(choice) != choice_size or choice_get(choice) != choice_value:
                return False
            if delta_get is not None:
                delta = choice["delta"]
                if len(delta) != delta_size or delta_get(delta) != delta_value:
                    return False
            piece = delta[shape.field]
        except (KeyError, TypeError, IndexError):  # another shape after all
            return False
        if type(piece) is not str or not piece or (shape.padded and _PADDING not in chunk):
            return False
        shape.add(piece)
        return True

    def feed(self, chunk: JSON, name: bytes = b"") -> bool:
        """Takes one object. True when it carried a token: non-empty content, reasoning or tool arguments."""
        self._shape = None
        if chunk.get("error") or "error" in (chunk.get("object"), chunk.get("type")) or name == b"error":
            if self.failure is None:
                self.failure = body_failure(chunk, None)
            return False
        if name and name != b"message":
            self.odd.add("client_risk.event_name", name)
        self._identity(chunk)
        usage = chunk.get("usage") or _inner_usage(chunk)
        if usage is not None:
            self._count(usage)
        for key in sorted(chunk.keys() - _CHUNK):
            if chunk[key] is not None:
                self.odd.field(key, chunk[key])
        choices = chunk.get("choices")
        if not isinstance(choices, list):
            self.odd.add("envelope.choices_missing")
            return False
        if not choices and usage is None:
            self.odd.add("client_risk.empty_choices")
        # A sum, not any(): every choice of the chunk has to be taken in.
        carried = sum(
            self._choice(choice, at) for at, choice in enumerate(choices) if isinstance(choice, dict)
        )
        if carried == 1 and len(choices) == 1:
            self._learn(chunk, choices[0])
        return carried > 0

    def finish(self, status: int | None) -> Answer:
        """Everything fed so far as a value; ``status`` is the HTTP status that an error object came under."""
        if self._unplaced:
            code = "envelope.index_ambiguous" if len(self._choices) > 1 else "envelope.index_missing"
            self.odd.add(code, self._unplaced)
        for choice in self._choices.values():
            self._check(choice)
        return Answer(
            choices=tuple(self._choices[index].built() for index in sorted(self._choices)),
            usage=self._usage,
            model=self._model,
            error=self.failure,
            oddities=self.odd.all(),
            fingerprint=self._fingerprint,
            extra=self.odd.fields(),
        )

    @property
    def finished(self) -> bool:
        """Every choice seen so far has a finish reason, and there is one."""
        return bool(self._choices) and all(choice.finish for choice in self._choices.values())

    def _identity(self, chunk: JSON) -> None:
        model, identity = chunk.get("model"), chunk.get("id")
        if isinstance(model, str) and model:
            if self._model not in (None, model):
                self.odd.add("envelope.model_changes")
            self._model = model
        if isinstance(identity, str) and identity:
            if self._id not in (None, identity):
                self.odd.add("envelope.id_changes")
            self._id = identity
        for key in ("system_fingerprint", "provider"):
            if isinstance(chunk.get(key), str):
                self._fingerprint = chunk[key]

    def _count(self, usage: Any) -> None:
        if not isinstance(usage, dict):
            self.odd.add("envelope.wrong_type", "usage")
            return
        read = usage_of(usage)
        self.counted = self.counted or bool(read.completion_tokens)
        if self._usage is not None and read != self._usage:
            self.odd.add("client_risk.usage_repeated")
        self._usage = read

    def _learn(self, chunk: JSON, choice: JSON) -> None:
        """Remembers the shape of a chunk whose only news was a piece of text."""
        whole = choice.get("delta")
        delta = whole if isinstance(whole, dict) else choice
        fields = [key for key in (*_PIECES, "text") if isinstance(delta.get(key), str) and delta[key]]
        if len(fields) != 1 or choice.get("finish_reason") is not None or choice.get("logprobs") is not None:
            return
        others = (key for key, value in delta.items() if value is not None and key not in (fields[0], "role"))
        if (delta is choice and fields != ["text"]) or (delta is not choice and any(others)):
            return
        known = self._choices.get(choice.get("index", 0))
        if known is None or known.finish is not None:
            return
        kind = {"text": "content", "reasoning_content": "reasoning"}.get(fields[0], fields[0])
        self._shape = _Shape(chunk, choice, delta, fields[0], known.pieces[kind])

    def _choice(self, data: JSON, position: int) -> bool:
        delta, index = data.get("delta"), data.get("index")
        if not isinstance(index, int) or isinstance(index, bool):
            index = self._placed(data, position)
        choice = self._choices.get(index) or self._choices.setdefault(index, _Choice(index))
        if isinstance(delta, dict):  # some hosts repeat it, or all so far, beside it
            carried = self._message(choice, delta, streamed=True)
        elif isinstance(message := data.get("message"), dict):
            carried = self._message(choice, message, streamed=False)
        else:
            carried = self._text(choice, "content", data.get("text"))
        if carried and choice.finish is not None:
            self.odd.add("finish.content_after")
        self._finish(choice, data.get("finish_reason"))
        for key in sorted(data.keys() - _CHOICE):
            if data[key] is not None:
                self.odd.field(f"choices[].{key}", data[key])
        return carried

    def _placed(self, data: JSON, position: int) -> int:
        """The index of a choice that states none: its place in a whole answer; in a stream nobody can say."""
        if not isinstance(data.get("delta"), dict) and isinstance(data.get("message"), dict):
            self.odd.add("envelope.index_missing")
            return position
        self._unplaced = self._unplaced or self.odd.event or b"?"
        return 0

    def _finish(self, choice: _Choice, reason: Any) -> None:
        if not reason:
            return
        if not isinstance(reason, str):
            self.odd.add("envelope.wrong_type", "finish_reason")
            return
        if choice.finish not in (None, reason):
            self.odd.add("finish.changes")
        choice.finish = reason

    def _message(self, choice: _Choice, message: JSON, *, streamed: bool) -> bool:
        if isinstance(role := message.get("role"), str) and role:
            choice.role = role
        carried = self._text(choice, "content", message.get("content"))
        carried = self._text(choice, "refusal", message.get("refusal")) or carried
        carried = self._reasoning(choice, message) or carried
        calls = message.get("tool_calls")
        if isinstance(calls, list):
            for position, call in enumerate(calls):
                if isinstance(call, dict):
                    carried = self._call(choice, call, position if not streamed else None) or carried
        elif calls is not None:
            self.odd.add("envelope.wrong_type", "tool_calls")
        if isinstance(legacy := message.get("function_call"), dict):
            self.odd.add("client_risk.function_call")
            carried = self._call(choice, {"function": legacy, "index": 0}, None if streamed else 0) or carried
            choice.calls[0].legacy = True
        if isinstance(audio := message.get("audio"), dict):
            self._media(choice, "audio", audio.get("data"))
            carried = self._text(choice, "content", audio.get("transcript")) or carried
        self._media(choice, "image", message.get("images"))
        for key in sorted(message.keys() - _MESSAGE):
            if message[key] is not None:
                self.odd.field(f"message.{key}", message[key])
        return carried

    def _reasoning(self, choice: _Choice, message: JSON) -> bool:
        """Under either name; both names with one text are one text."""
        found = [key for key in _REASONING if message.get(key)]
        if len(found) > 1:
            self.odd.add("client_risk.reasoning_twice")
        if not found:
            return False
        choice.reasoning_field = choice.reasoning_field or found[0]
        return self._text(choice, "reasoning", message[found[0]])

    def _text(self, choice: _Choice, kind: str, value: Any) -> bool:
        if isinstance(value, list):
            self.odd.add("envelope.content_parts")
            value = "".join(self._part(choice, part) for part in value)
        if value is None or value == "":
            return False
        if not isinstance(value, str):
            self.odd.add("envelope.wrong_type", kind)
            return False
        choice.pieces[kind].append(value)
        return True

    def _part(self, choice: _Choice, part: Any) -> str:
        if isinstance(part, str):
            return part
        if not isinstance(part, dict):
            return ""
        kind = part.get("type")
        if kind in ("image_url", "image", "input_audio", "audio"):
            self._media(choice, str(kind).partition("_")[0], part)
        if kind == "thinking":
            choice.reasoning_field = choice.reasoning_field or "thinking"
            self._text(choice, "reasoning", part.get("thinking"))
            return ""
        text = part.get("text")
        return text if isinstance(text, str) else ""

    def _media(self, choice: _Choice, kind: str, value: Any) -> None:
        if value:
            choice.media.append(f"{kind}:{hashlib.sha256(compact(value, ordered=True).encode()).hexdigest()}")

    def _call(self, choice: _Choice, data: JSON, position: int | None) -> bool:
        """One piece of a call, or a whole call at ``position`` of an unstreamed answer."""
        function = data.get("function")
        function = function if isinstance(function, dict) else {}
        identity, name = _string(data.get("id")), _string(function.get("name"))
        for key in sorted(data.keys() - _CALL):
            if data[key] is not None:
                self.odd.field(f"tool_calls[].{key}", data[key])
        call = choice.calls.setdefault(self._place(choice, data, position), _Call())
        loose = self._loose(choice, call, identity)
        if call.id and identity:
            self.odd.add("tools.index_collision" if call.id != identity else "tools.repeated_id")
        if call.name and name and call.id in ("", identity):
            self.odd.add("tools.repeated_name")
        arguments = function.get("arguments")
        if isinstance(arguments, dict | list) or (arguments is not None and not isinstance(arguments, str)):
            self.odd.add("tools.arguments_type")
            arguments = compact(arguments)
        for one in (call, loose):
            one.id = one.id or identity
            one.name += name
            if identity:
                one.ids.append(identity)
            if arguments:
                one.arguments.append(arguments)
        return bool(arguments)

    def _place(self, choice: _Choice, data: JSON, position: int | None) -> int:
        """The slot of a call's piece: its place in a whole answer, else its index, as clients do."""
        if position is not None:
            return position
        stated = data.get("index")
        if isinstance(stated, int) and not isinstance(stated, bool):
            return stated
        self.odd.add("tools.index_missing")
        identity = data.get("id")
        for place, call in choice.calls.items():
            if identity and call.id == identity:
                return place
        last = max(choice.calls, default=-1)
        return last + 1 if identity or not choice.calls else last

    def _loose(self, choice: _Choice, call: _Call, identity: str) -> _Call:
        """The call that a piece belongs to by its id; without one, the last."""
        known = next((one for one in choice.loose if identity and one.id == identity), None)
        if known is not None:
            return known
        if identity or not choice.loose:
            choice.loose.append(_Call())
            return choice.loose[-1]
        at = list(choice.calls.values()).index(call)
        return choice.loose[at] if len(choice.loose) == len(choice.calls) else choice.loose[-1]

    def _check(self, choice: _Choice) -> None:
        """What only the whole answer shows."""
        for code in ("tools.index_collision", "tools.index_missing"):
            if code in self.odd:
                self.odd.add(
                    "tools.by_id", ", ".join(f"{c.name}({''.join(c.arguments)})" for c in choice.loose)
                )
        for call in choice.calls.values():
            if not call.name:
                self.odd.add("tools.name_missing", "".join(call.arguments))
            if not call.id and not call.legacy:
                self.odd.add("tools.id_missing", call.name)


def _inner_usage(chunk: JSON) -> Any:
    """Usage where some hosts put it: in a choice, or under their own name (``x_groq``)."""
    own = chunk.get("x_groq")
    if isinstance(own, dict) and isinstance(own.get("usage"), dict):
        return own["usage"]
    choices = chunk.get("choices")
    places = choices if isinstance(choices, list) else []
    return next((one["usage"] for one in places if isinstance(one, dict) and one.get("usage")), None)


def joined(parts: Iterable[str]) -> str:
    """The whole of a text. A character that servers cut into two escapes (a surrogate pair over two pieces) is one again."""
    text = "".join(parts)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return text


def usage_of(data: JSON) -> Usage:
    """Token counts under the names of either interface."""
    prompt = data.get("prompt_tokens_details") or data.get("input_tokens_details")
    output = data.get("completion_tokens_details") or data.get("output_tokens_details")
    cached = _number(prompt, "cached_tokens")
    return Usage(
        prompt_tokens=_number(data, "prompt_tokens", "input_tokens"),
        completion_tokens=_number(data, "completion_tokens", "output_tokens"),
        total_tokens=_number(data, "total_tokens"),
        cached_tokens=_number(data, "cache_read_input_tokens") if cached is None else cached,
        reasoning_tokens=_number(output, "reasoning_tokens"),
    )


def _number(data: Any, *keys: str) -> int | None:
    for key in keys if isinstance(data, dict) else ():
        value = data.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53:
            return value
    return None


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""
