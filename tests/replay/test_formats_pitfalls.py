"""What the logs of others hold besides what their schema says: each a small log of its own."""

from __future__ import annotations

import base64
import gzip
import json
import os
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from replay.formats import detect, groups, read, sources_of
from replay.formats.record import Item, Record, Skip, Use
from replay.formats.sources import Source
from tests.replay.test_formats import SAMPLES

Import = Callable[..., list[Item]]
ASKED = [{"role": "user", "content": "When is high tide?"}]
BODY = {"model": "m", "messages": ASKED}
ANSWER = {
    "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "At noon."}, "finish_reason": "stop"}
    ]
}
TOOL = {"type": "function", "function": {"name": "tide", "parameters": {"type": "object"}}}


@pytest.fixture
def imported(tmp_path: Path) -> Import:
    """Reads files of a format; rows become JSON lines, a text stays one."""

    def run(name: str, *files: Any, named: tuple[str, ...] = ()) -> list[Item]:
        paths = [tmp_path / (named[place] if named else f"{place}.log") for place in range(len(files))]
        for path, rows in zip(paths, files, strict=True):
            data = rows if isinstance(rows, bytes) else "\n".join(map(json.dumps, rows)).encode()
            path.write_bytes(data)
        return list(read(sources_of(paths), name))

    return run


def record(items: list[Item], place: int = 0) -> Record:
    item = items[place]
    assert isinstance(item, Record), item
    return item


def body(item: Record) -> dict[str, Any]:
    assert item.request is not None
    return dict(item.request.body)


def said(item: Record) -> Any:
    assert item.response is not None
    return item.response.body


def skipped(items: list[Item]) -> list[str]:
    return [item.reason for item in items if isinstance(item, Skip)]


# Files


def test_line_separators_within_texts_end_no_line(imported: Import) -> None:
    words = "one\u2028two\u0085three"
    row = json.dumps(BODY | {"messages": [{"role": "user", "content": words}]}, ensure_ascii=False)
    items = imported("chat-jsonl", b"\xef\xbb\xbf" + row.encode() + b"\r\n\n" + row.encode())
    assert [item.line for item in items] == [1, 2]
    assert body(record(items))["messages"][0]["content"] == words


def test_compressed_data_that_stop_early_give_what_is_there_and_say_so(imported: Import) -> None:
    lines = b"".join(json.dumps(BODY | {"seed": n}).encode() + b"\n" for n in range(20_000))
    items = imported("chat-jsonl", gzip.compress(lines)[:-9])
    assert len(items) > 19_000 and skipped(items) == ["incomplete"]
    assert isinstance(items[-1], Skip)
    assert items[-1].detail.startswith(f"the file is cut off after record {len(items) - 1}, byte 1,")


@pytest.mark.parametrize("bytes_left", [0.5, 0.9])
@pytest.mark.parametrize(
    ("name", "sample"),
    [
        ("azure-trace", "timing-traces/azure.csv"),
        ("litellm-spendlogs", "litellm-spendlogs/spendlogs.csv"),
        ("har", "har/session.har"),
        ("goreplay", "goreplay/requests.gor"),
        ("chat-jsonl", "chat-jsonl/pairs.jsonl"),
    ],
)
def test_half_a_record_at_the_end_of_compressed_data_is_no_record(
    imported: Import, name: str, sample: str, bytes_left: float
) -> None:
    data = (SAMPLES / sample).read_bytes()
    squeeze = zlib.compressobj(wbits=31)
    head = squeeze.compress(data[: int(len(data) * bytes_left)]) + squeeze.flush(zlib.Z_SYNC_FLUSH)
    whole, items = imported(name, data), imported(name, head)
    assert [item.reason for item in items if isinstance(item, Skip)][-1:] == ["incomplete"]
    known = {item.line: repr(item.request) for item in whole if isinstance(item, Record)}
    assert all(known[item.line] == repr(item.request) for item in items if isinstance(item, Record))
    assert not {"malformed"} & set(skipped(items)) - set(skipped(whole))


def test_a_list_that_stops_early_loses_no_element_before(imported: Import) -> None:
    rows = [{"traceId": "t", "type": "SPAN", "startTime": ""}] * 3
    items = imported("langfuse", json.dumps(rows).encode()[:-20])
    assert skipped(items) == ["not-a-model-call", "not-a-model-call", "malformed"]


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize(
    "wrap", [lambda row: row, lambda row: [row], lambda row: {"total": 1, "data": [row]}]
)
def test_one_record_is_read_however_its_file_is_laid_out(
    imported: Import, indent: int | None, wrap: Callable[[Any], Any]
) -> None:
    row = {"request_id": "r", "call_type": "acompletion", "spend": 0, "proxy_server_request": BODY}
    (item,) = imported("litellm-spendlogs", json.dumps(wrap(row), indent=indent).encode())
    assert isinstance(item, Record) and item.trace == "r"


