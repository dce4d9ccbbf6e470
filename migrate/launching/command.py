"""The command that starts a server, from the configuration. Pure: nothing is looked up, and no secret is known here."""

from __future__ import annotations

import ipaddress
import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from migrate.config import Backend
from migrate.errors import ConfigError
from migrate.launching.flags import Flags
from migrate.launching.section import Launch

EXECUTABLES = {"vllm": "vllm", "tensorrt-llm": "trtllm-serve"}
KEY_NAMES = {"vllm": "VLLM_API_KEY"}
"""Where a server looks for the key that it asks of its clients; one that is not here asks for none."""
_PARALLEL = ("tensor-parallel-size", "tp-size", "pipeline-parallel-size", "pp-size", "data-parallel-size")
_GONE = ("trtllm-build", "trtllm-refit", "trtllm-prune", "convert_checkpoint.py")
_HUB = "/root/.cache/huggingface"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """How a server is started."""

    words: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    """Set for it, beside what is set here."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """Set for it to what another variable holds here, which is a secret."""
    remove: tuple[str, ...] = ()
    """The command that removes what may outlive it: a container. Empty: nothing does."""

    @property
    def line(self) -> str:
        """For a shell; secrets are the names of variables."""
        env = [f"{name}={shlex.quote(value)}" for name, value in self.env.items()]
        keys = [f'{name}="${ours}"' for name, ours in self.keys.items()]
        return " ".join((*env, *keys, *map(shlex.quote, self.words)))


def launched(backend: Backend, arm: str) -> Launch:
    """The section of a backend that can be started. Raises ConfigError where it cannot be."""
    launch = backend.launch
    if launch is None:
        raise ConfigError(
            f"{arm} has no launch: section; {arm}.launch.model: names the model, such as Qwen/Qwen3-8B"
        )
    if gone := _removed(backend.kind, launch):
        raise ConfigError(
            f"{arm}.launch: {gone} is of the engine backend, which TensorRT-LLM has removed; "
            "trtllm-serve serves the Hugging Face checkpoint itself"
        )
    if urlsplit(backend.url).scheme != "http" or urlsplit(backend.url).path.strip("/"):
        raise ConfigError(f"{arm}.url: a server that is started here is http://HOST:PORT, not {backend.url}")
    if backend.api_key_env and backend.kind not in KEY_NAMES:
        raise ConfigError(
            f"{arm}.api_key_env: {EXECUTABLES[backend.kind]} asks nobody for a key; leave it out, and let nobody else reach it"
        )
    return launch


def _removed(kind: str, launch: Launch) -> str | None:
    """What the section names of TensorRT-LLM's engine backend."""
    if launch.executable and Path(launch.executable).name in _GONE:
        return Path(launch.executable).name
    engine = kind == "tensorrt-llm" and launch.args.get("backend") in ("tensorrt", "trt")
    return "args: {backend: tensorrt}" if engine else None


def local(backend: Backend, arm: str, flags: Flags) -> Command:
    """A process on this machine, that listens where ``url`` says."""
    launch = launched(backend, arm)
    host, port = _listening(backend)
    program = launch.executable or EXECUTABLES[backend.kind]
    subcommand = ("serve",) if backend.kind == "vllm" else ()
    return Command(
        words=(program, *subcommand, *_serving(backend, launch, flags, host, port)),
        env=launch.env,
        keys=_keys(backend),
    )


def docker(backend: Backend, arm: str, flags: Flags, *, mark: str = "") -> Command:
    """A container, that listens where ``url`` says. ``mark`` makes its name one that no other container has: it is removed by
    that name, and only ours may be. Secrets go from this environment into it without being written."""
    launch = launched(backend, arm)
    image = _image(launch, arm)
    _, port = _listening(backend)
    name = f"migrate-{arm}{mark}"
    words = ["docker", "run", "--rm", "--name", name, "--ipc", "host"]
    words += ["--gpus", "all" if launch.gpus is None else str(launch.gpus)] if launch.gpus != 0 else []
    words += ["--publish", f"{_published(backend)}{port}:{port}"]
    words += [word for pair in launch.env.items() for word in ("--env", "=".join(pair))]
    words += [word for secret in (*launch.secrets, *_keys(backend)) for word in ("--env", secret)]
    words += ["--volume", _volume(launch.model)]
    words += [image, *_inside(backend, launch, flags, port)]
    return Command(words=tuple(words), keys=_keys(backend), remove=("docker", "rm", "--force", name))


