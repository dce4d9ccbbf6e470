"""What people really get wrong, planted one by one: ``migrate check`` finds each in under 10 s, in the right words."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pytest

from replay.simulator.settings import Faults
from tests.check.checking import checked
from tests.check.servers import (
    MODEL,
    NOBODY,
    SSH,
    Server,
    api,
    everywhere,
    issued,
    on_tls,
    saying,
    self_signed,
    simulated,
)
from tests.replay.servers import reply

KEY = "sk-3f9Lq7Tz0WmVbX2nR8sKdJ5y"
ONE = (
    b'{"id":"c","object":"chat.completion","choices":'
    b'[{"index":0,"message":{"role":"assistant","content":"Yes"},"finish_reason":"stop"}]}'
)
CHUNK = b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"Yes"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
QUOTA = b'{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}'
PAGE = b"<!doctype html><html><head><title>Sign in</title></head><body>Sign in</body></html>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One thing that is wrong, and what has to be said of it."""

    name: str
    says: tuple[str, ...]
    """Words that the row has to have."""
    check: str
    """The row."""
    server: Server
    result: str = "FAIL"
    key: str | None = None
    """In the environment variable that the candidate's section names; ``None``: it names none."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Of the candidate's section."""
    url: Callable[[str], str] = str
    environment: Mapping[str, str] = field(default_factory=dict)


def secure(url: str) -> str:
    return url.replace("http://", "https://")


def insecure(url: str) -> str:
    return url.replace("https://", "http://")


def at(host: str) -> Callable[[str], str]:
    return lambda url: url.replace("127.0.0.1", host)