def test_a_page_too_long_for_the_head_is_not_held_in_memory(tmp_path: Path) -> None:
    row = json.dumps(
        {"request_id": "r", "call_type": "acompletion", "spend": 0, "proxy_server_request": BODY}
    )
    path = tmp_path / "page.json"
    path.write_text('{"data": [' + ",".join([row] * 40_000) + "]}")
    source = Source(path)
    assert detect(source) == "litellm-spendlogs"
    items = read([source], "litellm-spendlogs")
    next(items)
    assert source.done < 3_000_000 < path.stat().st_size
    assert sum(1 for _ in items) == 39_999


def test_a_line_that_is_too_long_is_skipped_and_the_next_one_read(
    imported: Import, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("replay.formats.sources._MOST", 1000)
    long = {"messages": [{"role": "user", "content": "x" * 5000}]}
    items = imported("chat-jsonl", [BODY, long, BODY])
    assert skipped(items) == ["malformed"] and [item.line for item in items] == [1, 2, 3]


@pytest.mark.parametrize(("name", "sample"), [("goreplay", "requests.gor"), ("mitmproxy", "flows.mitm")])
def test_damage_behind_the_last_record_of_a_compressed_file_is_told(
    imported: Import, name: str, sample: str
) -> None:
    data = (SAMPLES / name / sample).read_bytes()
    whole, damaged = imported(name, data), imported(name, gzip.compress(data)[:-4])
    assert [*map(repr, damaged[:-1])] == [*map(repr, whole)] and "cut off" in repr(damaged[-1])


def test_a_pipe_is_read_though_it_cannot_be_opened_twice(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(json.dumps(BODY).encode(),))
    writer.start()
    source = Source(pipe)
    writer.join()
    assert detect(source) == "chat-jsonl" and source.size is None
    assert len(list(read([source], "chat-jsonl"))) == 1


def test_long_lines_are_lines_so_that_a_bad_one_costs_no_other(imported: Import) -> None:
    told = genai(parts(TEXT | {"content": "x" * 200_000}))
    lines = [json.dumps(span(told)).encode(), b'{"resourceSpans": [', json.dumps(span(told)).encode()]
    items = imported("otlp", b"\n".join(lines))
    assert [isinstance(item, Skip) for item in items] == [False, True, False]


def test_thousands_of_files_may_be_given(tmp_path: Path) -> None:
    for number in range(3000):
        (tmp_path / f"{number:04}.jsonl").write_text(json.dumps(BODY))
    sources = sources_of([tmp_path])
    assert len(groups(sources, "chat-jsonl")) == 3000 and len(groups(sources, "openai-batch")) == 1
    assert sum(1 for group in groups(sources, "chat-jsonl") for _ in read(group, "chat-jsonl")) == 3000


def test_naive_times_are_in_the_zone_that_is_given_and_then_not_assumed(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2026-11-02 09:15:30.5000000,10,5\n")
    (assumed,) = read([Source(path)], "azure-trace")
    (told,) = read([Source(path)], "azure-trace", ZoneInfo("Europe/Berlin"))
    assert isinstance(assumed, Record) and isinstance(told, Record)
    assert assumed.notes == ("time-zone-assumed",) and told.notes == ()
    assert assumed.captured_at == 1793610930.5 and told.captured_at == 1793607330.5


# Batches and what OpenAI stores


def test_calls_of_a_batch_are_counted_on_over_its_files_and_no_answer_is_no_failure(imported: Import) -> None:
    line = {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": BODY}
    expired = {"custom_id": "b", "response": None, "error": {"code": "batch_expired", "message": "late"}}
    items = imported("openai-batch", [line], [line | {"custom_id": "b"}], [expired])
    assert [item.line for item in items] == [1, 2]
    assert record(items, 1).use is Use.REPLAY and record(items, 1).response is None


def stored(*, more: bool = False, numbers: tuple[int, ...] = (0,)) -> tuple[list[Any], list[Any]]:
    completion = {"object": "chat.completion", "id": "c-1", "model": "m", "created": 1_790_000_000, **ANSWER}
    parts = [{"type": "text", "text": "What is this?"}]
    messages = [
        {"id": f"c-1-{number}", "role": "user", "content": None, "content_parts": parts} for number in numbers
    ]
    return [completion], [{"object": "list", "data": messages, "has_more": more}]


def test_parts_of_stored_messages_are_what_was_sent(imported: Import) -> None:
    (item,) = imported("openai-stored", *stored())
    assert isinstance(item, Record)
    assert body(item)["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "What is this?"}]}
    ]


@pytest.mark.parametrize("given", [{"more": True}, {"numbers": (0, 2)}])
def test_a_stored_completion_whose_messages_are_not_all_there_is_not_replayed(
    imported: Import, given: dict[str, Any]
) -> None:
    assert skipped(imported("openai-stored", *stored(**given))) == ["request-truncated"]


def test_stored_messages_without_their_completion_are_accounted_for(imported: Import) -> None:
    assert skipped(imported("openai-stored", stored()[1])) == ["request-missing"]


def responded(imported: Import, items: list[Any], **more: Any) -> Item:
    response = {"id": "r1", "object": "response", "status": "completed", "model": "m", "output": [], **more}
    page = {"object": "list", "data": items, "has_more": False}
    (item,) = imported("openai-responses", [response], [page], named=("responses.jsonl", "r1.json"))
    return item


USER = {"id": "i1", "type": "message", "role": "user", "content": "first"}
LAST = {"id": "i3", "type": "message", "role": "user", "content": "last"}
CALL = {"id": "i2", "type": "function_call", "call_id": "c", "name": "tide", "arguments": "{}"}
OUTPUT = {"id": "i4", "type": "function_call_output", "call_id": "c", "output": "noon"}


@pytest.mark.parametrize(
    "listed",
    [
        pytest.param([LAST, USER], id="the newest first, as the API lists them"),
        pytest.param([USER | {"role": "system"}, LAST], id="a system message at the start"),
        pytest.param([USER, CALL, OUTPUT, LAST], id="a call before its output"),
        pytest.param([LAST, OUTPUT, CALL, USER], id="an output before its call"),
    ],
)
def test_input_items_are_put_into_the_order_of_the_conversation(imported: Import, listed: list[Any]) -> None:
    item = responded(imported, listed)
    assert isinstance(item, Record)
    sent = body(item)["input"]
    assert sent[0]["content"] == "first" and sent[-1]["content"] == "last" and "id" not in sent[0]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"conversation": {"id": "conv_1"}}, "request-external"),
        ({"prompt": {"id": "pmpt_1"}}, "request-external"),
        ({"id": "r2"}, "request-missing"),
    ],
)
def test_a_request_of_which_the_provider_holds_a_part_is_not_replayed(
    imported: Import, more: dict[str, Any], reason: str
) -> None:
    item = responded(imported, [USER], **more)
    assert isinstance(item, Skip) and item.reason == reason


