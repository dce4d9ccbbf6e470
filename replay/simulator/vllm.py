"""vLLM's envelopes, as its 0.32 and 0.33 servers write them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from replay.exchange import JSON
from replay.simulator import wire
from replay.simulator.ask import Ask, RefusalError, Wrong
from replay.simulator.speech import Call, Piece, Spoken
from replay.simulator.wire import Counts, Head, Step

FINGERPRINT = "vllm-0.33.0-simulated"
_TYPES = {
    Wrong.OVERFLOW: "BadRequestError",
    Wrong.NOT_JSON: "Bad Request",
    Wrong.INVALID: "Bad Request",
    Wrong.MODEL: "NotFoundError",
    Wrong.ROUTE: "Not Found",
    Wrong.METHOD: "Method Not Allowed",
    Wrong.RATE_LIMIT: "Too Many Requests",
    Wrong.SERVER: "InternalServerError",
}


def error(refusal: RefusalError) -> JSON:
    """The error envelope; an authentication failure has a bare text in it."""
    if refusal.wrong is Wrong.AUTH:
        return {"error": "Unauthorized"}
    kind = _TYPES.get(refusal.wrong, "BadRequestError")
    if refusal.wrong is Wrong.SERVER and refusal.status != 500:
        kind = refusal.message  # overload has the status' own phrase as its type
    return {
        "error": {"message": refusal.message, "type": kind, "param": refusal.param, "code": refusal.status}
    }


def models(names: tuple[str, ...], created: int, context: int) -> list[JSON]:
    """The cards of ``/v1/models``."""
    return [_card(name, created, context) for name in names]


def body(ask: Ask, head: Head, spoken: tuple[Spoken, ...], used: Counts) -> JSON:
    """An answer that is not streamed, with every field that is null."""
    choices = [_choice(ask, item) for item in spoken]
    tail: JSON = {"kv_transfer_params": None, "ec_transfer_params": None, "metrics": None}
    usage = {**_usage(used), "prompt_tokens_details": None, "completion_tokens_details": None}
    common = {**wire.head(ask, head, streamed=False), "choices": choices, "service_tier": None}
    middle: JSON = {"system_fingerprint": FINGERPRINT, "usage": usage}
    if ask.chat:
        middle |= {"prompt_logprobs": None, "prompt_token_ids": None, "prompt_text": None}
    return common | middle | tail


def stream(
    ask: Ask, head: Head, spoken: tuple[Spoken, ...], used: Counts
) -> Iterator[tuple[int | None, bytes]]:
    """Events with the index of the token whose time they keep; ``None`` goes out with what came before."""
    common = wire.head(ask, head, streamed=True)
    if ask.chat:
        for item in spoken:
            yield 0, wire.event(common | {"choices": [_role(item)]} | wire.running(ask, used, 0, _usage))
    for step in wire.steps(spoken, merge_length=True):
        chunk: JSON = common | {"choices": [_delta(step) if ask.chat else _text(step)]}
        if step.finish and not ask.include_usage:
            chunk["system_fingerprint"] = FINGERPRINT
        at = min(step.at + 1, len(step.spoken.pieces))
        yield (step.at if step.piece else None), wire.event(chunk | wire.running(ask, used, at, _usage))
    if ask.include_usage:
        yield (
            None,
            wire.event(common | {"choices": [], "usage": _usage(used), "system_fingerprint": FINGERPRINT}),
        )
    yield None, wire.DONE


def _card(name: str, created: int, context: int) -> JSON:
    permission = {
        "id": f"modelperm-{created:032x}",
        "object": "model_permission",
        "created": created,
        "allow_create_engine": False,
        "allow_sampling": True,
        "allow_logprobs": True,
        "allow_search_indices": False,
        "allow_view": True,
        "allow_fine_tuning": False,
        "organization": "*",
        "group": None,
        "is_blocking": False,
    }
    card: JSON = {
        "id": name,
        "object": "model",
        "created": created,
        "owned_by": "vllm",
        "root": name,
        "parent": None,
    }
    return card | {"max_model_len": context, "permission": [permission]}


def _usage(used: Counts) -> JSON:
    return {"prompt_tokens": used.prompt, "total_tokens": used.total, "completion_tokens": used.completion}


def _choice(ask: Ask, item: Spoken) -> JSON:
    said: JSON = {"message": _message(item)} if ask.chat else {"text": item.text}
    end: JSON = {"finish_reason": item.finish, "stop_reason": item.stop_reason, "token_ids": None}
    rest: JSON = {} if ask.chat else {"prompt_logprobs": None, "prompt_token_ids": None}
    return {
        "index": item.index,
        **said,
        "logprobs": wire.logprobs(ask, item),
        **end,
        **rest,
        "routed_experts": None,
    }


def _message(item: Spoken) -> JSON:
    message: JSON = {"role": "assistant", "content": None if item.calls else item.text}
    message |= {"refusal": None, "annotations": None, "audio": None, "function_call": None}
    if item.calls:
        message["tool_calls"] = [_call(call) for call in item.calls]
    return message | {"reasoning": None}


def _call(call: Call) -> JSON:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call_id(call), "type": "function", "function": function}


def call_id(call: Call) -> str:
    """An id as vLLM and TensorRT-LLM make it."""
    return f"chatcmpl-tool-{call.id}"


def _role(item: Spoken) -> JSON:
    delta = {"role": "assistant", "content": ""}
    return {"index": item.index, "delta": delta, "logprobs": None, "finish_reason": None}


def _delta(step: Step) -> JSON:
    choice: JSON = {
        "index": step.spoken.index,
        "delta": _said(step),
        "logprobs": None,
        "finish_reason": step.finish,
    }
    if step.finish:
        choice["stop_reason"] = step.spoken.stop_reason
    return choice | {"token_ids": None}


def _said(step: Step) -> JSON:
    if step.piece is None:
        return {} if step.spoken.calls else {"content": ""}
    if step.piece.call is None:
        return {"content": step.piece.text}
    return {"tool_calls": [_call_delta(step.piece, step.spoken.calls[step.piece.call])]}


def _call_delta(piece: Piece, call: Call) -> JSON:
    if piece.opens:
        function: dict[str, Any] = {"name": call.name, "arguments": ""}
        return {"id": call_id(call), "type": "function", "index": piece.call, "function": function}
    return {"index": piece.call, "function": {"arguments": piece.text}}


def _text(step: Step) -> JSON:
    text = step.piece.text if step.piece else ""
    end: JSON = {
        "finish_reason": step.finish,
        "stop_reason": step.spoken.stop_reason if step.finish else None,
    }
    ids: JSON = {"prompt_token_ids": None, "token_ids": None}
    return {"index": step.spoken.index, "text": text, "logprobs": None, **end, **ids}