def manifest(backend: Backend, arm: str, flags: Flags) -> list[dict[str, Any]]:
    """A Kubernetes Deployment and its Service. Secrets are keys of the Secret ``migrate-ARM``."""
    launch = launched(backend, arm)
    _, port = _listening(backend)
    name = f"migrate-{arm}"
    labels = {"app": name}
    meta = {"name": name, "labels": labels}
    probe = {"httpGet": {"path": "/health", "port": port}}
    patience = max(1, int(launch.ready_within // 10))
    gpus = gpu_count(launch)
    container: dict[str, Any] = {
        "name": "server",
        "image": _image(launch, arm),
        "args": _inside(backend, launch, flags, port),
        "ports": [{"containerPort": port}],
        "env": [
            *({"name": key, "value": value} for key, value in launch.env.items()),
            *({"name": key, "valueFrom": _secret(name, key)} for key in launch.secrets),
            *({"name": key, "valueFrom": _secret(name, ours)} for key, ours in _keys(backend).items()),
        ],
        "startupProbe": probe | {"periodSeconds": 10, "failureThreshold": patience},
        "readinessProbe": probe | {"periodSeconds": 10},
        "livenessProbe": probe | {"periodSeconds": 30, "failureThreshold": 3},
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],  # noqa: S108 - where NCCL and the engine share memory
    }
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": gpus}}
    pod = {
        "containers": [container],
        "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}],
        "enableServiceLinks": False,  # a Service called vllm would set VLLM_PORT, which vLLM reads
        "terminationGracePeriodSeconds": 60,
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": meta,
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},  # a second server would wait for the first one's GPU
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": meta,
        "spec": {"selector": labels, "ports": [{"port": port, "targetPort": port}]},
    }
    return [deployment, service]


def gpu_count(launch: Launch) -> int:
    """``gpus``, else the product of the parallel sizes."""
    if launch.gpus is not None:
        return launch.gpus
    count = 1
    for name, value in launch.args.items():
        if name.replace("_", "-") in _PARALLEL and isinstance(value, int):
            count *= value
    return count


def _serving(backend: Backend, launch: Launch, flags: Flags, host: str, port: int) -> list[str]:
    flags.refuse(launch.args)
    words = [str(directory(launch.model) or launch.model), "--host", host, "--port", str(port)]
    named = any(name.replace("_", "-") == "served-model-name" for name in launch.args)
    if (
        backend.model and not named and backend.kind == "vllm"
    ):  # not each version of TensorRT-LLM has the option
        words += ["--served-model-name", backend.model]
    for name, value in launch.args.items():
        words += _option(name, value, flags, repeats=backend.kind != "vllm")
    return [*words, *launch.unchecked]


def _option(name: str, value: Any, flags: Flags, *, repeats: bool) -> Iterator[str]:
    """The words of one option. ``repeats``: several values take the option several times."""
    spelling = f"--{flags.spelling(name)}"
    if value is True:
        yield spelling
    elif value is False:
        if flags.spelling(f"no-{name}"):
            yield f"--{flags.spelling(f'no-{name}')}"
    elif isinstance(value, dict):
        yield from (spelling, json.dumps(value, separators=(",", ":")))
    elif isinstance(value, list) and repeats:
        yield from (word for one in value for word in (spelling, str(one)))
    elif isinstance(value, list):
        yield from (spelling, *map(str, value))
    else:
        yield from (spelling, str(value))


def _inside(backend: Backend, launch: Launch, flags: Flags, port: int) -> list[str]:
    """What a container runs: vLLM's image begins with ``vllm serve`` by itself."""
    program = [] if backend.kind == "vllm" else [EXECUTABLES[backend.kind]]
    return program + _serving(backend, launch, flags, "0.0.0.0", port)  # noqa: S104 - inside of it


def _listening(backend: Backend) -> tuple[str, int]:
    parts = urlsplit(backend.url)
    host = parts.hostname or ""
    return "127.0.0.1" if host == "localhost" else host, parts.port or 80


def _published(backend: Backend) -> str:
    """``--publish`` takes an address, not a name; a name is for others, so all of them."""
    host, _ = _listening(backend)
    try:
        version = ipaddress.ip_address(host).version
    except ValueError:
        return ""
    return f"[{host}]:" if version == 6 else f"{host}:"


def directory(model: str) -> Path | None:
    """The absolute path of a model that is a directory; ``None``: it is an id of the hub."""
    return Path(model).expanduser().absolute() if model.startswith((".", "/", "~")) else None


def _volume(model: str) -> str:
    """The model's directory, or the cache of what was fetched from the hub."""
    if path := directory(model):
        return f"{path}:{path}:ro"
    return f"{Path.home()}/.cache/huggingface:{_HUB}"


def _image(launch: Launch, arm: str) -> str:
    if launch.image is None:
        raise ConfigError(f"{arm}.launch.image: is missing; name one such as vllm/vllm-openai:v0.33.0")
    return launch.image


def _keys(backend: Backend) -> dict[str, str]:
    name = KEY_NAMES.get(backend.kind)
    return {name: backend.api_key_env} if name and backend.api_key_env else {}


def _secret(secret: str, key: str) -> dict[str, Any]:
    return {"secretKeyRef": {"name": secret, "key": key}}