def test_a_response_that_still_runs_is_no_answer(imported: Import) -> None:
    item = responded(imported, [USER], status="in_progress")
    assert isinstance(item, Record) and item.response is None and item.use is Use.REPLAY


# Gateways


def payload(**more: Any) -> dict[str, Any]:
    times = {"startTime": 1_790_000_000.0, "endTime": 1_790_000_002.0, "completionStartTime": 1_790_000_002.0}
    call = {"model_map_information": {}, "call_type": "acompletion", "model": "m", "stream": True}
    return {**call, **times, "messages": ASKED, "response": ANSWER, "status": "success", **more}


def test_a_first_token_at_the_end_was_set_by_nothing(imported: Import) -> None:
    unset, set_ = imported("litellm-payload", [payload(), payload(completionStartTime=1_790_000_000.5)])
    assert isinstance(unset, Record) and isinstance(set_, Record)
    assert unset.ttft_s is None and unset.duration_s == 2 and set_.ttft_s == 0.5


def test_a_cut_answer_costs_only_the_comparison(imported: Import) -> None:
    cut = "Noon ... (litellm_truncated skipped 5120 chars. Storage safeguard.) ... evening"
    answer = {"choices": [{"index": 0, "message": {"role": "assistant", "content": cut}}]}
    (item,) = imported("litellm-payload", [payload(response=answer)])
    assert isinstance(item, Record) and item.use is Use.REPLAY and item.notes.count("response-truncated") == 1
    assert said(item) is None and body(item)["messages"] == ASKED


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("[image omitted]", "request-truncated"),
        ("REDACTED_BY_LITELM", "request-redacted"),
        ("a ... (litellm_truncated skipped 9 chars. x) ... b", "request-truncated"),
        ("***", "request-redacted"),
        ("<redacted>", "request-redacted"),
        ("the end is gone [truncated]", "request-truncated"),
    ],
)
def test_a_request_that_was_cut_or_redacted_is_never_replayed(
    imported: Import, words: str, reason: str
) -> None:
    asked = {"model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": words}]}]}
    row = {"request_id": "r", "call_type": "acompletion", "spend": 0, "proxy_server_request": asked}
    assert skipped(imported("litellm-spendlogs", [row])) == [reason]
    assert skipped(imported("chat-jsonl", [asked])) == [reason]


