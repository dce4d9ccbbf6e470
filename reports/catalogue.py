"""Every finding about how an answer came: its severity, and in a few words what is wrong. docs/findings.md says more.

A finding weighs when the candidate has it and the baseline has not: clients live with whatever the baseline sends today. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from reports.judgement import Severity

NOTE, WARN, BLOCK, INVALID = Severity.NOTE, Severity.WARN, Severity.BLOCK, Severity.INVALID


@dataclass(frozen=True, slots=True)
class Entry:
    """``words`` follow "the candidate's answer …"."""

    severity: Severity
    words: str


CATALOGUE: dict[str, Entry] = {
    "client_risk.byte_order_mark": Entry(NOTE, "begins with a byte-order mark"),
    "client_risk.empty_choices": Entry(NOTE, "holds a chunk with no choices and no usage"),
    "client_risk.event_name": Entry(NOTE, "names its events otherwise than the interface does"),
    "client_risk.function_call": Entry(NOTE, "uses the retired function_call field"),
    "client_risk.large_event": Entry(NOTE, "holds an event beyond 64 KiB, the limit of several line readers"),
    "client_risk.multi_line_data": Entry(NOTE, "holds events of several data lines"),
    "client_risk.reasoning_twice": Entry(NOTE, "repeats its reasoning under two names"),
    "client_risk.usage_repeated": Entry(NOTE, "states usage more than once, with changing counts"),
    "contract.field_renamed": Entry(WARN, "carries its reasoning under another field name"),
    "contract.length_clamped": Entry(WARN, "is cut short where the baseline refused the request"),
    "contract.model_unknown": Entry(
        INVALID, "says that the model does not exist: map its name under models:"
    ),
    "contract.overflow_wording": Entry(
        WARN, "words a context overflow otherwise; clients that look for words miss it"
    ),
    "contract.param_rejected": Entry(BLOCK, "refuses a request field that the baseline takes"),
    "contract.status_changed": Entry(
        WARN, "has another status for the same failure; retry policies may key on it"
    ),
    "contract.unsupported": Entry(
        BLOCK, "says that it does not offer what was asked for, and the baseline does"
    ),
    "envelope.choices_missing": Entry(WARN, "holds an object without its list of choices"),
    "envelope.coding": Entry(BLOCK, "cannot be decompressed as its Content-Encoding says"),
    "envelope.coding_end": Entry(WARN, "is whole, and its content coding does not end as it should"),
    "envelope.content_parts": Entry(NOTE, "gives its text as a list of parts"),
    "envelope.content_type": Entry(WARN, "is JSON under another content type"),
    "envelope.empty": Entry(BLOCK, "is an empty body with status 200"),
    "envelope.error_shape": Entry(NOTE, "wraps errors otherwise"),
    "envelope.final_differs": Entry(WARN, "says in its last event something else than in its pieces"),
    "envelope.id_changes": Entry(NOTE, "changes its id between chunks"),
    "envelope.index_ambiguous": Entry(
        BLOCK, "gives choices without an index, so that they cannot be told apart"
    ),
    "envelope.index_missing": Entry(WARN, "gives a choice without its index"),
    "envelope.model_changes": Entry(NOTE, "changes its model name between chunks"),
    "envelope.nonstandard_number": Entry(WARN, "holds NaN or an infinity, which is not JSON"),
    "envelope.not_json": Entry(BLOCK, "is a page or text with status 200, not an answer of the interface"),
    "envelope.role_missing": Entry(WARN, "never says its role"),
    "envelope.unknown_field": Entry(NOTE, "has fields that the interface does not know; they are kept"),
    "envelope.wrong_type": Entry(WARN, "has a field of the wrong type"),
    "error.in_200": Entry(BLOCK, "is an error object with status 200"),
    "error.mid_stream": Entry(BLOCK, "breaks off with an error object after it began"),
    "finish.changes": Entry(WARN, "changes its finish reason"),
    "finish.content_after": Entry(WARN, "goes on after its finish reason"),
    "finish.missing": Entry(WARN, "ends without a finish reason"),
    "latency.parser_buffering": Entry(
        WARN, "was generated long before any of it was sent: a parser holds it back"
    ),
    "media.differs": Entry(NOTE, "holds pictures or sounds of other content"),
    "media.missing": Entry(BLOCK, "holds other numbers of pictures or sounds"),
    "stream.comments": Entry(NOTE, "holds comment lines (keep-alives)"),
    "stream.content_type": Entry(WARN, "is a stream of events under another content type"),
    "stream.cut_event": Entry(WARN, "ends within an event"),
    "stream.data_after_done": Entry(NOTE, "goes on after [DONE]"),
    "stream.done_missing": Entry(NOTE, "ends without [DONE]"),
    "stream.empty_event": Entry(BLOCK, "holds events without data; the official client stops there"),
    "stream.non_json_data_event": Entry(
        BLOCK, "holds a data event that is not JSON; strict clients stop there"
    ),
    "stream.not_streamed": Entry(BLOCK, "is a whole body where a stream was asked for"),
    "stream.too_long": Entry(BLOCK, "holds an event too long to be held"),
    "stream.truncated": Entry(BLOCK, "ends without a finish reason or [DONE]"),
    "stream.unasked": Entry(BLOCK, "is a stream where a whole body was asked for"),
    "stream.unknown_field": Entry(NOTE, "holds lines that are no field of server-sent events"),
    "text.degenerate": Entry(BLOCK, "repeats itself without end"),
    "text.invalid_utf8": Entry(WARN, "holds bytes that are not UTF-8"),
    "tools.arguments_type": Entry(BLOCK, "gives tool arguments as an object, not as JSON text"),
    "tools.by_id": Entry(NOTE, "holds these calls when they are put together by id"),
    "tools.id_format": Entry(NOTE, "names its calls in another format"),
    "tools.id_missing": Entry(WARN, "gives a tool call without an id"),
    "tools.index_collision": Entry(BLOCK, "gives two tool calls one index; clients glue them together"),
    "tools.index_missing": Entry(BLOCK, "gives tool calls in pieces without an index"),
    "tools.name_missing": Entry(BLOCK, "gives a tool call without a name"),
    "tools.repeated_id": Entry(NOTE, "repeats the id of a call in its pieces"),
    "tools.repeated_name": Entry(BLOCK, "repeats the name of a call in its pieces; clients glue it together"),
    "usage.implausible": Entry(BLOCK, "states token counts that cannot be"),
    "usage.missing": Entry(WARN, "states no usage, or only zeros"),
    "usage.multimodal_basis": Entry(WARN, "counts the prompt's pictures otherwise"),
    "usage.prompt_tokens": Entry(NOTE, "counts the prompt otherwise"),
}


def entry(code: str) -> Entry:
    """The entry of a code; a code of a later version is shown as a warning."""
    return CATALOGUE.get(code, Entry(WARN, f"has a peculiarity that this version does not know: {code}"))
