"""OpenAI's envelopes: a fingerprint and a tier in every chunk, the finish reason in a chunk of its own."""

from __future__ import annotations

from collections.abc import Iterator

from replay.exchange import JSON
from replay.simulator import wire
from replay.simulator.ask import Ask, RefusalError, Wrong
from replay.simulator.speech import Call, Spoken
from replay.simulator.wire import Counts, Head, Step

FINGERPRINT = "fp_5146756d74"
_KINDS: dict[Wrong, tuple[str, str | None]] = {
    Wrong.OVERFLOW: ("invalid_request_error", "context_length_exceeded"),
    Wrong.AUTH: ("invalid_request_error", "invalid_api_key"),
    Wrong.MODEL: ("invalid_request_error", "model_not_found"),
    Wrong.RATE_LIMIT: ("requests", "rate_limit_exceeded"),
    Wrong.SERVER: ("server_error", None),
}


def error(refusal: RefusalError) -> JSON:
    """The error envelope, whose code is a word or null."""
    kind, code = _KINDS.get(refusal.wrong, ("invalid_request_error", None))
    return {"error": {"message": refusal.message, "type": kind, "param": refusal.param, "code": code}}


def models(names: tuple[str, ...], created: int, context: int) -> list[JSON]:
    """The cards of ``/v1/models``."""
    return [{"id": name, "object": "model", "created": created, "owned_by": "system"} for name in names]


def body(ask: Ask, head: Head, spoken: tuple[Spoken, ...], used: Counts) -> JSON:
    """An answer that is not streamed."""
    choices = [_choice(ask, item) for item in spoken]
    tail: JSON = {"service_tier": "default"} if ask.chat else {}
    named = wire.head(ask, head, streamed=False)
    return {**named, "choices": choices, "usage": _usage(used), **tail, "system_fingerprint": FINGERPRINT}


def stream(
    ask: Ask, head: Head, spoken: tuple[Spoken, ...], used: Counts
) -> Iterator[tuple[int | None, bytes]]:
    """Events with the index of the token whose time they keep; ``None`` goes out with what came before."""
    common = wire.head(ask, head, streamed=True)
    if ask.chat:
        common["service_tier"] = "default"
    common["system_fingerprint"] = FINGERPRINT
    pending: JSON = {"usage": None} if ask.include_usage else {}
    if ask.chat:
        for item in spoken:
            yield 0, wire.event(common | {"choices": [_role(item)]} | pending)
    for step in wire.steps(spoken, merge_length=False):
        choice = _delta(step) if ask.chat else _text(step)
        yield (step.at if step.piece else None), wire.event(common | {"choices": [choice]} | pending)
    if ask.include_usage:
        yield None, wire.event(common | {"choices": [], "usage": _usage(used)})
    yield None, wire.DONE


def _usage(used: Counts) -> JSON:
    spent = {"reasoning_tokens": 0, "audio_tokens": 0}
    details = {"accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0}
    return {
        "prompt_tokens": used.prompt,
        "completion_tokens": used.completion,
        "total_tokens": used.total,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": spent | details,
    }


def _choice(ask: Ask, item: Spoken) -> JSON:
    if not ask.chat:
        return {"text": item.text, "index": item.index, "logprobs": None, "finish_reason": item.finish}
    message: JSON = {"role": "assistant", "content": None if item.calls else item.text}
    if item.calls:
        message["tool_calls"] = [_call(call) for call in item.calls]
    message |= {"refusal": None, "annotations": []}
    given = wire.logprobs(ask, item)
    return {"index": item.index, "message": message, "logprobs": given, "finish_reason": item.finish}


def _call(call: Call) -> JSON:
    return {"id": _id(call), "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _id(call: Call) -> str:
    return f"call_{call.id[:24]}"


def _role(item: Spoken) -> JSON:
    delta: JSON = {"role": "assistant", "content": None if item.calls else "", "refusal": None}
    return {"index": item.index, "delta": delta, "logprobs": None, "finish_reason": None}


def _delta(step: Step) -> JSON:
    return {"index": step.spoken.index, "delta": _said(step), "logprobs": None, "finish_reason": step.finish}


def _said(step: Step) -> JSON:
    piece = step.piece
    if piece is None:
        return {}
    if piece.call is None:
        return {"content": piece.text}
    call = step.spoken.calls[piece.call]
    if piece.opens:
        function = {"name": call.name, "arguments": ""}
        return {
            "tool_calls": [{"index": piece.call, "id": _id(call), "type": "function", "function": function}]
        }
    return {"tool_calls": [{"index": piece.call, "function": {"arguments": piece.text}}]}


def _text(step: Step) -> JSON:
    text = step.piece.text if step.piece else ""
    return {"text": text, "index": step.spoken.index, "logprobs": None, "finish_reason": step.finish}