def test_a_message_that_is_about_such_marks_is_none(imported: Import) -> None:
    words = "Why does my log say [truncated] in the middle, and what is **bold**?"
    (item,) = imported("chat-jsonl", [{"model": "m", "messages": [{"role": "user", "content": words}]}])
    assert isinstance(item, Record)


def test_json_in_a_text_is_decoded_for_the_named_field_only(imported: Import) -> None:
    asked = {"model": "m", "messages": [{"role": "user", "content": '{"a": 1}'}]}
    row = {"request_id": "r", "call_type": "acompletion", "spend": 0}
    (item,) = imported("litellm-spendlogs", [row | {"proxy_server_request": json.dumps(json.dumps(asked))}])
    assert isinstance(item, Record) and body(item)["messages"][0]["content"] == '{"a": 1}'


def helicone(**more: Any) -> dict[str, Any]:
    row = {"request_created_at": "2026-11-02T08:15:30Z", "response_status": 200, "request_body": BODY}
    return {**row, "response_body": ANSWER, **more}


def test_helicones_own_status_is_no_answer_and_bodies_too_large_are_gone(imported: Import) -> None:
    items = imported(
        "helicone", [helicone(response_status=-3), helicone(request_body={"helicone_message": "too large"})]
    )
    assert record(items).response is None and skipped(items) == ["request-truncated"]


def test_a_cell_that_was_quoted_once_is_read_as_well(imported: Import) -> None:
    cell = json.dumps(BODY | {"stop": ""}).replace('"', '""')
    once = f'request_created_at,response_status,request_body\n2026-11-02T08:15:30Z,200,"{cell}"\n'
    twice = once.replace('""', '""""')
    for text in (once, twice):
        (item,) = imported("helicone", text.encode())
        assert isinstance(item, Record) and body(item) == BODY | {"stop": ""}


def portkey(at: int, **more: Any) -> dict[str, Any]:
    row = {
        "ai_org": "openai",
        "req_units": 1,
        "res_units": 1,
        "trace_id": "t",
        "request": BODY,
        "response": ANSWER,
    }
    return {**row, "created_at": f"2026-11-02T08:15:{at:02}Z", "response_status_code": 200, **more}


def test_of_several_attempts_the_last_in_time_is_kept_and_an_agents_calls_are_all_kept(
    imported: Import,
) -> None:
    other = {"model": "m", "messages": [*ASKED, {"role": "user", "content": "And low tide?"}]}
    fallback = portkey(32, request=BODY | {"model": "another"})
    items = imported("portkey", [fallback, portkey(31), portkey(33, request=other), portkey(30)])
    assert [isinstance(item, Skip) for item in items] == [False, True, False, True]
    assert body(record(items))["model"] == "another" and set(skipped(items)) == {"duplicate"}


def test_a_providers_address_becomes_the_path_of_our_backends(imported: Import) -> None:
    azure = "https://x.example.com/openai/deployments/d/chat/completions?api-version=1"
    items = imported(
        "portkey",
        [
            portkey(1, trace_id="a", request_url=azure, cost=3, cost_currency="EUR"),
            portkey(
                2, trace_id="b", request_url="https://x.example.com/v1/images/edits", request={"prompt": "a"}
            ),
        ],
    )
    first = record(items)
    assert first.request is not None and first.request.path == "/v1/chat/completions"
    assert first.notes == ("path-assumed",) and first.cost_usd is None
    assert skipped(items) == ["not-a-model-call"]


def test_a_sealed_answer_costs_only_the_comparison_and_workers_paths_are_chats(imported: Import) -> None:
    sealed = {"key": "a", "iv": "b", "data": "c"}
    row = {"RequestBody": {"messages": ASKED}, "ResponseBody": sealed, "StatusCode": 200}
    (item,) = imported("cloudflare", [row | {"Endpoint": "@cf/meta/llama", "Model": "m"}])
    assert isinstance(item, Record) and item.use is Use.REPLAY and said(item) is None
    assert item.request is not None and item.request.path == "/v1/chat/completions" and item.model == "m"


# OpenTelemetry


