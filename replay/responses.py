"""Assembly of the Responses API (``/v1/responses``), streamed or not."""

from __future__ import annotations

import hashlib
from typing import Any

from replay.completion import joined, usage_of
from replay.exchange import JSON, Answer, Choice, Failure, ToolCall, Usage
from replay.failures import body_failure
from replay.oddities import Oddities
from replay.values import compact

_TEXT_DELTAS = {
    "response.output_text.delta": "text",
    "response.refusal.delta": "refusal",
    "response.reasoning_text.delta": "reasoning",
    "response.reasoning_summary_text.delta": "reasoning",
}
_CALL_DELTAS = frozenset(
    (
        "response.function_call_arguments.delta",
        "response.mcp_call_arguments.delta",
        "response.custom_tool_call_input.delta",
    )
)
_ENDS = frozenset(("response.completed", "response.incomplete", "response.failed", "response.cancelled"))
_CALLS = frozenset(("function_call", "mcp_call", "custom_tool_call"))
_MEDIA = frozenset(("image_generation_call", "output_audio"))


class _Item:
    """One output item while its pieces arrive."""

    __slots__ = ("arguments", "id", "key", "kind", "name", "refusal", "role", "text", "thoughts")

    def __init__(self) -> None:
        self.kind = self.id = self.key = self.name = self.role = ""
        self.text: list[str] = []
        self.refusal: list[str] = []
        self.thoughts: list[str] = []
        self.arguments: list[str] = []


