"""Real migration faults, one a case: what each side sent, and the severity that a report of it has to have.

Numbers and titles are those under which the faults were collected. Content is invented, shapes are as reported. A case
whose fault shows only in many exchanges, in metrics or in a server's start is listed in ``ELSEWHERE`` with what it needs.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from reports.judgement import Severity

EQUAL, NOTE, WARN, BLOCK, INVALID = Severity

ASK: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "when?"}]}
STREAM: dict[str, Any] = ASK | {"stream": True}
SSE = "content-type: text/event-stream"
PLAIN = "content-type: application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One pair of responses, as ``curl -si`` saves them."""

    number: int
    title: str
    request: dict[str, Any] = field(default_factory=lambda: STREAM)
    baseline: bytes
    candidate: bytes
    severity: Severity
    category: str = ""
    """A finding of that category is there, and it is the gravest; empty: only the severity is asked for."""
    words: str = ""
    """Part of that finding's message or evidence."""


def http(body: bytes | str, *fields: str, status: int = 200) -> bytes:
    head = "\r\n".join([f"HTTP/1.1 {status} X", *fields])
    return head.encode() + b"\r\n\r\n" + (body.encode() if isinstance(body, str) else body)


def events(*data: object, done: bool = True) -> bytes:
    """A stream of JSON events; a string is an event as it is."""
    lines = [one if isinstance(one, str) else "data: " + json.dumps(one) for one in data]
    return http("".join(f"{line}\n\n" for line in [*lines, *(["data: [DONE]"] if done else [])]), SSE)


def delta(finish: str | None = None, index: int = 0, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": index, "delta": fields, "finish_reason": finish}]}


def call(index: int | None, name: str, arguments: Any, identity: str = "c1") -> dict[str, Any]:
    place = {} if index is None else {"index": index}
    return place | {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


def answer(content: str | None = None, finish: str = "stop", usage: Any = None, **message: Any) -> bytes:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": content, **message},
        "finish_reason": finish,
    }
    return http(json.dumps({"choices": [choice]} | ({"usage": usage} if usage else {})), PLAIN)


def usage(prompt: int, completion: int, total: int | None = None) -> dict[str, int]:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion if total is None else total,
    }


def error(status: int, body: Any, *fields: str) -> bytes:
    return http(json.dumps(body), PLAIN, *fields, status=status)


def envelope(status: int, message: str, kind: str = "BadRequestError", **more: Any) -> bytes:
    return error(status, {"error": {"message": message, "type": kind, "param": None, "code": status} | more})