def value(given: Any) -> dict[str, Any]:
    if isinstance(given, bool):
        return {"boolValue": given}
    if isinstance(given, int):
        return {"intValue": str(given)}
    if isinstance(given, list):
        return {"arrayValue": {"values": [value(one) for one in given]}}
    if isinstance(given, dict):
        return {"kvlistValue": {"values": pairs(given)}}
    return {"stringValue": given}


def pairs(given: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": name, "value": value(one)} for name, one in given.items()]


def span(attributes: dict[str, Any], **more: Any) -> dict[str, Any]:
    times = {"startTimeUnixNano": "1790000000000000000", "endTimeUnixNano": "1790000001000000000"}
    inner = {
        "traceId": "0" * 31 + "1",
        "spanId": "0" * 15 + "1",
        **times,
        "attributes": pairs(attributes),
        **more,
    }
    return {"resourceSpans": [{"scopeSpans": [{"spans": [inner]}]}]}


def log(name: str, body: Any = None, at: int = 1, **more: Any) -> dict[str, Any]:
    ids = {"traceId": "0" * 31 + "1", "spanId": "0" * 15 + "1"}
    inner = {
        "eventName": name,
        "timeUnixNano": f"{1_790_000_000 + at}000000000",
        "body": value(body),
        **ids,
        **more,
    }
    return {"resourceLogs": [{"scopeLogs": [{"logRecords": [inner]}]}]}


def genai(messages: Any = None, **more: Any) -> dict[str, Any]:
    told = {} if messages is None else {"gen_ai.input.messages": json.dumps(messages)}
    named = {name.replace("__", "."): given for name, given in more.items()}
    return {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", **told, **named}


def parts(*given: dict[str, Any], role: str = "user") -> list[dict[str, Any]]:
    return [{"role": role, "parts": list(given)}]


TEXT = {"type": "text", "content": "When is high tide?"}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        pytest.param(span(genai(parts())), "request-truncated", id="a message whose image was dropped"),
        pytest.param(
            span(genai(parts(TEXT)), droppedAttributesCount=1), "request-truncated", id="dropped attributes"
        ),
        pytest.param(span(genai(parts({"type": "file", "file_id": "f"}))), "request-external", id="a file"),
        pytest.param(span(genai(parts({"type": "hologram"}))), "foreign-dialect", id="an unknown part"),
        pytest.param(
            span(
                genai(
                    [*parts(TEXT), *parts({"type": "tool_call", "id": "c", "name": "tide"}, role="assistant")]
                )
            ),
            "request-truncated",
            id="a history that calls tools which were not recorded",
        ),
        pytest.param(
            span(genai(parts(TEXT), gen_ai__output__type="json")), "request-truncated", id="no schema"
        ),
        pytest.param(span({"http.request.method": "POST"}), "not-a-model-call", id="a plain HTTP span"),
        pytest.param(
            span({"traceloop.span.kind": "agent", "gen_ai.request.model": "m"}),
            "not-a-model-call",
            id="agent",
        ),
        pytest.param(
            span({"openinference.span.kind": "AGENT"}), "not-a-model-call", id="an agent of OpenInference"
        ),
        pytest.param(
            span({"openinference.span.kind": "LLM"}), "request-missing", id="OpenInference without input"
        ),
        pytest.param(
            span(
                {"gen_ai.request.model": "m", "gen_ai.prompt.0.content": "a", "gen_ai.prompt.2.content": "b"}
            ),
            "request-truncated",
            id="a number that is missing",
        ),
        pytest.param(
            span(
                {
                    "openinference.span.kind": "LLM",
                    "input.value": '{"messages": [{"role',
                    "input.mime_type": "application/json",
                    "llm.input_messages.0.message.role": "user",
                }
            ),
            "request-truncated",
            id="input.value that stops early",
        ),
        pytest.param({"resourceSpans": [{"resource": {}}]}, "malformed", id="no spans"),
    ],
)
def test_a_span_that_is_no_whole_call_is_skipped(imported: Import, line: dict[str, Any], reason: str) -> None:
    assert skipped(imported("otlp", [line])) == [reason]


