"""``migrate launch``: the command that is built, and what is refused before anything starts."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from migrate.config import Backend, parse
from migrate.errors import ConfigError
from migrate.launching import command
from migrate.launching.flags import known, named_in
from replay.told import Told, read

ROOT = Path(__file__).parents[2]
SECRET = "hf_" + "Planted0Secret0Of0A0Token0123456"


def backend(kind: str = "vllm", launch: str = "model: Qwen/Qwen3-8B", more: str = "") -> Backend:
    text = f"baseline: {{kind: {kind}, url: 'http://127.0.0.1:8001', model: harbor-7b, {more} launch: {{{launch}}}}}"
    return parse(text).baseline


def words(one: Backend) -> list[str]:
    return list(command.local(one, "baseline", known(one.kind)).words)


def refusal(kind: str, launch: str, more: str = "") -> str:
    with pytest.raises(ConfigError) as caught:
        words(backend(kind, launch, more))
    return str(caught.value)


def run(folder: Path, config: str, *options: str, **env: str) -> subprocess.CompletedProcess[str]:
    (folder / "m.yaml").write_text(config)
    return subprocess.run(
        [sys.executable, "-m", "migrate", "launch", *options, "--config", "m.yaml"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | env,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


def test_a_command_says_where_to_listen_what_to_serve_and_each_option() -> None:
    args = "{max_model_len: 8k, enforce-eager: true, enable-prefix-caching: false, disable-log-stats: false"
    nested = ", lora-modules: [a=x, b=y], compilation-config: {mode: 3}, kv-cache-dtype: fp8}"
    built = words(
        backend(launch=f"model: Qwen/Qwen3-8B, executable: /opt/vllm/bin/vllm, args: {args}{nested}")
    )
    assert built[:5] == ["/opt/vllm/bin/vllm", "serve", "Qwen/Qwen3-8B", "--host", "127.0.0.1"]
    assert built[5:9] == ["--port", "8001", "--served-model-name", "harbor-7b"]
    assert built[9:] == [
        *("--max-model-len", "8k", "--enforce-eager", "--no-enable-prefix-caching"),
        *("--lora-modules", "a=x", "b=y", "--compilation-config", '{"mode":3}', "--kv-cache-dtype", "fp8"),
    ]


def test_trtllm_serve_spells_its_options_with_underscores() -> None:
    built = words(
        backend("tensorrt-llm", "model: Qwen/Qwen3-8B, args: {tp-size: 2, trust-remote-code: true}")
    )
    assert built == [
        *("trtllm-serve", "Qwen/Qwen3-8B", "--host", "127.0.0.1", "--port", "8001"),
        *("--tp_size", "2", "--trust_remote_code"),
    ]


@pytest.mark.parametrize(
    ("kind", "args", "said"),
    [
        ("vllm", "disable-log-requests: true", "enable-log-requests"),
        ("vllm", "guided-decoding-backend: xgrammar", "structured-outputs-config: {backend: NAME}"),
        ("vllm", "speculative-model: small", "speculative-config"),
        ("vllm", "max-modle-len: 8", "did you mean max-model-len?"),
        ("vllm", "quantum: 8", "launch.unchecked"),
        ("vllm", "tp_size: 8", "tensor-parallel-size"),
        ("tensorrt-llm", "gemm_plugin: auto", "no engine is built"),
        ("tensorrt-llm", "max_input_len: 8", "max_seq_len: N"),
        ("tensorrt-llm", "max-model-len: 8", "max_seq_len: N"),
        ("tensorrt-llm", "backend: tensorrt", "trtllm-serve serves the Hugging Face checkpoint"),
        ("vllm", "port: 8000", "url: says where it listens"),
        ("vllm", "api-key: abc", "api_key_env:"),
        ("vllm", "--seed: 1", "without the dashes: seed"),
        ("vllm", "max-model-len: null", "max-model-len has no value"),
        ("vllm", f"hf-overrides: {{token: {SECRET}}}", "looks like a secret"),
    ],
)
def test_a_name_that_is_not_known_is_refused_with_what_to_write(kind: str, args: str, said: str) -> None:
    message = refusal(kind, f"model: m, args: {{{args}}}")
    assert said in message and SECRET not in message and "\n" not in message


@pytest.mark.parametrize(
    ("kind", "launch", "more", "said"),
    [
        ("tensorrt-llm", "model: m, executable: /opt/bin/trtllm-build", "", "trtllm-serve serves"),
        ("tensorrt-llm", "model: m", "api_key_env: KEY,", "asks nobody for a key"),
        ("relay", "model: m", "", "a relay is somebody else's"),
        ("vllm", f"model: m, env: {{HF_TOKEN: {SECRET}}}", "", "looks like a secret"),
        ("vllm", 'model: m, env: {A: "x\\0y"}', "", "A holds a NUL character"),
        ("vllm", "executable: vllm", "", "launch.model: is required"),
    ],
)
def test_what_cannot_be_started_is_refused(kind: str, launch: str, more: str, said: str) -> None:
    message = refusal(kind, launch, more)
    assert said in message and SECRET not in message


@pytest.mark.parametrize("kind", command.EXECUTABLES)
def test_what_is_written_instead_is_known(kind: str) -> None:
    flags = known(kind)
    assert len(flags.names) > 40 and not [name for name in flags.instead if flags.spelling(name)]
    for instead in flags.instead.values():
        named = re.match(r"([a-z][\w-]*): ", instead)
        if named and named[1] not in ("leave it out", "launch.model"):
            assert flags.spelling(named[1]), instead


def test_options_are_read_from_the_help_of_argparse_and_of_click() -> None:
    text = """usage: x [--not-this]
