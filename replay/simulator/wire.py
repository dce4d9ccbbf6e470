"""What the dialects share: the order of a stream's frames, and its bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import orjson

from replay.exchange import JSON
from replay.simulator.ask import Ask
from replay.simulator.speech import Piece, Spoken

DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What every chunk of an answer repeats."""

    id: str
    """32 hexadecimal digits; the dialect adds its prefix."""
    created: int
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Tokens of one exchange."""

    prompt: int
    completion: int

    @property
    def total(self) -> int:
        """Both."""
        return self.prompt + self.completion


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One frame of a stream: a token of a choice, the finish of a choice, or both."""

    at: int
    """Index of the token whose time it keeps."""
    spoken: Spoken
    piece: Piece | None = None
    finish: str | None = None


def counts(ask: Ask, spoken: tuple[Spoken, ...]) -> Counts:
    """Usage of the exchange over all choices."""
    return Counts(prompt=ask.prompt_tokens, completion=sum(len(item.pieces) for item in spoken))


def steps(spoken: tuple[Spoken, ...], *, merge_length: bool) -> Iterator[Step]:
    """Frames in order, choices interleaved token by token.

    With ``merge_length`` the finish reason ``length`` rides on the last token: a self-hosted server sends the
    end of text as a token of its own, which a cut answer does not reach.
    """
    longest = max((len(item.pieces) for item in spoken), default=0)
    for at in range(longest + 1):
        for item in spoken:
            last = at == len(item.pieces) - 1
            merged = merge_length and last and item.finish == "length"
            if at < len(item.pieces):
                yield Step(at=at, spoken=item, piece=item.pieces[at], finish="length" if merged else None)
            if (last and not merged) or (at == 0 and not item.pieces):
                yield Step(at=at, spoken=item, finish=item.finish)


def logprobs(ask: Ask, spoken: Spoken) -> JSON | None:
    """Certain tokens, where they were asked for."""
    if not ask.logprobs:
        return None
    texts = [piece.text for piece in spoken.pieces]
    return {
        "content": [
            {
                "token": text,
                "logprob": 0.0,
                "bytes": list(text.encode("utf-8", "replace")),
                "top_logprobs": [],
            }
            for text in texts
        ]
    }


def head(ask: Ask, told: Head, *, streamed: bool) -> JSON:
    """The fields with which each body and each chunk begins."""
    kind = ("chat.completion.chunk" if streamed else "chat.completion") if ask.chat else "text_completion"
    prefix = "chatcmpl" if ask.chat else "cmpl"
    return {"id": f"{prefix}-{told.id}", "object": kind, "created": told.created, "model": told.model}


def running(ask: Ask, used: Counts, so_far: int, usage: Callable[[Counts], JSON]) -> JSON:
    """Usage up to this chunk, where the request asked for it in every chunk."""
    return {"usage": usage(Counts(prompt=used.prompt, completion=so_far))} if ask.continuous_usage else {}


def event(data: JSON, end: bytes = b"\n\n") -> bytes:
    """One server-sent event."""
    return b"data: " + orjson.dumps(data) + end
