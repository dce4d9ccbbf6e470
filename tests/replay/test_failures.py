"""What failed, whose fault it was, whether a retry helps and how long to wait, in every dialect."""

from __future__ import annotations

import json
import time

import pytest

from replay.exchange import ErrorClass
from replay.failures import LONGEST_WAIT_S, beyond, http_failure, rejected_parameter, retry_after


@pytest.mark.parametrize(
    ("name", "value", "seconds"),
    [
        ("Retry-After", "2", 2.0),
        ("retry-after", "1.5", 1.5),
        ("retry-after", "Wed, 02 Dec 2026 09:00:05 GMT", 5.0),
        ("retry-after", "Wed, 02 Dec 2026 08:00:00 GMT", 0.0),
        ("retry-after-ms", "750", 0.75),
        ("retry-after", "soon", None),
        ("retry-after", "-3", None),
        ("retry-after", "nan", None),
        ("x-other", "3", None),
    ],
)
def test_the_delay_is_read_from_any_dialect(name: str, value: str, seconds: float | None) -> None:
    now = 1_796_202_000.0  # 2026-12-02 09:00:00 UTC
    assert retry_after(((name, value),), now=now) == seconds


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        ({"retry_after": 3}, 3.0),
        ({"retry_after_ms": 250}, 0.25),
        ({"details": [{"@type": "x"}, {"retryDelay": "7s"}]}, 7.0),
        ({"message": "Rate limit reached. Please try again in 1.2s."}, 1.2),
        ({"message": "Please retry in 20ms"}, 0.02),
        ({"message": "try again in 2 minutes"}, 120.0),
        ({"message": "Please try again in 1m12.5s."}, 72.5),
        ({"message": "try again in 6m0s"}, 360.0),
        ({"retry_after": True}, None),
        ({"retry_after": -1}, None),
        ({"retry_after": 10**9}, LONGEST_WAIT_S),
        ({"message": "try again later"}, None),
    ],
)
def test_the_delay_may_be_in_the_body(error: dict[str, object], seconds: float | None) -> None:
    assert retry_after((), {"error": error}, now=0.0) == seconds
    assert retry_after((("retry-after", "9"),), {"error": error}, now=0.0) == 9.0