options:
  --port PORT           Port number, as --this-is-prose.
  --tool {a,--b}, -t X  Help.
  --enable-x, --no-enable-x
                        Long --prose.
  --tp_size, --tensor_parallel_size INTEGER
                                  Size.
"""
    found = {"port", "tool", "enable-x", "no-enable-x", "tp_size", "tensor_parallel_size"}
    assert named_in(text) == found


def test_the_executables_own_list_wins(tmp_path: Path) -> None:
    server = tmp_path / "vllm"
    server.write_text(
        "#!/bin/sh\n[ \"$*\" = 'serve --help=all' ] && printf '  --port N  Port.\\n  --brand-new N  New.\\n'\n"
    )
    server.chmod(0o755)
    config = "baseline: {kind: vllm, url: 'http://127.0.0.1:8001', launch: {model: m, executable: ./vllm, args: {%s: 1}}}"
    new = run(tmp_path, config % "brand-new", "vllm", "--dry-run")
    assert new.returncode == 0 and new.stdout.endswith("--brand-new 1\n"), new.stderr
    old = run(tmp_path, config % "brand-newer", "vllm", "--dry-run")
    assert old.returncode == 2 and "did you mean brand-new?" in old.stderr


def test_a_dry_run_is_for_a_shell_and_shows_no_secret(tmp_path: Path) -> None:
    echo = tmp_path / "show me"
    echo.write_text('#!/bin/sh\nprintf "%s\\n" "$VLLM_API_KEY" "$WORDS" "$@"\n')
    echo.chmod(0o755)
    config = f"""baseline:
  kind: vllm
  url: http://localhost:8001
  api_key_env: BASELINE_KEY
  launch: {{model: m, executable: '{echo}', env: {{WORDS: "it's $HOME"}}, args: {{chat-template: "{{{{ x }}}}"}}}}
