"""The configuration: what it accepts, and that each error names file, line, key, value and the way out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from migrate.config import Config, load, parse, parse_policy
from migrate.errors import ConfigError
from migrate.presets import presets

DOCUMENTED = (Path(__file__).parents[2] / "docs" / "compare.md").read_text(encoding="utf-8")
GOOD = """
baseline: {kind: vllm, url: 'http://10.0.0.5:8000/v1/'}
candidate:
  kind: tensorrt-llm
  url: http://10.0.0.9:8000
"""


def refusal(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse(text, name="m.yaml")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_defaults_are_the_documented_policy() -> None:
    config = parse(GOOD)
    policy = config.policy
    assert config.shadow.percent == 0.10
    assert (policy.errors.margin, policy.timeouts.margin, policy.slow_share.limit) == (0.01, 0.05, 0.05)
    assert (policy.latency_median.margin, policy.latency_p95.margin, policy.latency_p95.relative) == (
        0.05,
        0.05,
        0.10,
    )
    assert (policy.disagreement.margin, policy.minimum_span) == (0.03, 86_400)
    assert (policy.circuit_breaker.failures, policy.circuit_breaker.recovery) == (5, 60)


def test_a_url_may_carry_v1_or_a_slash() -> None:
    assert parse(GOOD).baseline.url == "http://10.0.0.5:8000"


def test_the_config_survives_a_round_trip_as_json() -> None:
    config = parse(GOOD)
    assert Config.model_validate_json(config.model_dump_json(by_alias=True)) == config


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (GOOD + "polciy: {}\n", ["m.yaml, line 6", "polciy", "did you mean policy?"]),
        (
            GOOD + "policy:\n  errors: {margn: 1 %}\n",
            ["line 7", "policy.errors.margn", "did you mean margin?"],
        ),
        (
            GOOD + "policy:\n  latency_p95: {margin: 50ms, ore: 10 %}\n",
            ["policy.latency_p95.ore", "did you mean or?"],
        ),
        (GOOD + "policy: {minimum_span: soon}\n", ["policy.minimum_span", "'soon'"]),
        (GOOD + "policy: {minimum_span: 24}\n", ["minimum_span: 24 has no unit: write 24s, 24m or 24h"]),
        (GOOD + "policy: {latency_p95: {margin: 0.05}}\n", ["latency_p95.margin: 0.05 has no unit"]),
        (GOOD + "policy: {errors: {margin: 1}}\n", ["policy.errors.margin: 1 has no unit: write 1 %"]),
        (GOOD + "policy: {errors: {margin: 1.0}}\n", ["policy.errors.margin: 1.0 has no unit"]),
        (GOOD + "shadow: {repeat_baseline: 20}\n", ["shadow.repeat_baseline", "write 20 %"]),
        (GOOD + "canary: {cool_down: 60}\n", ["canary.cool_down: 60 has no unit"]),
        (GOOD + "notify: {every: 60}\n", ["notify.every: 60 has no unit"]),
        (GOOD + "shadow: {percent: 101}\n", ["shadow.percent", "101", "0 to 100"]),
        (GOOD + "shadow: {percent: .nan}\n", ["shadow.percent", "0 to 100"]),
        (GOOD + "shadow: {sample_by: session}\n", ["shadow.sample_by", "'session'"]),
        (GOOD + "policy: {errors: {margin: 1 %}}\npolicy: {}\n", ["line 7", "policy", "twice"]),
        (GOOD.replace("vllm", "vlm"), ["line 2", "baseline.kind", "'vlm'", "did you mean vllm?"]),
        (GOOD.replace("http://10.0.0.9:8000", "10.0.0.9:8000"), ["line 5", "candidate.url", "http://"]),
        (GOOD.replace("10.0.0.9", "10.0.0.5"), ["the file", "proves nothing"]),
        (GOOD.replace("http://10.0.0.9", "http://u:secret@10.0.0.9"), ["candidate.url", "api_key_env"]),
        ("candidate: {kind: vllm, url: 'http://a'}\n", ["baseline", "required"]),
        (GOOD + "gateway: {listen: 8080}\n", ["gateway.listen"]),
        (GOOD + "gateway: {listen: '0.0.0.0:x'}\n", ["gateway.listen", "HOST:PORT"]),
        (GOOD.replace("http://10.0.0.9:8000", "http://10.0.0.9:99999"), ["candidate.url", "port"]),
        (GOOD + "shadow: {paths: []}\n", ["shadow.paths"]),
        (GOOD.replace("10.0.0.9:8000", "127.0.0.1:8080"), ["candidate.url is gateway.listen"]),
        (GOOD.replace("10.0.0.5:8000", "localhost:8080"), ["baseline.url is gateway.listen"]),
        (
            GOOD.replace("10.0.0.5:8000", "localhost:8000").replace("10.0.0.9", "127.0.0.1"),
            ["proves nothing"],
        ),
        (GOOD + "policy: {compare: [{model: m, tke: label}]}\n", ["compare.0.tke", "did you mean take?"]),
        (GOOD + "policy: {compare: [{take: lable}]}\n", ["compare.0.take", "'lable'", "did you mean label?"]),
        (
            GOOD + "policy:\n  compare:\n    - {model: a, take: label}\n    - {model: b, regex: '(a'}\n",
            ["line 9", "compare.1.regex", "'(a'", "look-around"],
        ),
        (GOOD + "policy: {compare: [{regex: 'Answer'}]}\n", ["compare.0.regex", "0 groups", "parentheses"]),
        (GOOD + "policy: {compare: [{json: 'a[*].b'}]}\n", ["compare.0.json", "joined by dots"]),
        (GOOD + "policy: {compare: [{model: m}]}\n", ["compare.0", "one of take, regex and json"]),
        (GOOD + "policy: {compare: [{json: a, within: 1}]}\n", ["compare.0", "as: number"]),
        (GOOD + "policy: {compare: [{take: choice, as: text}]}\n", ["compare.0", "as: goes with"]),
        (
            GOOD + "policy: {compare: [{take: label}, {model: m, take: choice}]}\n",
            ["policy: compare.0 takes every answer", "put it last"],
        ),
        (GOOD + "policy: {compare: {take: label}}\n", ["policy.compare", "a dash"]),
        ("policy: &a {errors: *a}\n" + GOOD, ["nested without end"]),
        ("", ["empty"]),
        ("a: [\n", ["line 2", "not valid YAML"]),
    ],
)
def test_each_mistake_is_one_line_that_says_where_and_what(text: str, parts: list[str]) -> None:
    message = refusal(text)
    assert all(part in message for part in parts), message


MANY = """
baseline: {knd: vllm, url: nowhere}
candidate: {kind: vlm, url: http://b}
shadow: {percent: 101, percent: 10}
polciy: {}
policy:
  minimum_span: 24
  errors: {margin: 1}
"""


def test_every_mistake_has_a_line_of_its_own_in_the_order_of_the_file() -> None:
    with pytest.raises(ConfigError) as caught:
        parse(MANY, name="m.yaml")
    assert [line.partition("; ")[0].partition(" (")[0] for line in str(caught.value).split("\n")] == [
        "m.yaml, line 2: baseline.url: 'nowhere' is not an http:// or https:// address of a server",
        "m.yaml, line 2: baseline.knd: no such key",  # and not that kind is missing
        "m.yaml, line 3: candidate.kind: 'vlm' is not valid",
        "m.yaml, line 4: percent is given twice",
        "m.yaml, line 5: polciy: no such key",
        "m.yaml, line 7: policy.minimum_span: 24 has no unit: write 24s, 24m or 24h",
        "m.yaml, line 8: policy.errors.margin: 1 has no unit: write 1 %, or 100 % for the whole",
    ]


def test_no_more_than_ten_mistakes_are_told_and_the_others_counted() -> None:
    with pytest.raises(ConfigError) as caught:
        parse(GOOD + "".join(f"x{n}: 1\n" for n in range(5_000)), name="m.yaml")
    lines = str(caught.value).split("\n")
    assert len(lines) == 11 and lines[0].startswith("m.yaml, line 6: x0: no such key; valid: baseline, ")
    assert lines[10] == "m.yaml: and 4,990 more mistakes"


def test_a_missing_key_is_said_beside_one_that_is_unknown() -> None:
    with pytest.raises(ConfigError) as caught:
        parse("baseline: {knd: vllm}\n", name="m.yaml")
    assert "baseline.url: is required and missing" in str(caught.value)
    assert "baseline.kind" not in str(caught.value)


def test_a_secret_in_an_address_is_not_repeated() -> None:
    assert "secret" not in refusal(GOOD.replace("http://10.0.0.9", "http://u:secret@10.0.0.9"))


def test_a_missing_file_says_how_to_write_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="migrate init"):
        load(tmp_path / "none.yaml")


EXAMPLES = [path for path in sorted(Path("configs").glob("*.yaml")) if "baseline:" in path.read_text("utf-8")]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_shipped_configuration_loads(path: Path) -> None:
    assert load(path).candidate is not None


@pytest.mark.parametrize("name", presets())
def test_a_preset_gives_the_address(name: str) -> None:
    url = "" if name != "azure-openai" else ", url: https://harbor.openai.azure.com/openai/v1"
    backend = parse(f"baseline: {{preset: {name}{url}}}\ngateway: {{listen: 127.0.0.1:9090}}").baseline
    assert backend.kind == "relay" and backend.url.startswith("http") and "RESOURCE" not in backend.url


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ("preset: openroter", "did you mean openrouter?"),
        ("preset: azure-openai", "needs url:"),
        ("preset: openai, kind: vllm", "kind: relay"),
    ],
)
def test_a_preset_that_cannot_be_is_refused(fields: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse(f"baseline: {{{fields}}}")


def test_the_documented_entries_by_task_are_read() -> None:
    (section,) = re.findall(r"^## By task\n(.*?)(?=^## |\Z)", DOCUMENTED, flags=re.DOTALL | re.MULTILINE)
    (example,) = re.findall(r"```yaml\n(.*?)```", section, flags=re.DOTALL)
    taken = [entry.take or entry.regex or entry.path for entry in parse(example).policy.compare]
    assert {"last_number", "choice", "label", "code_fence", "Tags: (.+)", "$.total.amount"} == set(taken)


def test_an_empty_key_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    config = parse(GOOD + "  api_key_env: CANDIDATE_KEY\n")
    assert config.candidate is not None
    monkeypatch.setenv("CANDIDATE_KEY", " k-1\n")
    assert config.candidate.api_key() == "k-1"
    monkeypatch.setenv("CANDIDATE_KEY", "")
    with pytest.raises(ConfigError, match="CANDIDATE_KEY"):
        config.candidate.api_key()


def test_no_time_at_all_needs_no_unit_and_a_share_may_be_a_fraction() -> None:
    policy = parse_policy("{warmup: 0, minimum_span: 0.0, errors: {margin: 0.01}, timeouts: {margin: 0}}")
    assert (policy.warmup, policy.minimum_span, policy.errors.margin) == (0, 0, 0.01)


@pytest.mark.parametrize(
    "text", ["warmup: 1m", "policy: {warmup: 1m}", GOOD + "policy: {warmup: 1m}", "policy:\n  warmup: 60s"]
)
def test_a_policy_stands_alone_under_its_name_or_in_a_configuration(text: str) -> None:
    assert parse_policy(text).warmup == 60


def test_a_rule_without_a_margin_keeps_the_default_one() -> None:
    policy = parse_policy(
        "{errors: {required: false}, slow_share: {required: false}, latency_p95: {required: false}, "
        "ttft_p95: {or: 20 %}, tpot_p95: {margin: 8ms}, cost: {required: true}}"
    )
    assert (policy.errors.margin, policy.errors.required) == (0.01, False)
    assert (policy.slow_share.limit, policy.slow_share.required) == (0.05, False)
    assert (policy.latency_p95.margin, policy.latency_p95.relative, policy.latency_p95.required) == (
        0.05,
        0.1,
        False,
    )
    assert (policy.ttft_p95.margin, policy.ttft_p95.relative) == (0.05, 0.2)
    assert (policy.tpot_p95.margin, policy.tpot_p95.relative, policy.tpot_p95.required) == (0.008, None, True)
    assert (policy.cost.margin, policy.cost.required) == (0.1, True)
    assert type(policy).model_validate_json(policy.model_dump_json(by_alias=True)) == policy
    assert type(policy)(**dict(policy)) == policy


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "p.yaml: is empty or not a mapping; it needs a field of a policy, such as minimum_span: 24h"),
        ("errors: {margn: 1 %}", "p.yaml, line 1: errors.margn: no such key; did you mean margin?"),
        (
            "slow_share: {limit: 100 %}",
            "p.yaml, line 1: slow_share.limit: input should be less than 1 (got 1.0)",
        ),
        ("policy:\n  warmp: 1m", "p.yaml, line 2: policy.warmp: no such key; did you mean warmup?"),
        ("policy: {}\nstore: {}", "p.yaml, line 2: store: no such key; valid: policy"),
        (GOOD + "policy: {warmp: 1m}", "p.yaml, line 6: policy.warmp: no such key; did you mean warmup?"),
        ("warmup: 1m\nwarmup: 2m", "p.yaml, line 2: warmup is given twice"),
        (
            "warmup: soon",
            "p.yaml, line 1: warmup: 'soon' is not a duration: write it as 50ms, 30s, 15m, 24h or 7d",
        ),
    ],
)
def test_a_policy_that_is_none_is_refused_with_its_line(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_policy(text, name="p.yaml")
    assert str(caught.value) == said


@pytest.mark.parametrize("admin", ["127.0.0.1:8081", "localhost:8081", "[::1]:8081"])
def test_an_admin_listener_on_loopback_needs_no_token(admin: str) -> None:
    config = parse(f"baseline: {{kind: vllm, url: 'http://a:1'}}\ngateway: {{admin: '{admin}'}}\n")
    assert config.gateway.token() is None


@pytest.mark.parametrize("admin", ["0.0.0.0:8081", "[::]:8081", "10.0.0.5:8081", "gateway.internal:8081"])
def test_one_beyond_this_machine_does(admin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "baseline: {kind: vllm, url: 'http://a:1'}\ngateway: {admin: '%s'%s}\n"
    with pytest.raises(ConfigError, match="admin_token_env"):
        parse(text % (admin, ""))
    config = parse(text % (admin, ", admin_token_env: ADMIN_TOKEN"))
    for value in ("", "short"):
        monkeypatch.setenv("ADMIN_TOKEN", value)
        with pytest.raises(ConfigError, match="ADMIN_TOKEN is empty or shorter"):
            config.gateway.token()
    monkeypatch.setenv("ADMIN_TOKEN", "9f3c2b7a51de4c08")
    assert config.gateway.token() == "9f3c2b7a51de4c08"