def test_parts_become_the_messages_that_carried_them(imported: Import) -> None:
    messages = [
        *parts(
            TEXT,
            {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "QQ=="},
            {"type": "uri", "modality": "image", "uri": "https://x.example.com/a.png"},
        ),
        *parts({"type": "tool_call", "id": "c", "name": "tide", "arguments": {"day": 1}}, role="assistant"),
        *parts({"type": "tool_call_response", "id": "c", "response": {"high": "noon"}}, role="tool"),
    ]
    tools = json.dumps([{"type": "function", "name": "tide", "parameters": {"type": "object"}}])
    told = genai(messages, gen_ai__tool__definitions=tools, gen_ai__request__stop_sequences=["\n"])
    (item,) = imported("otlp", [span(told)])
    assert isinstance(item, Record)
    sent = body(item)
    assert [part["type"] for part in sent["messages"][0]["content"]] == ["text", "image_url", "image_url"]
    assert sent["messages"][0]["content"][1]["image_url"]["url"] == "data:image/png;base64,QQ=="
    assert json.loads(sent["messages"][1]["tool_calls"][0]["function"]["arguments"]) == {"day": 1}
    assert sent["messages"][2] == {"role": "tool", "tool_call_id": "c", "content": '{"high":"noon"}'}
    assert sent["tools"] == [TOOL] and sent["stop"] == ["\n"]


def test_an_answer_that_was_cut_leaves_the_request(imported: Import) -> None:
    (item,) = imported("otlp", [span(genai(parts(TEXT), gen_ai__output__messages='[{"role": "assis'))])
    assert isinstance(item, Record) and item.use is Use.REPLAY and "response-truncated" in item.notes


def test_a_message_that_is_json_itself_stays_a_text_and_a_list_of_parts_does_not(imported: Import) -> None:
    told = {"gen_ai.request.model": "m", "gen_ai.prompt.0.role": "user", "gen_ai.prompt.1.role": "user"}
    contents = {
        "gen_ai.prompt.0.content": '[{"type": "invoice"}]',
        "gen_ai.prompt.1.content": '[{"type": "text", "text": "a"}]',
    }
    (item,) = imported("otlp", [span(told | contents)])
    assert isinstance(item, Record)
    assert [one["content"] for one in body(item)["messages"]] == [
        '[{"type": "invoice"}]',
        [{"type": "text", "text": "a"}],
    ]


def test_log_events_come_in_any_order_and_with_ids_in_another_writing(imported: Import) -> None:
    ids = {
        "traceId": base64.b64encode(bytes(15) + b"\1").decode(),
        "spanId": base64.b64encode(bytes(7) + b"\1").decode(),
    }
    second = {"index": 1, "finish_reason": "stop", "message": {"content": "b"}}
    logs = [
        log("gen_ai.choice", second, 4),
        log("gen_ai.choice", second | {"index": 0, "message": {"content": "a"}}, 5),
        log("gen_ai.user.message", {"content": "and now?"}, 3, **ids),
        log("gen_ai.assistant.message", {"content": "noon"}, 2),
        log("gen_ai.user.message", {"content": "when?"}, 1),
    ]
    (item,) = imported("otlp", logs, [span(genai())])
    assert isinstance(item, Record)
    assert [one["content"] for one in body(item)["messages"]] == ["when?", "noon", "and now?"]
    assert [one["message"]["content"] for one in said(item)["choices"]] == ["a", "b"] and body(item)["n"] == 2


def test_log_events_without_content_or_without_their_span_are_accounted_for(imported: Import) -> None:
    off = log("gen_ai.user.message", {})
    assert skipped(imported("otlp", [off], [span(genai())])) == ["request-missing"]
    (alone,) = imported("otlp", [off])
    assert isinstance(alone, Skip) and "give the file of spans too" in alone.detail


def test_the_event_with_all_details_is_a_call_with_its_span_and_without(imported: Import) -> None:
    structured = {
        "gen_ai.input.messages": parts(TEXT),
        "gen_ai.output.messages": [
            {"role": "assistant", "parts": [TEXT | {"content": "At noon."}], "finish_reason": "stop"}
        ],
    }
    details = "gen_ai.client.inference.operation.details"
    joined = imported("otlp", [span(genai())], [log(details, attributes=pairs(structured))])
    alone = imported("otlp", [log(details, attributes=pairs(genai() | structured))])
    for items in (joined, alone):
        assert body(record(items))["messages"] == ASKED and said(record(items)) == ANSWER
    assert record(joined).duration_s == 1 and "captured-at-end" in record(alone).notes


@pytest.mark.parametrize(
    ("schema", "kind"),
    [({"type": "object", "properties": {}}, "json_schema"), ({"type": "json_object"}, "json_object")],
)
def test_the_format_that_openllmetry_recorded_is_asked_for(
    imported: Import, schema: dict[str, Any], kind: str
) -> None:
    told = genai(parts(TEXT), gen_ai__request__structured_output_schema=json.dumps(schema))
    (item,) = imported("otlp", [span(told)])
    assert isinstance(item, Record) and body(item)["response_format"]["type"] == kind