"""
    shown = run(tmp_path, config, "vllm", "--dry-run", BASELINE_KEY=SECRET)
    assert shown.returncode == 0 and SECRET not in shown.stdout + shown.stderr
    env = os.environ | {"BASELINE_KEY": SECRET}
    pasted = subprocess.run(["sh", "-c", shown.stdout], env=env, capture_output=True, text=True, check=True)
    assert pasted.stdout.splitlines()[:4] == [SECRET, "it's $HOME", "serve", "m"]
    assert "{{ x }}" in pasted.stdout.splitlines() and "--served-model-name" not in pasted.stdout


CONTAINER = "image: 'vllm/vllm-openai:v0.33.0', env: {HF_HUB_OFFLINE: 1}, secrets: [HF_TOKEN]"


def test_docker_gets_secrets_by_name() -> None:
    one = backend(launch=f"model: ./harbor, {CONTAINER}", more="api_key_env: BASELINE_KEY,")
    built = command.docker(one, "baseline", known("vllm"))
    here = Path("harbor").absolute()
    assert shlex.join(built.words) == (
        "docker run --rm --name migrate-baseline --ipc host --gpus all --publish 127.0.0.1:8001:8001 --env HF_HUB_OFFLINE=1 "
        f"--env HF_TOKEN --env VLLM_API_KEY --volume {here}:{here}:ro vllm/vllm-openai:v0.33.0 {here} --host 0.0.0.0 --port 8001 "
        "--served-model-name harbor-7b"
    )
    assert built.line.startswith('VLLM_API_KEY="$BASELINE_KEY" docker run')
    assert built.remove == ("docker", "rm", "--force", "migrate-baseline")


def test_a_container_that_is_removed_has_a_name_of_its_own() -> None:
    """Another launch may have one of the plain name, and may serve."""
    one = backend(launch=f"model: ./harbor, {CONTAINER}")
    made = [command.docker(one, "baseline", known("vllm"), mark=mark) for mark in ("-1f", "-2e")]
    assert [one.remove[-1] for one in made] == ["migrate-baseline-1f", "migrate-baseline-2e"]
    assert all(one.remove[-1] in one.words for one in made)


def test_docker_without_gpu_and_with_the_hubs_cache() -> None:
    one = backend("tensorrt-llm", "model: Qwen/Qwen3-8B, image: nvcr.io/nvidia/tensorrt-llm/release, gpus: 0")
    built = command.docker(one, "baseline", known("tensorrt-llm")).words
    assert "--gpus" not in built and f"{Path.home()}/.cache/huggingface:/root/.cache/huggingface" in built
    assert built[built.index("nvcr.io/nvidia/tensorrt-llm/release") + 1] == "trtllm-serve"


def test_the_manifest_is_a_deployment_and_its_service(tmp_path: Path) -> None:
    config = (
        "baseline: {kind: vllm, url: 'http://127.0.0.1:8001', model: harbor-7b, api_key_env: BASELINE_KEY,\n"
        f"  launch: {{model: Qwen/Qwen3-8B, {CONTAINER}, args: {{tensor-parallel-size: 2, pp-size: 3}}}}}}\n"
    ).replace(", pp-size: 3", ", pipeline-parallel-size: 3")
    printed = run(tmp_path, config, "vllm", "--kubernetes", HF_TOKEN=SECRET, BASELINE_KEY=SECRET)
    assert printed.returncode == 0 and SECRET not in printed.stdout and "&id" not in printed.stdout
    deployment, service = yaml.safe_load_all(printed.stdout)
    assert (deployment["apiVersion"], deployment["kind"]) == ("apps/v1", "Deployment")
    assert (service["apiVersion"], service["kind"]) == ("v1", "Service")
    template = deployment["spec"]["template"]
    assert (
        deployment["spec"]["selector"]["matchLabels"]
        == template["metadata"]["labels"]
        == service["spec"]["selector"]
    )
    (container,) = template["spec"]["containers"]
    assert container["image"] == "vllm/vllm-openai:v0.33.0" and container["args"][0] == "Qwen/Qwen3-8B"
    assert all(isinstance(word, str) for word in container["args"])
    assert (
        container["ports"] == [{"containerPort": 8001}] and service["spec"]["ports"][0]["targetPort"] == 8001
    )
    assert container["resources"]["limits"] == {"nvidia.com/gpu": 6}
    assert container["startupProbe"]["httpGet"] == {"path": "/health", "port": 8001}
    env: dict[str, Any] = {
        one["name"]: one.get("value") or one["valueFrom"]["secretKeyRef"] for one in container["env"]
    }
    assert env == {
        "HF_HUB_OFFLINE": "1",
        "HF_TOKEN": {"name": "migrate-baseline", "key": "HF_TOKEN"},
        "VLLM_API_KEY": {"name": "migrate-baseline", "key": "BASELINE_KEY"},
    }


def test_the_arm_that_can_be_started_is_chosen(tmp_path: Path) -> None:
    config = """baseline: {kind: vllm, url: 'http://127.0.0.1:8001', launch: {model: first}}
candidate: {kind: vllm, url: 'http://127.0.0.1:8002'}
"""
    assert "serve first" in run(tmp_path, config, "vllm", "--dry-run").stdout
    named = run(tmp_path, config, "vllm", "--dry-run", "--arm", "candidate")
    assert named.returncode == 2 and "candidate has no launch: section" in named.stderr
    other = run(tmp_path, config, "tensorrt-llm", "--dry-run")
    assert other.returncode == 2 and "no backend of kind tensorrt-llm" in other.stderr


def test_what_a_server_does_not_say_is_none() -> None:
    assert read(None, None, None) == Told()
    assert read([], {"data": "?"}, {"vllm_config": 3}) == Told()
    info = {
        "vllm_config": {"model_config": {"revision": "abc", "quantization": None, "dtype": "torch.bfloat16"}},
        "system_env": {"nvidia_gpu_models": "GPU 0: NVIDIA H200"},
    }
    said = read({"version": "0.33.0"}, {"data": [{"id": "harbor-7b", "max_model_len": 8192}, 5]}, info)
    assert said == Told(
        version="0.33.0",
        models=("harbor-7b",),
        context=8192,
        revision="abc",
        dtype="torch.bfloat16",
        gpu="GPU 0: NVIDIA H200",
    )


def test_the_documented_section_is_a_configuration_and_its_refusals_are_so() -> None:
    page = (ROOT / "docs/launch.md").read_text("utf-8")
    (example,) = re.findall(r"```yaml\n(.*?)```", page, flags=re.DOTALL)
    every = example.replace("# gpus", "gpus").replace("# ready", "ready").replace("# unchecked", "unchecked")
    one = parse("baseline: {kind: vllm, url: 'http://127.0.0.1:8000'}\n" + every).candidate
    assert one is not None and one.launch is not None and one.launch.gpus == 2
    assert words(one)[-2:] == ["--brand-new", "3"]
    for name, kind, instead in re.findall(
        r"^\| `([\w-]+)` \((\w+)[\w-]*\) \| (.*) \|$", page, flags=re.MULTILINE
    ):
        known_as = "vllm" if kind == "vLLM" else "tensorrt-llm"
        assert instead.replace("`", "") in refusal(known_as, f"model: m, args: {{{name}: 1}}")