def tool(name: str, **parameters: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", **parameters}}}


HIGH = [delta(content="High tide 04:10"), delta(finish="stop")]
WAKE = tool("wake", properties={"at": {"type": "string"}}, required=["at"])
KG = {"type": "object", "required": ["kg"], "properties": {"kg": {"type": "number"}}}
PICTURE = {
    "role": "user",
    "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}],
}
COUNTS = usage(11, 3)
NINE = "The lock opens at nine and closes at five."

LOGPROBS = (
    '{"choices":[{"index":0,"message":{"role":"assistant","content":"{"},"finish_reason":"stop","logprobs":{"content":'
    '[{"token":"{","logprob":0.0,"top_logprobs":[{"token":"{","logprob":0.0},{"token":"a","logprob":FLOOR}]}]}}]}'
)

CASES = [
    Case(
        number=1,
        title="Keep-alive comments before the first token",
        baseline=events(*HIGH),
        candidate=events(": RELAY WAITING", ": RELAY WAITING", *HIGH),
        severity=NOTE,
        category="stream.comments",
        words="2 times",
    ),
    Case(
        number=2,
        title="Keep-alive wrapped as a data event",
        baseline=events(delta(content="ok", finish="stop")),
        candidate=events("data: : still working", delta(content="ok", finish="stop")),
        severity=BLOCK,
        category="stream.non_json_data_event",
    ),
    Case(
        number=3,
        title="CRLF line endings and data: with no space",
        baseline=events(delta(content="left"), delta(finish="stop")),
        candidate=http(
            b'data:{"choices":[{"index":0,"delta":{"content":"left"},"finish_reason":null}]}\r\n\r\n'
            b'data:{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\r\n\r\ndata:[DONE]\r\n\r\n',
            SSE,
        ),
        severity=EQUAL,
    ),
    Case(
        number=4,
        title="Event cut at any byte: split code point, split CRLF, multi-line data",
        baseline=events(delta(content="caf\u00e9"), delta(finish="stop")),
        candidate=http(
            'data: {"choices":[{"index":0,"delta":{"content":"caf\u00e9"},"finish_reason":null}]}\r\n\r\n'
            'data: {"choices":[{"index":0,\r\ndata: "delta":{},"finish_reason":"stop"}]}\r\n\r\ndata: [DONE]\r\n\r\n',
            SSE,
        ),
        severity=NOTE,
        category="client_risk.multi_line_data",
    ),
    Case(
        number=5,
        title="Usage-only last chunk: empty choices",
        baseline=events(delta(content="7 lamps", finish="stop")),
        candidate=events(delta(content="7 lamps", finish="stop"), {"choices": [], "usage": COUNTS}),
        severity=EQUAL,
    ),
    Case(
        number=5,
        title="Usage-only last chunk: no choices key",
        baseline=events(delta(content="7 lamps", finish="stop"), {"choices": [], "usage": COUNTS}),
        candidate=events(delta(content="7 lamps", finish="stop"), {"usage": COUNTS}),
        severity=WARN,
        category="envelope.choices_missing",
    ),
    Case(
        number=6,
        title="Error object inside a 200 stream, then [DONE]",
        baseline=events(delta(content="The pump is on"), delta(finish="stop")),
        candidate=events(
            delta(content="The pump"),
            {"error": {"message": "worker lost", "type": "InternalServerError", "param": None, "code": 500}},
        ),
        severity=BLOCK,
        category="error.mid_stream",
        words="server_error",
    ),
    Case(
        number=7,
        title="[DONE] without a finish reason",
        baseline=events(delta(content="all clear", finish="stop")),
        candidate=events(delta(content="all clear")),
        severity=WARN,
        category="finish.missing",
    ),
    Case(
        number=7,
        title="a finish reason without [DONE]",
        baseline=events(delta(content="all clear", finish="stop")),
        candidate=events(delta(content="all clear", finish="stop"), done=False),
        severity=NOTE,
        category="stream.done_missing",
    ),
    Case(
        number=8,
        title="Role prelude differs",
        baseline=events(delta(role="assistant", content=""), delta(content="Nope"), delta(finish="stop")),
        candidate=events(
            delta(role="assistant", content=""),
            delta(role="assistant", content="No"),
            delta(role="assistant", content="pe", finish="stop"),
        ),
        severity=EQUAL,
    ),
    Case(
        number=8,
        title="Role never sent",
        baseline=events(delta(role="assistant", content="Nope"), delta(finish="stop")),
        candidate=events(delta(content="Nope"), delta(finish="stop")),
        severity=WARN,
        category="envelope.role_missing",
    ),
    Case(
        number=9,
        title="arguments is an object, not a string",
        request=ASK,
        baseline=answer(tool_calls=[call(None, "set_valve", '{"id": 3, "open": true}')], finish="tool_calls"),
        candidate=answer(tool_calls=[call(None, "set_valve", {"id": 3, "open": True})], finish="tool_calls"),
        severity=BLOCK,
        category="tools.arguments_type",
    ),
    Case(
        number=9,
        title="arguments differ in whitespace and key order only",
        request=ASK,
        baseline=answer(tool_calls=[call(None, "set_valve", '{"id": 3, "open": true}')], finish="tool_calls"),
        candidate=answer(tool_calls=[call(None, "set_valve", '{"open":true,"id":3}')], finish="tool_calls"),
        severity=EQUAL,
    ),
    Case(
        number=10,
        title="Parallel calls all with index 0",
        baseline=events(
            delta(tool_calls=[call(0, "get_tide", '{"port":"Hull"}', "x1")]),
            delta(tool_calls=[call(1, "get_wind", '{"port":"Hull"}', "x2")], finish="tool_calls"),
        ),
        candidate=events(
            delta(tool_calls=[call(0, "get_tide", '{"port":"Hull"}', "x1")]),
            delta(tool_calls=[call(0, "get_wind", '{"port":"Hull"}', "x2")], finish="tool_calls"),
        ),
        severity=BLOCK,
        category="tools.index_collision",
    ),
    Case(
        number=10,
        title="Parallel calls with no index",
        baseline=events(
            delta(tool_calls=[call(0, "get_tide", '{"port":"Hull"}', "x1")]),
            delta(tool_calls=[call(1, "get_wind", '{"port":"Hull"}', "x2")], finish="tool_calls"),
        ),
        candidate=events(
            delta(tool_calls=[call(None, "get_tide", '{"port":"Hull"}', "x1")]),
            delta(tool_calls=[call(None, "get_wind", '{"port":"Hull"}', "x2")], finish="tool_calls"),
        ),
        severity=BLOCK,
        category="tools.index_missing",
    ),
    Case(
        number=11,
        title="Tool-call markup left in content",
        request=ASK,
        baseline=answer(tool_calls=[call(None, "dim", '{"pct":40}')], finish="tool_calls"),
        candidate=answer('<tool_call>\n{"name":"dim","arguments":{"pct":40}}\n</tool_call>'),
        severity=BLOCK,
        category="tools.unparsed_markup",
        words="parser",
    ),
    Case(
        number=12,
        title="Call-id format differs",
        request=ASK,
        baseline=answer(tool_calls=[call(None, "ring", "{}", "call_9fQ2")], finish="tool_calls"),
        candidate=answer(tool_calls=[call(None, "ring", "{}", "functions.ring:0")], finish="tool_calls"),
        severity=NOTE,
        category="tools.id_format",
    ),
    Case(
        number=12,
        title="Duplicate ids inside one message",
        request=ASK,
        baseline=answer(
            tool_calls=[call(None, "ring", "{}", "a"), call(None, "dim", "{}", "b")], finish="tool_calls"
        ),
        candidate=answer(
            tool_calls=[call(None, "ring", "{}", "a"), call(None, "dim", "{}", "a")], finish="tool_calls"
        ),
        severity=BLOCK,
        category="tools.duplicate_id",
    ),
    Case(
        number=13,
        title="Truncated call announced as a complete one",
        request=STREAM | {"max_tokens": 64},
        baseline=events(
            delta(tool_calls=[call(0, "write_page", '{"body": "Chapter one"}', "w")], finish="tool_calls"),
            {"choices": [], "usage": usage(90, 40)},
        ),
        candidate=events(
            delta(tool_calls=[call(0, "write_page", '{"body": "Chapter o', "w")], finish="tool_calls"),
            {"choices": [], "usage": usage(90, 64)},
        ),
        severity=BLOCK,
        category="tools.truncated_arguments",
    ),
    Case(
        number=14,
        title="Arguments that are not JSON, status 200",
        request=ASK,
        baseline=answer(tool_calls=[call(None, "tag", '{"note": "say hi"}')], finish="tool_calls"),
        candidate=answer(tool_calls=[call(None, "tag", '{"note": "say "hi""}')], finish="tool_calls"),
        severity=BLOCK,
        category="tools.arguments_invalid_json",
    ),
    Case(
        number=14,
        title="Arguments that are not JSON, in both",
        request=ASK,
        baseline=answer(tool_calls=[call(None, "tag", '{"note": "say "hi""}')], finish="tool_calls"),
        candidate=answer(tool_calls=[call(None, "tag", '{"note": "say "hi""}')], finish="tool_calls"),
        severity=WARN,
        category="tools.arguments_invalid_json",
    ),
    Case(
        number=15,
        title="Later calls lose arguments after an empty-argument call",
        request=STREAM | {"tools": [tool("now"), WAKE]},
        baseline=events(
            delta(tool_calls=[call(0, "now", "{}", "a")]),
            delta(tool_calls=[call(1, "wake", '{"at":"six"}', "b")], finish="tool_calls"),
        ),
        candidate=events(
            delta(tool_calls=[call(0, "now", "{}", "a")]),
            delta(tool_calls=[call(1, "wake", "{}", "b")], finish="tool_calls"),
        ),
        severity=BLOCK,
        category="tools.schema_violation",
        words="wake",
    ),
    Case(
        number=17,
        title="Last chunk carries finish_reason: null now and then",
        baseline=events(delta(content=" done"), delta(finish="stop"), {"choices": [], "usage": usage(8, 5)}),
        candidate=events(delta(content=" done"), {"choices": [], "usage": usage(8, 5)}),
        severity=WARN,
        category="finish.missing",
    ),
    Case(
        number=18,
        title="Finish reasons outside the OpenAI list: eos",
        request=ASK,
        baseline=answer("tick"),
        candidate=answer("tick", finish="eos_token"),
        severity=EQUAL,
    ),
    Case(
        number=18,
        title="Finish reasons outside the OpenAI list: repetition",
        request=ASK,
        baseline=answer("tick tick tick"),
        candidate=answer("tick tick tick", finish="repetition"),
        severity=BLOCK,
        category="finish.repetition",
    ),
    Case(
        number=18,
        title="Finish reasons outside the OpenAI list: network_error",
        request=ASK,
        baseline=answer("tick"),
        candidate=answer("tick", finish="network_error"),
        severity=BLOCK,
        category="finish.error",
    ),
    Case(
        number=18,
        title="Finish reasons outside the OpenAI list: unknown",
        request=ASK,
        baseline=answer("tick"),
        candidate=answer("tick", finish="tired"),
        severity=WARN,
        category="finish.unknown",
        words="tired",
    ),
    Case(
        number=19,
        title="max_tokens beyond the context: refused before, clamped now",
        request=ASK | {"max_tokens": 1000},
        baseline=envelope(400, "prompt plus requested tokens is over the limit"),
        candidate=answer("\u2026" * 80, finish="length", usage=usage(3900, 196)),
        severity=WARN,
        category="contract.length_clamped",
    ),
    Case(
        number=20,
        title="max_tokens against max_completion_tokens",
        request=ASK | {"max_completion_tokens": 64},
        baseline=answer("six"),
        candidate=error(
            400,
            {
                "object": "error",
                "message": "[{'type': 'extra_forbidden', 'loc': ('body', 'max_completion_tokens'), 'input': 64}]",
                "type": "BadRequestError",
                "param": None,
                "code": 400,
            },
        ),
        severity=BLOCK,
        category="contract.param_rejected",
        words="max_completion_tokens",
    ),
    Case(
        number=21,
        title="reasoning_content became reasoning",
        baseline=events(delta(reasoning_content="2 boats\u2026"), delta(content="Two", finish="stop")),
        candidate=events(delta(reasoning="2 boats\u2026"), delta(content="Two", finish="stop")),
        severity=WARN,
        category="contract.field_renamed",
    ),
    Case(
        number=21,
        title="both names with one text are one text",
        baseline=events(delta(reasoning="2 boats\u2026"), delta(content="Two", finish="stop")),
        candidate=events(
            delta(reasoning="2 boats\u2026", reasoning_content="2 boats\u2026"),
            delta(content="Two", finish="stop"),
        ),
        severity=NOTE,
        category="client_risk.reasoning_twice",
    ),
    Case(
        number=22,
        title="Closing tag without an opening tag",
        request=ASK,
        baseline=answer("Wait until six.", reasoning="tide is low"),
        candidate=answer("tide is low\n</think>\n\nWait until six."),
        severity=BLOCK,
        category="reasoning.unparsed",
        words="equal",
    ),
    Case(
        number=23,
        title="Unknown fields: refused by one, ignored by the other",
        request=ASK | {"enable_thinking": False},
        baseline=answer("hi"),
        candidate=error(
            400,
            {
                "object": "error",
                "message": "[{'type': 'extra_forbidden', 'loc': ('body', 'enable_thinking')}]",
                "type": "BadRequestError",
                "param": None,
                "code": 400,
            },
        ),
        severity=BLOCK,
        category="contract.param_rejected",
        words="enable_thinking",
    ),
    Case(
        number=24,
        title="guided_json is accepted and does nothing",
        request=ASK | {"guided_json": KG},
        baseline=answer('{"kg": 12.5}'),
        candidate=answer("It weighs about 12.5 kilograms."),
        severity=BLOCK,
    ),
    Case(
        number=24,
        title="valid JSON with other spacing",
        request=ASK | {"guided_json": KG},
        baseline=answer('{"kg": 12.5}'),
        candidate=answer('{"kg":12.5}\n'),
        severity=EQUAL,
    ),
    *(
        Case(
            number=25,
            title=f"Four error envelopes for the same thing: {name}",
            request=ASK | {"temperature": -1},
            baseline=envelope(400, "temperature must be non-negative", param="temperature"),
            candidate=candidate,
            severity=NOTE,
            category="envelope.error_shape",
        )
        for name, candidate in {
            "flat": error(
                400,
                {
                    "object": "error",
                    "message": "temperature must be >= 0",
                    "type": "BadRequestError",
                    "param": None,
                    "code": 400,
                },
            ),
            "a string": error(400, {"error": "1 validation error: temperature"}),
        }.items()
    ),
    Case(
        number=25,
        title="Four error envelopes for the same thing: both unauthorized",
        request=ASK,
        baseline=envelope(401, "bad key", "AuthenticationError"),
        candidate=error(401, {"error": "Unauthorized"}),
        severity=NOTE,
        category="envelope.error_shape",
    ),
    Case(
        number=26,
        title="Context-overflow wording",
        request=ASK,
        baseline=envelope(
            400, "maximum context is 8192 tokens; prompt has at least 8193", param="input_tokens"
        ),
        candidate=error(
            400,
            {
                "object": "error",
                "message": "The input (8193 tokens) is longer than this model allows (8192).",
                "type": "BadRequest",
                "code": 400,
            },
        ),
        severity=WARN,
        category="contract.overflow_wording",
    ),
    *(
        Case(
            number=27,
            title=f"Retry-After in several dialects: {line}",
            request=ASK,
            baseline=error(429, {"error": {"message": "slow down", "code": 429}}, "retry-after: 2"),
            candidate=error(429, {"error": {"message": "slow down", "code": 429}}, line),
            severity=EQUAL,
        )
        for line in (
            "retry-after: 1.5",
            "retry-after: Wed, 02 Dec 2026 09:00:05 GMT",
            "retry-after-ms: 750",
            "retry-after: soon",
        )
    ),
    Case(
        number=28,
        title="Overload is 503 here, 429 there",
        request=ASK,
        baseline=error(
            429, {"error": {"message": "slow down", "type": "rate_limit", "code": 429}}, "retry-after: 1"
        ),
        candidate=envelope(503, "engine busy", "Service Unavailable"),
        severity=WARN,
        category="contract.status_changed",
    ),
    Case(
        number=29,
        title="Model alias does not exist on the new backend",
        request=ASK,
        baseline=answer("six"),
        candidate=envelope(404, "The model does not exist", "NotFoundError", param="model"),
        severity=INVALID,
        category="contract.model_unknown",
    ),
    Case(
        number=30,
        title="HTML from a load balancer",
        request=ASK,
        baseline=answer("six"),
        candidate=http(
            "<html><head><title>502</title></head><body>bad gateway</body></html>",
            "content-type: text/html",
            status=502,
        ),
        severity=BLOCK,
        category="error.gateway",
    ),
    Case(
        number=30,
        title="The same HTML with status 200",
        request=ASK,
        baseline=answer("six"),
        candidate=http("<html><body>sign in</body></html>", "content-type: text/html"),
        severity=BLOCK,
        category="envelope.not_json",
    ),
    Case(
        number=33,
        title="Speculative decoding changes greedy text: gibberish",
        request=ASK,
        baseline=answer(NINE),
        candidate=answer("The lock lock lock opens nine nine the the"),
        severity=BLOCK,
        category="text.degenerate",
    ),
    *(
        Case(
            number=35,
            title=f"Minus infinity and NaN in logprobs: {floor}",
            request=ASK | {"logprobs": True, "top_logprobs": 2},
            baseline=http(LOGPROBS.replace("FLOOR", "-9999.0"), PLAIN),
            candidate=http(LOGPROBS.replace("FLOOR", floor), PLAIN),
            severity=severity,
            category=category,
        )
        for floor, severity, category in (
            ("null", EQUAL, ""),
            ("-Infinity", WARN, "envelope.nonstandard_number"),
            ("NaN", WARN, "envelope.nonstandard_number"),
        )
    ),
    Case(
        number=37,
        title="n above 1: order and interleaving",
        request=STREAM | {"n": 3},
        baseline=events(
            *(delta(content=text, finish="stop", index=n) for n, text in enumerate(("ash", "elm", "oak"))),
            {"choices": [], "usage": usage(5, 3)},
        ),
        candidate=events(
            delta(content="oak", finish="stop", index=2),
            delta(content="ash", index=0),
            delta(content="elm", finish="stop", index=1),
            delta(finish="stop", index=0),
            {"choices": [], "usage": usage(5, 3)},
        ),
        severity=EQUAL,
    ),
    Case(
        number=37,
        title="n above 1: missing index",
        request=STREAM | {"n": 2},
        baseline=events(delta(content="ash", finish="stop"), delta(content="elm", finish="stop", index=1)),
        candidate=events(
            delta(content="elm", finish="stop", index=1),
            {"choices": [{"delta": {"content": "ash"}, "finish_reason": "stop"}]},
        ),
        severity=BLOCK,
        category="envelope.index_ambiguous",
    ),
    Case(
        number=38,
        title="One token for ever",
        request=ASK,
        baseline=answer("Six boats are in."),
        candidate=answer("!" * 60, finish="length"),
        severity=BLOCK,
        category="text.degenerate",
    ),
    Case(
        number=45,
        title="Image prompts are counted differently",
        request={"model": "m", "messages": [PICTURE]},
        baseline=answer("A red boat.", usage=usage(742, 20)),
        candidate=answer("A red boat.", usage=usage(31, 20)),
        severity=WARN,
        category="usage.multimodal_basis",
    ),
    Case(
        number=46,
        title="Usage counters wrong in streams",
        baseline=events(delta(content=NINE, finish="stop"), {"choices": [], "usage": usage(9, 12)}),
        candidate=events(delta(content=NINE, finish="stop"), {"choices": [], "usage": usage(9, 19503)}),
        severity=BLOCK,
        category="usage.implausible",
    ),
    Case(
        number=46,
        title="Usage totals that are not the sum",
        request=ASK,
        baseline=answer(NINE, usage=usage(9, 12)),
        candidate=answer(NINE, usage=usage(9, 12, 40)),
        severity=BLOCK,
        category="usage.implausible",
    ),
    Case(
        number=46,
        title="Usage counters absent",
        request=ASK,
        baseline=answer(NINE, usage=usage(9, 12)),
        candidate=answer(NINE, usage=usage(0, 0)),
        severity=WARN,
        category="usage.missing",
    ),
]

ELSEWHERE = {
    16: "a rate over many requests: the trigger rate of tools",
    31: "an idle connection closed under the client: tests/replay/test_client.py and tests/migrate/gateway/test_faults.py",
    32: "repeated samples: the diversity of one arm",
    34: "repeated samples: the diversity of one arm",
    36: "a constant offset over many requests; each pair has the note usage.prompt_tokens",
    39: "the same prompt sent again",
    40: "long prompts against short ones",
    41: "answers split by provider",
    42: "the state of a cache over a run",
    43: "times of reads: tests/casebook/test_casebook.py, with a clock",
    44: "latency over a run: tests/reports/test_rules.py",
    47: "a server's start",
    48: "a server's metrics",
    49: "a server's metrics; the time-out is in tests/migrate/mirror/test_mirror.py",
    50: "a series of requests; the breaker is in tests/migrate/mirror/test_breaker.py",
    51: "what a copy carries: tests/migrate/mirror/test_adapt.py and test_mirror.py",
    52: "a client that left: tests/reports/test_compare_transport.py",
}
"""Cases that two responses alone do not show."""
