"""The values that travel through the toolkit: a request, an answer, and what was observed of an exchange.

Everything here is immutable and does no I/O. Durations are float seconds; ``None`` means "did not happen".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Headers = tuple[tuple[str, str], ...]
"""Pairs in wire order: duplicates and the sender's spelling survive."""


class Arm(StrEnum):
    """Whose answer an observation holds."""

    BASELINE = "baseline"
    CANDIDATE = "candidate"
    BASELINE_REPEAT = "baseline_repeat"


class Outcome(StrEnum):
    """The closed list of what can become of a request from the moment it is dispatched (intent to treat)."""

    OK = "ok"
    HTTP_ERROR = "http_error"
    TIMEOUT = "timeout"
    CONNECT_ERROR = "connect_error"
    PROTOCOL_ERROR = "protocol_error"
    CLIENT_CANCELLED = "client_cancelled"
    MIRROR_DROPPED = "mirror_dropped"
    NOT_SENT = "not_sent"
    UNSERVED = "unserved"
    """Refused as something that the server does not offer at all, where the other side answered. Only both together show
    it, so that no observation has it."""

    @property
    def failed(self) -> bool:
        """The backend was asked and did not deliver: an error of that backend."""
        return self in _FAILED

    @property
    def missing(self) -> bool:
        """Says nothing about how well the backend serves: the client left, we did not send or keep the request, or it is
        beyond what the backend offers."""
        return self in _MISSING


_FAILED = frozenset({Outcome.HTTP_ERROR, Outcome.TIMEOUT, Outcome.CONNECT_ERROR, Outcome.PROTOCOL_ERROR})
_MISSING = frozenset({Outcome.CLIENT_CANCELLED, Outcome.MIRROR_DROPPED, Outcome.NOT_SENT, Outcome.UNSERVED})


class Ending(StrEnum):
    """How the transport of an answer ended, as the reader of the socket saw it."""

    COMPLETE = "complete"
    NOT_SENT = "not_sent"
    CONNECT_FAILED = "connect_failed"
    TIMEOUT = "timeout"
    RESET = "reset"
    CLIENT_LEFT = "client_left"
    OVERSIZE = "oversize"


class Fault(StrEnum):
    """Where to look first when a request failed."""

    CLIENT = "client"
    SERVER = "server"
    CAPACITY = "capacity"
    NETWORK = "network"
    RELAY = "relay"


