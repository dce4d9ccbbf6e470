"""TensorRT-LLM's envelopes: flat errors, strict fields, nulls left out of chunks."""

from __future__ import annotations

from collections.abc import Iterator

from replay.exchange import JSON
from replay.simulator import wire
from replay.simulator.ask import Ask, RefusalError, Wrong
from replay.simulator.speech import Call, Spoken
from replay.simulator.vllm import call_id
from replay.simulator.wire import Counts, Head, Step

_TYPES = {
    Wrong.AUTH: "AuthenticationError",
    Wrong.MODEL: "NotFoundError",
    Wrong.RATE_LIMIT: "RateLimitError",
    Wrong.SERVER: "InternalServerError",
}
_SAMPLING = """n seed stop temperature top_p frequency_penalty presence_penalty logit_bias best_of top_k
min_p use_beam_search top_p_min repetition_penalty length_penalty early_stopping stop_token_ids ignore_eos
min_tokens include_stop_str_in_output skip_special_tokens spaces_between_special_tokens truncate_prompt_tokens
lora_request prompt_ignore_length"""
_SHARED = """model logprobs max_tokens stream stream_options user response_format add_special_tokens
disaggregated_params"""
_CHAT = """messages prompt_token_ids top_logprobs max_completion_tokens tools tool_choice parallel_tool_calls
reasoning_effort echo add_generation_prompt documents chat_template chat_template_kwargs cache_salt"""
_TEXT = "prompt echo suffix return_context_logits detokenize"
CHAT_FIELDS = frozenset(f"{_SAMPLING} {_SHARED} {_CHAT}".split())
"""Fields of a chat request; any other is refused."""
TEXT_FIELDS = frozenset(f"{_SAMPLING} {_SHARED} {_TEXT}".split())
"""Fields of a completion request; any other is refused."""


def refuse_extras(data: JSON, *, chat: bool) -> None:
    """Raises RefusalError for fields that the server does not know."""
    extra = [name for name in data if name not in (CHAT_FIELDS if chat else TEXT_FIELDS)]
    if extra:
        found = [{"type": "extra_forbidden", "loc": ("body", name), "input": data[name]} for name in extra]
        raise RefusalError(Wrong.EXTRA_FIELD, str(found))


def error(refusal: RefusalError) -> JSON:
    """The flat error object; a route that does not exist is answered by the web framework instead."""
    if refusal.wrong in (Wrong.ROUTE, Wrong.METHOD):
        return {"detail": refusal.message}
    kind = _TYPES.get(refusal.wrong, "BadRequestError")
    return {
        "object": "error",
        "message": refusal.message,
        "type": kind,
        "param": None,
        "code": refusal.status,
    }


def models(names: tuple[str, ...], created: int, context: int) -> list[JSON]:
    """The cards of ``/v1/models``, which have no context length."""
    return [{"id": name, "object": "model", "created": created, "owned_by": "tensorrt_llm"} for name in names]


def body(ask: Ask, head: Head, spoken: tuple[Spoken, ...], used: Counts) -> JSON:
    """An answer that is not streamed, with every field that is null."""
    choices = [_choice(ask, item) for item in spoken]
    return {
        **wire.head(ask, head, streamed=False),
        "choices": choices,
        "usage": _usage(used),
        "prompt_token_ids": None,
    }


def stream(
    ask: Ask, head: Head, spoken: tuple[Spoken, ...], used: Counts
) -> Iterator[tuple[int | None, bytes]]:
    """Events with the index of the token whose time they keep; ``None`` goes out with what came before."""
    common = wire.head(ask, head, streamed=True)
    if ask.chat:
        for item in spoken:
            role: JSON = {"index": item.index, "delta": {"role": "assistant"}}
            yield 0, wire.event(common | {"choices": [role]} | wire.running(ask, used, 0, _usage), b" \n\n")
    for step in wire.steps(spoken, merge_length=True):
        chunk: JSON = common | {"choices": [_delta(step) if ask.chat else _text(step)]}
        if not ask.chat:
            chunk["usage"] = None
        at = min(step.at + 1, len(step.spoken.pieces))
        yield (step.at if step.piece else None), wire.event(chunk | wire.running(ask, used, at, _usage))
    if ask.include_usage:
        yield None, wire.event(common | {"choices": [], "usage": _usage(used)})
    yield None, wire.DONE


def _usage(used: Counts) -> JSON:
    counted = {"prompt_tokens": used.prompt, "total_tokens": used.total, "completion_tokens": used.completion}
    return {**counted, "prompt_tokens_details": {"cached_tokens": 0}}


def _choice(ask: Ask, item: Spoken) -> JSON:
    said: JSON = {"message": _message(item)} if ask.chat else {"text": item.text, "token_ids": None}
    end: JSON = {"finish_reason": item.finish, "stop_reason": item.stop_reason}
    more: JSON = {"mm_embedding_handle": None} if ask.chat else {"context_logits": None}
    rest: JSON = {"disaggregated_params": None, "avg_decoded_tokens_per_iter": 1.0}
    return {"index": item.index, **said, "logprobs": wire.logprobs(ask, item), **more, **end, **rest}


def _message(item: Spoken) -> JSON:
    calls = [_call(call) for call in item.calls]
    named = {"role": "assistant", "content": item.text}
    return {**named, "reasoning_content": "", "reasoning": None, "tool_calls": calls}


def _call(call: Call) -> JSON:
    return {
        "id": call_id(call),
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }


def _delta(step: Step) -> JSON:
    choice: JSON = {"index": step.spoken.index, "delta": _said(step)}
    if step.finish:
        choice["finish_reason"] = step.finish
        if step.spoken.stop_reason is not None:
            choice["stop_reason"] = step.spoken.stop_reason
    return choice | {"avg_decoded_tokens_per_iter": 1.0}


def _said(step: Step) -> JSON:
    piece = step.piece
    if piece is None or piece.call is None:
        return {"content": piece.text if piece else "", "reasoning_content": ""}
    call = step.spoken.calls[piece.call]
    opening: JSON = {"id": call_id(call)} if piece.opens else {}
    function: JSON = {"name": call.name, "arguments": ""} if piece.opens else {"arguments": piece.text}
    delta = {**opening, "type": "function", "index": piece.call, "function": function}
    return {"content": "", "reasoning_content": "", "tool_calls": [delta]}


def _text(step: Step) -> JSON:
    text = step.piece.text if step.piece else ""
    end: JSON = {
        "finish_reason": step.finish,
        "stop_reason": step.spoken.stop_reason if step.finish else None,
    }
    named: JSON = {"index": step.spoken.index, "text": text, "token_ids": None, "logprobs": None}
    return {**named, **end, "avg_decoded_tokens_per_iter": 1.0}