@pytest.mark.parametrize(
    ("told", "status"),
    [("openai.RateLimitError", 429), ("503", 503), ("openai.APIConnectionError", None), ("_OTHER", None)],
)
def test_an_error_has_the_status_that_it_names(imported: Import, told: str, status: int | None) -> None:
    (item,) = imported(
        "otlp", [span(genai(parts(TEXT), error__type=told), status={"code": "STATUS_CODE_ERROR"})]
    )
    assert isinstance(item, Record) and item.response is not None and item.response.status == status
    assert ("status-missing" in item.notes) is (status is None)


def test_attributes_that_were_dropped_do_not_matter_beside_a_whole_request(imported: Import) -> None:
    told = {
        "openinference.span.kind": "LLM",
        "input.value": json.dumps(BODY),
        "output.value": json.dumps(ANSWER),
    }
    (item,) = imported("otlp", [span(told, droppedAttributesCount=7)])
    assert isinstance(item, Record) and item.use is Use.PAIR and body(item) == BODY


def test_attributes_of_phoenix_may_be_nested_and_hold_a_frameworks_input(imported: Import) -> None:
    inner = [{"message": {"role": "user", "content": "When is high tide?"}}]
    attributes = {
        "input": {"value": '{"messages": [[{"lc": 1}]]}'},
        "llm": {"input_messages": inner, "model_name": "m", "invocation_parameters": '{"temperature": 0.5}'},
    }
    row = {
        "context": {"trace_id": "t"},
        "span_kind": "LLM",
        "attributes": attributes,
        "start_time": "2026-11-02T08:15:30",
    }
    (item,) = imported("phoenix", [row])
    assert isinstance(item, Record) and body(item) == BODY | {"temperature": 0.5}
    assert {"request-rebuilt", "time-zone-assumed"} <= set(item.notes)


# Bedrock, MLflow, mitmproxy


def bedrock(asked: Any, answered: Any = None, operation: str = "Converse", **more: Any) -> dict[str, Any]:
    row = {
        "schemaType": "ModelInvocationLog",
        "operation": operation,
        "modelId": "m",
        "input": {"inputBodyJson": asked},
    }
    return {**row, "output": {"outputBodyJson": answered}, "timestamp": "2026-11-02T08:15:30Z", **more}


def test_converse_is_translated_with_tools_their_results_and_images(imported: Import) -> None:
    asked = {
        "messages": [
            {
                "role": "user",
                "content": [{"text": "a"}, {"image": {"format": "png", "source": {"bytes": "QQ=="}}}],
            },
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c", "name": "tide", "input": {}}}]},
            {
                "role": "user",
                "content": [{"toolResult": {"toolUseId": "c", "content": [{"json": {"at": 12}}]}}],
            },
        ],
        "toolConfig": {
            "tools": [{"toolSpec": {"name": "tide", "inputSchema": {"json": {"type": "object"}}}}]
        },
    }
    asked["toolConfig"]["toolChoice"] = {"any": {}}  # type: ignore[call-overload]
    start = {
        "contentBlockStart": {
            "start": {"toolUse": {"toolUseId": "d", "name": "tide"}},
            "contentBlockIndex": 0,
        }
    }
    pieces = [
        {"contentBlockDelta": {"delta": {"toolUse": {"input": piece}}, "contentBlockIndex": 0}}
        for piece in ('{"day"', ": 1}")
    ]
    stop = {"messageStop": {"stopReason": "tool_use"}}
    (item,) = imported("bedrock", [bedrock(asked, [start, *pieces, stop], "ConverseStream")])
    assert isinstance(item, Record)
    sent = body(item)
    assert [one["role"] for one in sent["messages"]] == ["user", "assistant", "tool"]
    assert sent["messages"][0]["content"][1]["image_url"]["url"] == "data:image/png;base64,QQ=="
    assert sent["messages"][2]["content"] == '{"at":12}' and sent["tools"] == [TOOL]
    assert sent["tool_choice"] == "required" and sent["stream"] is True
    choice = said(item)["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["tool_calls"][0]["function"] == {"name": "tide", "arguments": '{"day": 1}'}


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"messages": [{"role": "user", "content": [{"document": {"name": "a"}}]}]}, "foreign-dialect"),
        (
            {"messages": [{"role": "user", "content": [{"image": {"source": {"s3Location": {}}}}]}]},
            "request-external",
        ),
    ],
)
def test_what_chat_has_no_words_for_is_not_replayed(imported: Import, asked: Any, reason: str) -> None:
    assert skipped(imported("bedrock", [bedrock(asked)])) == [reason]