class Responses:
    """Takes the events of a stream, or one whole response object, and builds the ``Answer`` that they mean.

    The deltas are what a client shows as it goes; the object in the last event is what it keeps. The answer is built from the
    deltas where there are any, and an object that says something else is an oddity.
    """

    __slots__ = (
        "_fingerprint",
        "_finish",
        "_items",
        "_media",
        "_model",
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
        self._items: dict[int, _Item] = {}
        self._media: list[str] = []
        self._usage: Usage | None = None
        self._model: str | None = None
        self._finish: str | None = None
        self._fingerprint: str | None = None

    def quick(self, chunk: JSON) -> bool:
        """No shape of this interface is taken in passing."""
        return False

    def feed(self, event: JSON, name: bytes = b"") -> bool:
        """Takes one event, or a whole response. True when it carried a token."""
        kind = event.get("type")
        if isinstance(kind, str) and kind == "error":
            self._fail(event)
            return False
        if not isinstance(kind, str) or event.get("object") == "response":
            return self._whole(event)
        self.streamed = True
        if name and name.decode("latin-1") != kind:
            self.odd.add("client_risk.event_name", name)
        if kind in _TEXT_DELTAS or kind in _CALL_DELTAS:
            return self._delta(kind, event)
        if kind in ("response.output_item.added", "response.output_item.done"):
            item = event.get("item")
            if isinstance(item, dict):
                self._item(self._at(event), item, final=kind.endswith("done"))
        elif isinstance(response := event.get("response"), dict):
            self._about(response)
            if kind in _ENDS:
                self._end(response)
        return False

    def finish(self, status: int | None) -> Answer:
        """Everything fed so far as a value."""
        items = [self._items[key] for key in sorted(self._items)]
        calls = tuple(
            ToolCall(name=item.name, arguments=joined(item.arguments), id=item.id or None)
            for item in items
            if item.kind in _CALLS
        )
        if calls and self._finish == "stop":
            self._finish = "tool_calls"
        choice = Choice(
            text=joined(part for item in items for part in item.text),
            reasoning="\n".join(joined(item.thoughts) for item in items if item.thoughts),
            reasoning_field="reasoning" if any(item.thoughts for item in items) else "",
            refusal=joined(part for item in items for part in item.refusal),
            tool_calls=calls,
            finish_reason=self._finish,
            role=next((item.role for item in items if item.role), ""),
            media=tuple(self._media),
        )
        empty = not items and self._finish is None
        return Answer(
            choices=() if empty else (choice,),
            usage=self._usage,
            model=self._model,
            error=self.failure,
            oddities=self.odd.all(),
            fingerprint=self._fingerprint,
            extra=self.odd.fields(),
        )

    def _delta(self, kind: str, event: JSON) -> bool:
        piece = event.get("delta")
        if not isinstance(piece, str):
            self.odd.add("envelope.wrong_type", kind)
            return False
        item = self._items.setdefault(self._at(event), _Item())
        parts = {
            "text": item.text,
            "refusal": item.refusal,
            "reasoning": item.thoughts,
        }.get(_TEXT_DELTAS.get(kind, ""), item.arguments)
        if parts is item.arguments and item.kind not in _CALLS:
            item.kind = "function_call"
        if piece:
            parts.append(piece)
        return bool(piece)

    def _at(self, event: JSON) -> int:
        at = event.get("output_index")
        if isinstance(at, int) and not isinstance(at, bool):
            return at
        self.odd.add("envelope.index_missing")
        return max(self._items, default=0)

    def _item(self, at: int, data: JSON, *, final: bool) -> None:
        item = self._items.setdefault(at, _Item())
        item.kind = str(data.get("type") or item.kind)
        item.key = str(data.get("id") or item.key)
        item.role = str(data.get("role") or item.role)
        item.name = str(data.get("name") or item.name)
        item.id = str(data.get("call_id") or data.get("id") or item.id)
        if not final:
            return
        whole = _Item()
        self._read(whole, data)
        for name in ("text", "refusal", "thoughts", "arguments"):
            said, kept = "".join(getattr(item, name)), "".join(getattr(whole, name))
            if kept and not said:
                setattr(item, name, [kept])
            elif kept and kept != said:
                self.odd.add("envelope.final_differs", kept)

    def _read(self, item: _Item, data: JSON) -> None:
        """A whole item's contents."""
        kind = str(data.get("type"))
        content = data.get("content")
        for part in content if isinstance(content, list) else ():
            if not isinstance(part, dict):
                continue
            for key, parts in (("text", item.text), ("refusal", item.refusal)):
                if isinstance(part.get(key), str) and kind != "reasoning":
                    parts.append(part[key])
            if kind == "reasoning" and isinstance(part.get("text"), str):
                item.thoughts.append(part["text"])
        summary = data.get("summary")
        for part in summary if isinstance(summary, list) else ():
            if isinstance(part, dict) and isinstance(part.get("text"), str):
                item.thoughts.append(part["text"])
        for key in ("arguments", "input"):
            if kind in _CALLS and isinstance(data.get(key), str):
                item.arguments.append(data[key])
            elif kind in _CALLS and isinstance(data.get(key), dict):
                self.odd.add("tools.arguments_type")
                item.arguments.append(compact(data[key]))
        if kind in _MEDIA and data.get("result"):
            digest = hashlib.sha256(compact(data["result"]).encode()).hexdigest()
            self._media.append(f"{kind.partition('_')[0]}:{digest}")

    def _whole(self, response: JSON) -> bool:
        if response.get("error"):
            self._fail(response)
            return False
        self._about(response)
        output = response.get("output")
        if not isinstance(output, list):
            self.odd.add("envelope.choices_missing")
            return False
        for at, data in enumerate(output):
            if isinstance(data, dict):
                item = self._items.setdefault(at, _Item())
                item.kind, item.role = str(data.get("type", "")), str(data.get("role") or "")
                item.name, item.id = (
                    str(data.get("name") or ""),
                    str(data.get("call_id") or data.get("id") or ""),
                )
                self._read(item, data)
        self._end(response)
        return True

    def _end(self, response: JSON) -> None:
        self.finished = True
        status = response.get("status")
        details = response.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, dict) else None
        self._finish = {
            "completed": "stop",
            "incomplete": {"max_output_tokens": "length", "None": "incomplete"}.get(str(reason), str(reason)),
            "failed": "error",
            "cancelled": "abort",
        }.get(str(status))
        if status == "failed" and self.failure is None:
            self._fail(response)
        output = response.get("output")
        if self.streamed and isinstance(output, list):
            for at, data in enumerate(output):
                if isinstance(data, dict):
                    self._item(self._place(data, at), data, final=True)

    def _place(self, data: JSON, at: int) -> int:
        """Where an item of the last event stood in the stream: by its id, else by its place; beyond all when it is new."""
        name = data.get("id")
        found = next((place for place, item in self._items.items() if name and item.key == name), None)
        if found is not None:
            return found
        known = self._items.get(at)
        fits = known is None or (not known.key and known.kind in ("", str(data.get("type"))))
        return at if fits else max(self._items) + 1

    def _about(self, response: JSON) -> None:
        if isinstance(model := response.get("model"), str):
            self._model = model
        if isinstance(usage := response.get("usage"), dict):
            self._usage = usage_of(usage)
            self.counted = self.counted or bool(self._usage.completion_tokens)

    def _fail(self, data: JSON) -> None:
        if self.failure is None:
            self.failure = body_failure(data, None)


def speaks(value: Any) -> bool:
    """Whether a JSON object is an event or a response of this interface."""
    kind = value.get("type")
    return value.get("object") == "response" or (isinstance(kind, str) and kind.startswith("response."))