@pytest.mark.parametrize(
    ("status", "body", "error_class", "fault", "retryable"),
    [
        (400, {"error": {"message": "bad"}}, "bad_request", "client", False),
        (
            400,
            {"error": {"code": "context_length_exceeded", "message": "no"}},
            "context_overflow",
            "client",
            False,
        ),
        (
            400,
            {"error": {"message": "prompt is too long: 9 tokens > 8"}},
            "context_overflow",
            "client",
            False,
        ),
        (413, {"type": "error", "error": {"type": "request_too_large"}}, "context_overflow", "client", False),
        (401, {"error": "Unauthorized"}, "auth", "client", False),
        (403, {"detail": "Forbidden"}, "auth", "client", False),
        (404, {"detail": "Not Found"}, "not_found", "client", False),
        (
            422,
            {"detail": [{"loc": ["body", "n"], "msg": "bad", "type": "int"}]},
            "bad_request",
            "client",
            False,
        ),
        (429, {"error": {"message": "slow down"}}, "rate_limited", "capacity", True),
        (529, {"type": "error", "error": {"type": "overloaded_error"}}, "overloaded", "capacity", True),
        (503, {"error": {"message": "engine busy"}}, "overloaded", "capacity", True),
        (500, {"error": {"message": "boom"}}, "server_error", "server", True),
        (500, [{"error": {"status": "UNAVAILABLE", "message": "busy"}}], "overloaded", "capacity", True),
        (400, {"error": {"type": "rate_limit_error", "message": "x"}}, "rate_limited", "capacity", True),
        (502, "<html><body>bad gateway</body></html>", "gateway", "relay", True),
        (504, "upstream request timeout", "gateway", "relay", True),
        (500, "<!DOCTYPE html><p>oops", "gateway", "relay", True),
        (408, "", "timeout", "server", True),
        (500, "Internal Server Error", "server_error", "server", True),
        (521, "error code: 521", "gateway", "relay", True),
        (403, "<html>Attention required", "gateway", "relay", False),
        (413, "<html><h1>413 Request Entity Too Large</h1>", "gateway", "relay", False),
        (
            429,
            {"error": {"code": "insufficient_quota", "message": "no credit"}},
            "rate_limited",
            "capacity",
            False,
        ),
        (
            413,
            {"error": {"message": "Request too large: tokens per minute", "code": "rate_limit_exceeded"}},
            "rate_limited",
            "capacity",
            True,
        ),
        (
            400,
            {
                "error": {
                    "code": "string_above_max_length",
                    "message": "Invalid 'input[0].id': string too long",
                }
            },
            "bad_request",
            "client",
            False,
        ),
        (400, {"error": {"message": "Invalid request: image too large"}}, "bad_request", "client", False),
        (
            400,
            {
                "error": {
                    "message": "The input token count (9) exceeds the maximum number of tokens allowed (8)."
                }
            },
            "context_overflow",
            "client",
            False,
        ),
        (
            422,
            {"error": "`inputs` tokens + `max_new_tokens` must be <= 4096"},
            "context_overflow",
            "client",
            False,
        ),
        (400, {"error": "This model's maximum prompt length is 131072"}, "context_overflow", "client", False),
        (424, {"error": "Model is overloaded", "error_type": "overloaded"}, "bad_request", "client", False),
    ],
)
def test_what_failed_whose_fault_it_was_and_whether_a_retry_can_help(
    status: int, body: object, error_class: str, fault: str, retryable: bool
) -> None:
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    found = http_failure(status, (), raw, now=0.0)
    assert (found.error_class.value, found.error_class.fault.value, found.retryable) == (
        error_class,
        fault,
        retryable,
    )
    assert found.message and found.envelope


@pytest.mark.parametrize(
    ("message", "parameter"),
    [
        ("[{'type': 'extra_forbidden', 'loc': ('body', 'enable_thinking')}]", "enable_thinking"),
        ("1 validation error: {'loc': ('body', 'top_q'), 'msg': 'x', 'type': 'extra_forbidden'}", "top_q"),
        ("Unrecognized request argument supplied: top_q", "top_q"),
        ("Unknown parameter: 'top_q'.", "top_q"),
        ("Unsupported parameter: 'max_tokens' is not supported with this model.", "max_tokens"),
        ('[{"type":"extra_forbidden","loc":["body","foo"],"msg":"Extra inputs are not permitted"}]', "foo"),
        ("Additional properties are not allowed ('foo' was unexpected)", "foo"),
        ("JSON decode error: Unexpected end of input at line 1 column 20", None),
        ("Multiple system messages are not supported", None),
        ("temperature must be non-negative, got -1.0", None),
        ("This model's maximum context length is 1024 tokens", None),
    ],
)
def test_a_refused_parameter_is_named(message: str, parameter: str | None) -> None:
    assert rejected_parameter(ErrorClass.BAD_REQUEST, message) == parameter


def test_a_message_of_a_server_is_bounded_whatever_it_sends() -> None:
    start = time.monotonic()
    for text in ("model " * 200_000, "unknown " * 200_000, "'loc': ('body', " * 100_000, "prompt " * 200_000):
        found = http_failure(400, (), json.dumps({"error": {"message": text}}).encode(), now=0.0)
        assert len(found.message) <= 500
    assert time.monotonic() - start < 2


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (404, {"type": "not_found_error", "message": "model: claude-foo"}),
        (404, {"message": "models/foo is not found for API version v1"}),
        (
            404,
            {"code": "DeploymentNotFound", "message": "The API deployment for this resource does not exist."},
        ),
        (404, {"message": "No endpoints found for a/b."}),
        (404, {"message": "no such", "param": "model"}),
        (400, {"message": "foo is not a valid model ID"}),
        (400, {"message": "Invalid model name passed in model=foo"}),
        (400, {"type": "invalid_model", "message": "Invalid"}),
        (
            400,
            {
                "param": "model",
                "code": "model_not_supported",
                "message": "The requested model is not supported",
            },
        ),
        (400, {"code": "model_not_found", "type": "invalid_request_error", "message": "x"}),
    ],
)
def test_a_model_that_is_unknown_is_that_and_nothing_else(status: int, error: dict[str, object]) -> None:
    found = http_failure(status, (), json.dumps({"error": error}).encode(), now=0.0)
    assert found.code == "contract.model_unknown", found