def test_invocations_in_our_own_dialect_are_taken_and_other_vendors_are_not(imported: Import) -> None:
    anthropic = {"messages": ASKED, "anthropic_version": "bedrock-2023-05-31"}
    nova = {"messages": [{"role": "user", "content": [{"text": "a"}]}]}
    items = imported(
        "bedrock",
        [
            bedrock({"messages": ASKED}, ANSWER, "InvokeModel"),
            bedrock(anthropic, {}, "InvokeModel"),
            bedrock(nova, {}, "InvokeModel"),
        ],
    )
    assert body(record(items)) == BODY and said(record(items)) == ANSWER
    assert skipped(items) == ["foreign-dialect", "foreign-dialect"]


def test_cloudwatch_wraps_the_record_and_a_pointer_to_the_answer_costs_only_the_comparison(
    imported: Import,
) -> None:
    row = bedrock(
        {"messages": [{"role": "user", "content": [{"text": "a"}]}]}, output={"outputBodyS3Path": "s3://b"}
    )
    events = {"events": [{"timestamp": 1, "message": json.dumps(row)}]}
    (item,) = imported("bedrock", json.dumps(events, indent=1).encode())
    assert isinstance(item, Record) and item.use is Use.REPLAY and "response-missing" in item.notes


def test_previews_of_mlflow_are_never_a_request(imported: Import) -> None:
    attributes = {"mlflow.spanType": '"CHAT_MODEL"', "mlflow.spanInputs": '{"messages": [[{"lc": 1}]]}'}
    spans = [{"attributes": attributes}, {"attributes": {"mlflow.spanType": '"LLM"'}}]
    trace = {"info": {"trace_id": "t", "request_preview": json.dumps(BODY)}, "data": {"spans": spans}}
    assert skipped(imported("mlflow", [trace, {"info": {}}])) == [
        "foreign-dialect",
        "request-missing",
        "malformed",
    ]


def tnet(given: Any) -> bytes:
    data, mark = b"", b"~"
    if isinstance(given, bytes):
        data, mark = given, b","
    elif isinstance(given, str):
        data, mark = given.encode(), b";"
    elif isinstance(given, float):
        data, mark = str(given).encode(), b"^"
    elif isinstance(given, int):
        data, mark = str(given).encode(), b"#"
    elif isinstance(given, list):
        data, mark = b"".join(map(tnet, given)), b"]"
    elif isinstance(given, dict):
        data, mark = b"".join(tnet(key) + tnet(inner) for key, inner in given.items()), b"}"
    return str(len(data)).encode() + b":" + data + mark


def flow(**more: Any) -> dict[str, Any]:
    packed = gzip.compress(json.dumps(ANSWER).encode())
    fields = [[b"Content-Type", b"application/json"], [b"Content-Encoding", b"gzip"]]
    response = {"status_code": 200, "headers": fields, "content": packed, "timestamp_end": 1_790_000_001.5}
    request = {
        "method": b"POST",
        "path": b"/v1/chat/completions",
        "headers": [],
        "content": json.dumps(BODY).encode(),
    }
    request["timestamp_start"] = 1_790_000_000.0
    return {
        "response": response,
        "request": request,
        "error": None,
        "id": "f",
        "type": "http",
        "version": 21,
        **more,
    }


def test_credentials_in_an_address_are_dropped_and_skips_show_no_query(imported: Import) -> None:
    asked = flow()["request"] | {"path": b"/v1/chat/completions?a=1&key=AIzaSecret&api-version=2"}
    got = flow()["request"] | {"method": b"GET", "path": b"/v1/models?key=AIzaSecret"}
    items = imported("mitmproxy", tnet(flow(request=asked)) + tnet(flow(request=got)))
    first = record(items)
    assert first.request is not None and first.request.path == "/v1/chat/completions?a=1&api-version=2"
    assert "credentials-dropped" in first.notes and "AIzaSecret" not in repr(items)


def test_flows_are_decoded_and_broken_ones_keep_the_request(imported: Import) -> None:
    streamed = flow()["request"] | {"content": None}
    flows = [flow(), flow(error={"msg": "reset"}), flow(request=streamed), flow(type="tcp")]
    items = imported("mitmproxy", b"".join(map(tnet, flows)) + tnet(flow())[:-40])
    assert said(record(items)) == ANSWER and record(items).duration_s == 1.5
    assert record(items, 1).use is Use.REPLAY and "response-truncated" in record(items, 1).notes
    assert skipped(items) == ["request-missing", "not-a-model-call", "malformed"]