class ErrorClass(StrEnum):
    """What kind of failure it was; the same class from two backends is the same failure, whatever its envelope."""

    BAD_REQUEST = "bad_request"
    CONTEXT_OVERFLOW = "context_overflow"
    AUTH = "auth"
    NOT_FOUND = "not_found"
    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    SERVER = "server_error"
    GATEWAY = "gateway"
    TIMEOUT = "timeout"
    CONNECT = "connect"
    RESET = "reset"
    MALFORMED = "malformed"

    @property
    def fault(self) -> Fault:
        """Whose fault a failure of this class is."""
        return _FAULTS[self]

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed when it is sent again."""
        return self.fault is not Fault.CLIENT and self not in (ErrorClass.TIMEOUT, ErrorClass.MALFORMED)


_FAULTS = {
    ErrorClass.BAD_REQUEST: Fault.CLIENT,
    ErrorClass.CONTEXT_OVERFLOW: Fault.CLIENT,
    ErrorClass.AUTH: Fault.CLIENT,
    ErrorClass.NOT_FOUND: Fault.CLIENT,
    ErrorClass.RATE_LIMITED: Fault.CAPACITY,
    ErrorClass.OVERLOADED: Fault.CAPACITY,
    ErrorClass.SERVER: Fault.SERVER,
    ErrorClass.GATEWAY: Fault.RELAY,
    ErrorClass.TIMEOUT: Fault.SERVER,
    ErrorClass.CONNECT: Fault.NETWORK,
    ErrorClass.RESET: Fault.NETWORK,
    ErrorClass.MALFORMED: Fault.SERVER,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a request did not get an answer that a client can use."""

    outcome: Outcome
    error_class: ErrorClass
    message: str
    status: int | None = None
    """HTTP status of the answer; ``None`` when no answer head arrived."""
    retryable: bool = False
    retry_after_s: float | None = None
    code: str = ""
    """The finding that says it more exactly than the class, such as ``error.mid_stream``; empty when none does."""
    envelope: str = ""
    """The shape that the error came in: ``openai``, ``flat``, ``string``, ``detail``, ``html``, ``text``, ``empty`` …"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One tool call of an answer; ``arguments`` is the text as sent, which may not be JSON."""

    name: str
    arguments: str
    id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Token counts as the server stated them; ``None`` where it did not."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One alternative of an answer (`n` above 1 makes several)."""

    index: int = 0
    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    """As a strict client puts them together: pieces of one index are one call."""
    finish_reason: str | None = None
    role: str = ""
    """Empty when the backend never said it."""
    reasoning_field: str = ""
    """The field that the reasoning came in (``reasoning``, ``reasoning_content``); empty without reasoning."""
    media: tuple[str, ...] = ()
    """Audio and image parts as ``kind:sha256``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Oddity:
    """Something in an answer that is not quite as it should be; docs/findings.md explains every code."""

    code: str
    evidence: str = ""
    """The bytes that show it, cut and printable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a backend said, assembled from a body or a stream, whatever its wire shape."""

    choices: tuple[Choice, ...] = ()
    usage: Usage | None = None
    model: str | None = None
    error: Failure | None = None
    """An error envelope in the body, also one inside a 200 stream."""
    oddities: tuple[Oddity, ...] = ()
    """What was odd, in order of first sight, each code once."""
    fingerprint: str | None = None
    """Which deployment answered, as far as it says (``system_fingerprint``, ``provider``)."""
    streamed: bool = False
    """It came as a stream of events, whatever its content type says."""
    embeddings: tuple[tuple[float, ...], ...] = ()
    extra: tuple[tuple[str, str], ...] = ()
    """Fields that the interface does not know: path and JSON text, cut; the last value of a stream."""

    @property
    def first(self) -> Choice:
        """The choice with the lowest index, or an empty one."""
        return min(self.choices, key=lambda choice: choice.index, default=Choice())


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """When things happened, in seconds after the request was sent on a monotonic clock."""

    head_s: float | None = None
    """Status line and headers arrived."""
    ttft_s: float | None = None
    """First chunk with a non-empty token of content, reasoning or tool arguments; ``None`` for an unstreamed answer."""
    e2e_s: float | None = None
    """The answer was complete: its last byte, or ``[DONE]`` of a stream; for a failure, when it was noticed."""
    generated_s: float | None = None
    """The server first counted a generated token (usage in chunks); ``None`` when it does not count as it goes."""
    lag_s: float | None = None
    """How long after its scheduled moment the request left; ``None`` when nothing scheduled it. Not part of the others."""
    connect_s: float | None = None
    """What a new connection took before the request left, part of ``lag_s`` only; ``None`` on one that was open."""
    content_times: tuple[float, ...] = ()
    """Arrival of every chunk that carried a token. A chunk is not always one token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One production request, kept as the client sent it (before redaction) or as stored (after it)."""

    id: str
    at: float
    """Epoch seconds at which it was admitted."""
    method: str
    path: str
    """Path with its query string."""
    headers: Headers
    body: bytes
    conversation: str
    """The sampling key's hash: requests of one conversation share it."""
    side: Arm | None = None
    """Which arm was to answer the client, by the draw of a canary; ``None``: the baseline, and no draw."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One exchange as the reader of a socket saw it: raw bytes with the time of each read, not yet decoded.

    All times are readings of one monotonic clock. ``chunks`` keep the body's content coding.
    """

    sent_at: float
    """The request was handed to the socket."""
    head_at: float | None = None
    status: int | None = None
    headers: Headers = ()
    chunks: tuple[tuple[float, bytes], ...] = ()
    ended_at: float
    ending: Ending
    detail: str = ""
    """The transport's own words on a failed ending."""
    connect_s: float | None = None
    """What making a connection took before ``sent_at``; ``None`` when one was open already, or nobody looked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Everything recorded about one answer of one backend to one request."""

    request_id: str
    arm: Arm
    at: float
    """Epoch seconds at which the request was dispatched to this backend."""
    outcome: Outcome
    reason: str = ""
    """Why it was not sent, dropped or failed: one word or short phrase a report can count by."""
    status: int | None = None
    headers: Headers = ()
    answer: Answer | None = None
    failure: Failure | None = None
    timing: Timing = Timing()
    earlier: tuple[Failure, ...] = ()
    """What became of the attempts before the recorded one; with any, it is never reported as a clean first success."""
    raw: bytes | None = None
    """Body bytes as received; ``None`` when they were not kept."""

    @property
    def attempts(self) -> int:
        """Sends up to and including the recorded one."""
        return len(self.earlier) + 1

    @property
    def output_tokens(self) -> int | None:
        """Completion tokens as stated by the server; ``None`` when it did not say."""
        usage = self.answer.usage if self.answer else None
        return usage.completion_tokens if usage else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request and what became of it on each arm; an arm that was never asked is ``None``."""

    request: Request
    baseline: Observation | None = None
    candidate: Observation | None = None
    repeat: Observation | None = None


JSON = dict[str, Any]
"""A decoded JSON object."""