@pytest.mark.parametrize(("told", "retryable"), [("false", False), ("true", True), ("maybe", True)])
def test_a_server_may_say_itself_whether_to_retry(told: str, retryable: bool) -> None:
    assert http_failure(503, (("X-Should-Retry", told),), b"", now=0.0).retryable is retryable


@pytest.mark.parametrize(
    ("status", "error", "code"),
    [
        (
            400,
            '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
            "unsupported",
        ),
        (500, "tools param requires --jinja flag", ""),
        (500, "streaming is not enabled: engine loop has died", ""),
        (400, "registry.ollama.ai/library/gemma:2b does not support tools", "unsupported"),
        (404, "No endpoints found that support tool use. Try disabling get_tide.", "unsupported"),
        (400, "/models/harbor is not a multimodal model", "unsupported"),
        (400, "At most 0 image(s) may be provided in one prompt.", "unsupported"),
        (400, "The model does not support image inputs", "unsupported"),
        (400, "logprobs is not supported by this model", "unsupported"),
        (501, {"message": "Start it with `--embeddings`", "type": "not_supported_error"}, "unsupported"),
        (400, "This server does not support embeddings. Start it with `--embeddings`", "unsupported"),
        (400, "Guided decoding is not enabled on this server.", "unsupported"),
        (400, "Unrecognized request argument supplied: top_k", "param_rejected"),
        (400, "messages: at least one message is required", ""),
        (503, "tool calls are not supported while loading", ""),
        (429, "too many requests: does not support more streaming", ""),
        (500, "CUDA error: an illegal memory access was encountered", ""),
        (404, "Not Found", ""),
    ],
)
def test_what_a_server_says_it_does_not_offer(status: int, error: object, code: str) -> None:
    told = error if isinstance(error, dict) else {"message": error}
    found = http_failure(status, (), json.dumps({"error": told}).encode(), now=0.0)
    assert found.code == (code and f"contract.{code}")
    assert beyond(found, {"top_k": 5, "messages": []}) is bool(code)


@pytest.mark.parametrize(
    ("message", "is_beyond"),
    [
        ("This model's maximum context length is 8192 tokens", True),
        ("The prompt is too long: 9000 tokens", True),
        ("Input length 9000 exceeds max_seq_len 8192", True),
        ("Too many tokens, please wait before trying again.", False),
        ("Request exceeds the token limit per minute", False),
        ("max_num_tokens (0) too small: no free KV blocks", False),
        ("context limit reached on worker", False),
        ("__init__() got an unexpected keyword argument 'rope_scaling'", False),
        ("'NoneType' is not supported", False),
        ("User 'bob' is not allowed", False),
        ("model 'harbor-7b' is not supported", False),
        ("Unknown field 'messages'", False),
        ("Unknown field 'top_k'", True),
        ("unknown error in field x", False),
    ],
)
def test_a_refusal_is_of_what_was_asked_for_and_not_of_a_server_that_is_broken(
    message: str, is_beyond: bool
) -> None:
    body = json.dumps({"error": {"message": message}}).encode()
    asked = {"model": "harbor-7b", "messages": [{"role": "user", "content": "x"}], "top_k": 5}
    assert beyond(http_failure(400, (), body, now=0.0), asked) is is_beyond
    assert beyond(http_failure(413, (), b"", now=0.0), None)
