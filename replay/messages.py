"""Assembly of Anthropic-style messages (``/v1/messages``), which vLLM serves too, streamed or not."""

from __future__ import annotations

import hashlib

from replay.completion import joined, usage_of
from replay.exchange import JSON, Answer, Choice, Failure, ToolCall, Usage
from replay.failures import body_failure
from replay.oddities import Oddities
from replay.values import compact

_EVENTS = frozenset(
    (
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "ping",
    )
)
_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}
_PIECES = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}


class _Block:
    """One content block while its pieces arrive."""

    __slots__ = ("id", "input", "kind", "name", "parts")

    def __init__(self, data: JSON) -> None:
        self.kind = str(data.get("type", ""))
        self.id, self.name = str(data.get("id") or ""), str(data.get("name") or "")
        given = (
            data.get("text")
            if self.kind == "text"
            else data.get("thinking")
            if self.kind == "thinking"
            else None
        )
        self.parts: list[str] = [given] if isinstance(given, str) and given else []
        self.input = data.get("input")


class Messages:
    """Takes the events of a stream, or one whole message, and builds the ``Answer`` that they mean."""

    __slots__ = (
        "_blocks",
        "_finish",
        "_media",
        "_model",
        "_role",
        "_usage",
        "counted",
        "failure",
        "finished",
        "odd",
        "streamed",
    )

    def __init__(self, odd: Oddities) -> None:
        self.odd = odd
        self.failure: Failure | None = None
        self.counted = False
        self.finished = False
        self.streamed = False
        self._blocks: dict[int, _Block] = {}
        self._media: list[str] = []
        self._usage: dict[str, object] = {}
        self._model: str | None = None
        self._finish: str | None = None
        self._role = ""

    def quick(self, chunk: JSON) -> bool:
        """No shape of this interface is taken in passing."""
        return False

    def feed(self, event: JSON, name: bytes = b"") -> bool:
        """Takes one event, or a whole message. True when it carried a token."""
        kind = event.get("type")
        if kind == "error":
            self.failure = self.failure or body_failure(event, None)
            return False
        if kind == "message":
            return self._message(event, whole=True)
        self.streamed = True
        if name and name.decode("latin-1") != kind:
            self.odd.add("client_risk.event_name", name)
        if kind == "message_start" and isinstance(message := event.get("message"), dict):
            self._message(message, whole=False)
        elif kind == "content_block_start" and isinstance(block := event.get("content_block"), dict):
            self._blocks[self._at(event)] = _Block(block)
            self._picture(block)
        elif kind == "content_block_delta" and isinstance(delta := event.get("delta"), dict):
            return self._delta(self._at(event), delta)
        elif kind == "message_delta":
            delta = event.get("delta")
            self._reason(delta.get("stop_reason") if isinstance(delta, dict) else None)
            usage = event.get("usage")
            self._count(usage)
            self.counted = self.counted or (isinstance(usage, dict) and bool(usage.get("output_tokens")))
        elif kind == "message_stop":
            self.finished = True
        return False

    def finish(self, status: int | None) -> Answer:
        """Everything fed so far as a value."""
        blocks = [self._blocks[key] for key in sorted(self._blocks)]
        thoughts = [joined(block.parts) for block in blocks if block.kind == "thinking"]
        choice = Choice(
            text=joined(part for block in blocks if block.kind == "text" for part in block.parts),
            reasoning="\n".join(thoughts),
            reasoning_field="thinking" if thoughts else "",
            tool_calls=tuple(_call(block) for block in blocks if block.kind == "tool_use"),
            finish_reason=self._finish,
            role=self._role,
            media=tuple(self._media),
        )
        return Answer(
            choices=(choice,) if blocks or self._finish else (),
            usage=self._stated(),
            model=self._model,
            error=self.failure,
            oddities=self.odd.all(),
            extra=self.odd.fields(),
        )

    def _stated(self) -> Usage | None:
        return usage_of(dict(self._usage)) if self._usage else None

    def _message(self, message: JSON, *, whole: bool) -> bool:
        if isinstance(model := message.get("model"), str):
            self._model = model
        self._role = str(message.get("role") or self._role)
        self._count(message.get("usage"))
        content = message.get("content")
        if isinstance(content, list):
            for at, block in enumerate(content):
                if isinstance(block, dict):
                    self._blocks[at] = _Block(block)
                    self._picture(block)
        elif whole:
            self.odd.add("envelope.choices_missing")
        if whole:
            self._reason(message.get("stop_reason"))
            self.finished = True
        return whole

    def _delta(self, at: int, delta: JSON) -> bool:
        block = self._blocks.get(at)
        if block is None:
            self.odd.add("envelope.index_missing")
            kind = {"input_json_delta": "tool_use", "thinking_delta": "thinking"}.get(
                str(delta.get("type")), "text"
            )
            block = self._blocks[at] = _Block({"type": kind})
        piece = delta.get(_PIECES.get(str(delta.get("type")), ""))
        if isinstance(piece, str) and piece:
            block.parts.append(piece)
            return True
        return False

    def _at(self, event: JSON) -> int:
        at = event.get("index")
        if isinstance(at, int) and not isinstance(at, bool):
            return at
        self.odd.add("envelope.index_missing")
        return max(self._blocks, default=0)

    def _reason(self, reason: object) -> None:
        if isinstance(reason, str):
            self._finish = _FINISH.get(reason, reason)

    def _count(self, usage: object) -> None:
        """Counts come in two parts: the prompt's at the start, the answer's at the end."""
        if isinstance(usage, dict):
            self._usage |= {name: value for name, value in usage.items() if value is not None}

    def _picture(self, block: JSON) -> None:
        if block.get("type") in ("image", "document"):
            digest = hashlib.sha256(compact(block.get("source"), ordered=True).encode()).hexdigest()
            self._media.append(f"{block['type']}:{digest}")


def _call(block: _Block) -> ToolCall:
    arguments = joined(block.parts)
    if not arguments and isinstance(block.input, dict):
        arguments = compact(block.input)
    return ToolCall(name=block.name, arguments=arguments, id=block.id or None)


def speaks(value: JSON) -> bool:
    """Whether a JSON object is an event or a message of this interface."""
    kind = value.get("type")
    return isinstance(kind, str) and (kind in _EVENTS or (kind == "message" and "content" in value))