HEALTHY = simulated()
KEYED = simulated(api_key=KEY)
CASES = (
    # -- the key ------------------------------------------------------------------------------------------------------
    Case(
        name="key ends with a line break",
        key=KEY + "\n",
        server=KEYED,
        check="key",
        says=("ends with a line break",),
    ),
    Case(
        name="key begins with a blank",
        key=" " + KEY,
        server=KEYED,
        check="key",
        says=("begins with a blank",),
    ),
    Case(
        name="key in quotes", key=f'"{KEY}"', server=KEYED, check="key", says=("has quotes", "without quotes")
    ),
    Case(
        name="two keys in one variable",
        key=f"{KEY}\n{KEY}",
        server=KEYED,
        check="key",
        says=("line break in it",),
    ),
    Case(
        name="key with its header's word",
        key=f"Bearer {KEY}",
        server=KEYED,
        check="key",
        says=("begins with Bearer",),
    ),
    Case(
        name="key with a typographic dash",
        key=KEY.replace("-", "\u2013"),
        server=KEYED,
        check="key",
        says=("copy it again",),
    ),
    Case(
        name="key is a placeholder", key="YOUR_API_KEY", server=KEYED, check="key", says=("is a placeholder",)
    ),
    Case(name="key's variable is empty", key="", server=KEYED, check="key", says=("CANDIDATE_KEY is empty",)),
    Case(
        name="key of another relay",
        key="sk-or-v1-0a9b8c7d6e5f",
        server=HEALTHY,
        config={"kind": "relay", "preset": "holysheep"},
        check="key",
        says=("does not begin with hs_", "looks like one of OpenRouter", "it was not sent"),
    ),
    Case(name="no key where one is needed", server=KEYED, check="key", says=("401", "api_key_env: NAME")),
    Case(
        name="key expired or revoked",
        key=KEY[:-1] + "z",
        server=KEYED,
        check="key",
        says=("refuses it", "401", "CANDIDATE_KEY", "expired or revoked"),
    ),
    Case(
        name="key refused only where tokens are made",
        key=KEY,
        server=api(
            b'{"error": {"message": "No auth credentials found", "code": 401}}', status="401 Unauthorized"
        ),
        check="key",
        says=("refuses it", "No auth credentials found"),
    ),
    # -- the address --------------------------------------------------------------------------------------------------
    Case(
        name="misspelt host",
        server=HEALTHY,
        url=at("relay.invalid"),
        check="name",
        says=("has no address", "correct the host"),
    ),
    Case(name="nobody listens", server=NOBODY, check="connect", says=("refused", "is it running")),
    Case(
        name="localhost bind in a container",
        server=HEALTHY,
        url=at("127.0.0.2"),
        config={"kind": "tensorrt-llm"},
        check="connect",
        says=("refused", "listens on 127.0.0.1 only", "--host 0.0.0.0"),
    ),
    Case(
        name="proxy variables",
        server=HEALTHY,
        url=at("relay.invalid"),
        environment={"HTTPS_PROXY": "http://user:hunter2@proxy.test:3128"},
        check="name",
        says=("HTTPS_PROXY is set, but backends are called directly",),
    ),
    Case(
        name="name with IPv6 addresses only",
        server=HEALTHY,
        url=at("six.harbor.test"),
        check="connect",
        says=("::1 port", "IPv6 addresses only"),
    ),
    Case(
        name="http on a TLS port",
        server=on_tls(self_signed),
        url=insecure,
        check="tls",
        says=("speaks TLS", "url: https://127"),
    ),
    Case(
        name="https on a plain port",
        server=HEALTHY,
        url=secure,
        check="tls",
        says=("speaks plain HTTP", "url: http://127"),
    ),
    Case(
        name="self-signed certificate",
        server=on_tls(self_signed),
        check="tls",
        says=("is self-signed", "SSL_CERT_FILE"),
    ),
    Case(
        name="certificate of an unknown issuer",
        server=on_tls(issued("127.0.0.1")),
        check="tls",
        says=("issuer that this machine does not trust", "SSL_CERT_FILE"),
    ),
    Case(
        name="certificate expired",
        server=on_tls(issued("127.0.0.1", days=-3)),
        environment={"SSL_CERT_FILE": "issuer.pem"},
        check="tls",
        says=("has expired", "renew it"),
    ),
    Case(
        name="certificate for another name",
        server=on_tls(issued("relay.test")),
        environment={"SSL_CERT_FILE": "issuer.pem"},
        check="tls",
        says=("is not for 127.0.0.1",),
    ),
    Case(name="port of another program", server=SSH, check="health", says=("not HTTP", "the server's port?")),
    Case(
        name="missing /v1",
        server=simulated(root="/api"),
        check="models",
        says=("404", "elsewhere", "/api/v1"),
    ),
    Case(
        name="an endpoint in place of the address",
        server=HEALTHY,
        url=lambda url: f"{url}/v1/chat/completions",
        check="models",
        says=("404", "elsewhere", "/v1"),
    ),
    Case(
        name="doubled slash",
        server=HEALTHY,
        url=lambda url: f"{url}//v1/",
        check="models",
        says=("404", "elsewhere"),
    ),
    Case(
        name="a redirect to TLS",
        server=everywhere(
            reply(b"", status="308 Permanent Redirect", headers=b"Location: https://relay.test/v1/models\r\n")
        ),
        config={"kind": "relay"},
        check="models",
        says=("308", "url: https://relay.test"),
    ),
    Case(
        name="a login page", server=everywhere(reply(PAGE)), check="models", says=("a web page", "login page")
    ),
    # -- the model ----------------------------------------------------------------------------------------------------
    Case(
        name="model alias",
        server=simulated(models=("harbor-7b-fp8", "pier-1b")),
        check="model",
        says=(
            "no model 'harbor-7b'",
            "harbor-7b-fp8",
            "models: {harbor-7b: harbor-7b-fp8}",
            "--served-model-name",
        ),
    ),
    Case(
        name="served under its directory",
        server=simulated(models=("/data/models/Harbor-7B-Instruct",)),
        check="model",
        says=("models: {harbor-7b: /data/models/Harbor-7B-Instruct}",),
    ),
    Case(
        name="a wrong entry in models:",
        server=simulated(models=("harbor-7b-fp8",)),
        config={"models": {"harbor-7b": "harbor-7b-fp16"}},
        check="model",
        says=("models: {harbor-7b: harbor-7b-fp8}",),
    ),
    Case(
        name="another kind of server",
        server=simulated(dialect="tensorrt-llm"),
        check="models",
        says=("configured as kind: vllm, but the server is TensorRT-LLM", "kind: tensorrt-llm"),
    ),
    Case(
        name="chat template missing",
        server=simulated(lacks={"chat-template"}),
        check="answer",
        says=("--chat-template",),
    ),
    Case(
        name="context too small",
        server=simulated(context=4096),
        check="context",
        result="DIFFERS",
        says=("32,768 tokens", "4,096 tokens", "larger --max-model-len"),
    ),
    # -- the engine ---------------------------------------------------------------------------------------------------
    Case(
        name="health green but engine dead",
        server=simulated(faults=Faults(hang_share=1)),
        check="answer",
        says=("health is green, but no token came", "EngineDeadError"),
    ),
    Case(
        name="engine dead and said so",
        server=simulated(lacks={"engine"}),
        check="health",
        says=("503", "engine is dead"),
    ),
    Case(
        name="still loading",
        server=simulated(faults=Faults(starting=60)),
        check="health",
        says=("503: it starts", "--watch"),
    ),
    Case(
        name="429 for ever",
        server=simulated(faults=Faults(rate_limit_share=1, retry_after=0.1)),
        check="answer",
        says=("429", "3 times", "rate limit is used up"),
    ),
    Case(
        name="no credit",
        server=api(QUOTA, status="429 Too Many Requests"),
        check="answer",
        says=("no credit or quota left",),
    ),
    Case(
        name="500 for ever",
        server=simulated(faults=Faults(error_share=1)),
        check="answer",
        says=("500", "restart it"),
    ),
    Case(
        name="an answer that is a page", server=api(PAGE), check="answer", says=("an HTML page", "login page")
    ),
    Case(
        name="ready is not warm",
        server=simulated(faults=Faults(cold=0.8)),
        check="warm",
        result="DIFFERS",
        says=("first answer 8", "ready is not warm", "policy.warmup"),
    ),
    # -- what it can do -----------------------------------------------------------------------------------------------
    Case(
        name="stream ignored",
        server=simulated(lacks={"streaming"}),
        check="stream",
        says=("a whole answer came",),
    ),
    Case(
        name="stream unasked",
        server=api(CHUNK),
        check="answer",
        says=("a stream came where none was asked for",),
    ),
    Case(
        name="tool parser off",
        server=simulated(lacks={"tool-choice"}),
        check="tools",
        result="DIFFERS",
        says=("refused", "--enable-auto-tool-choice and the --tool-call-parser"),
    ),
    Case(
        name="tool parser of another model",
        server=simulated(dialect="tensorrt-llm", lacks={"tool-parser"}),
        config={"kind": "tensorrt-llm"},
        check="tools",
        result="DIFFERS",
        says=("left in the text as markup", "--tool_parser"),
    ),
    Case(
        name="guided decoding off",
        server=simulated(dialect="tensorrt-llm", lacks={"schema"}),
        config={"kind": "tensorrt-llm"},
        check="schema",
        result="DIFFERS",
        says=("refused", "guided_decoding_backend"),
    ),
    Case(
        name="no usage in streams",
        server=simulated(lacks={"usage"}),
        check="usage",
        result="DIFFERS",
        says=("not in streams", "tokens of streams are not known"),
    ),
    Case(
        name="strict about fields",
        server=simulated(dialect="tensorrt-llm"),
        config={"kind": "tensorrt-llm"},
        check="other fields",
        result="DIFFERS",
        says=("is refused", "leave such fields out"),
    ),
    Case(
        name="whatever model is asked for",
        server=simulated(dialect="tensorrt-llm"),
        config={"kind": "tensorrt-llm"},
        check="other models",
        result="DIFFERS",
        says=("is answered", "a wrong name is not noticed"),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
async def test_it_is_found(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _surrounded(case, tmp_path, monkeypatch)
    async with case.server(tmp_path) as address:
        named = {} if case.key is None else {"api_key_env": "CANDIDATE_KEY"}
        done = await checked(tmp_path, {"kind": "vllm", "url": case.url(address), **named, **case.config})
    assert case.check in done.rows, done.output
    said = done.said(case.check)
    assert done.rows[case.check]["result"] == case.result, done.output
    assert all(words in said for words in case.says), said
    assert done.code == (2 if case.result == "FAIL" else 0) and done.took_s < 10
    assert KEY not in done.output and "hunter2" not in done.output
    others = [name for name, row in done.rows.items() if row["result"] == "FAIL" and name != case.check]
    assert others == [], f"what is not wrong failed: {others}"


def _surrounded(case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    if case.key is not None:
        monkeypatch.setenv("CANDIDATE_KEY", case.key)
    for name, value in case.environment.items():
        monkeypatch.setenv(name, str(folder / value) if name == "SSL_CERT_FILE" else value)
    system = socket.getaddrinfo

    def resolve(host: Any, port: Any, *args: Any, **more: Any) -> Any:
        """The system's resolver, of which no test can ask that it knows a name with IPv6 addresses only."""
        return system("::1" if host == "six.harbor.test" else host, port, *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/"])
async def test_any_spelling_of_the_same_address_is_taken(ending: str, tmp_path: Path) -> None:
    async with HEALTHY(tmp_path) as address:
        done = await checked(tmp_path, {"kind": "vllm", "url": address + ending})
    assert done.code == 0 and {row["result"] for row in done.rows.values()} == {"OK", "not checked"}, (
        done.output
    )


async def test_a_limit_of_tokens_goes_by_the_name_that_the_backend_knows(tmp_path: Path) -> None:
    refusal = b'{"error": {"message": "Unsupported parameter: \'max_tokens\' is not supported with this model.", "code": 400}}'

    async def act(request: bytes, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if b'"max_tokens"' in request:
            writer.write(reply(refusal, status="400 Bad Request"))
        elif b'"stream":true' in request:
            writer.write(reply(CHUNK, headers=b"Content-Type: text/event-stream\r\n"))
        elif request.startswith(b"POST"):
            writer.write(reply(ONE))
        else:
            writer.write(reply(orjson.dumps([{"id": MODEL}])))  # a bare list, as Together's is

    async with saying(act)(tmp_path) as address:
        done = await checked(tmp_path, {"kind": "relay", "url": address})
    assert done.code == 0 and done.rows["answer"]["result"] == "OK", done.output
    assert done.rows["model"]["result"] == "OK"


def test_there_are_thirty() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 30
    assert MODEL in "".join(case.says[0] for case in CASES)
