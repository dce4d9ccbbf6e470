"""Why a server died early, from the end of its log. Pure."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass

from migrate.sensitive import hide_keys

_WIDEST = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One way in which servers die: how its log shows, what it is, and what to do."""

    name: str
    sign: re.Pattern[str]
    """Searched in the log; what its first group matches is shown."""
    says: str
    do: str


def _cause(name: str, sign: str, says: str, do: str) -> Cause:
    return Cause(name=name, sign=re.compile(sign, re.IGNORECASE), says=says, do=do)


CAUSES = (
    _cause(
        "wrong flag",
        r"(?:unrecognized arguments?: |no such option:? )(--?[\w.-]+)",
        "this version does not know the option {}",
        "take it out of launch.args; the executable's --help has its list",
    ),
    _cause(
        "wrong value",
        r"(?:error: argument |invalid value for )([^\n]{1,200})",
        "an option has a value that this version does not take: {}",
        "correct it in launch.args",
    ),
    _cause(
        "parser",
        r"(?:invalid (?:tool call|reasoning) parser: |(?:tool|reasoning) parser '(?=[\w.-]+' not found))([\w.-]+)",
        "this version has no parser {}",
        "name one that --help lists under tool-call-parser or reasoning-parser",
    ),
    _cause(
        "port in use",
        r"(address already in use|failed to bind socket to [^\n]{1,80}|port is already allocated)",
        "the port is in use ({})",
        "stop what listens there, or change the port in url:",
    ),
    _cause(
        "gated model",
        r"(gated ?repo[^\n]{0,120}|awaiting a review from the repo authors|access to model [^\n]{1,120} is restricted)",
        "the model is gated, and this account may not read it ({})",
        "accept its licence on its page, and export HF_TOKEN (launch.secrets: [HF_TOKEN] for a container)",
    ),
    _cause(
        "model not found",
        r"(repository ?not ?found[^\n]{0,120}|invalid repository id or local directory specified[^\n]{0,120}"
        r"|is not a local folder and is not a valid model identifier|could not detect config format|hfvalidationerror)",
        "there is no such model ({})",
        "correct launch.model: an id of the hub, or a directory with a config.json",
    ),
    _cause(
        "no network",
        r"(couldn't connect to '?https://huggingface\.co|localentrynotfounderror|outgoing traffic has been disabled"
        r"|offline mode is enabled)",
        "the model is not on this machine and the hub cannot be reached ({})",
        "fetch it first with hf download, or take out HF_HUB_OFFLINE",
    ),
    _cause(
        "context too large for the cache",
        r"\((\d+)\), \([\d.]+ GiB KV cache is needed",
        "the KV cache has no room for one request of {} tokens",
        "lower max-model-len (the log names the longest that fits), or raise gpu-memory-utilization or tensor-parallel-size",
    ),
    _cause(
        "no memory for the cache",
        r"(no available memory for the cache blocks)",
        "the weights leave no memory for the KV cache ({})",
        "raise gpu-memory-utilization or tensor-parallel-size, or serve a quantised checkpoint",
    ),
    _cause(
        "memory taken",
        r"is less than desired (?:GPU|CPU) memory utilization \(([\d.]+)",
        "other processes hold memory that the server wants (utilization {})",
        "stop them (nvidia-smi lists them), or lower gpu-memory-utilization",
    ),
    _cause(
        "out of memory",
        r"((?:cuda|hip)(?: error:)? out of memory|outofmemoryerror|cannot allocate memory|std::bad_alloc)",
        "there was not enough memory ({})",
        "lower max-model-len or max-num-seqs, raise tensor-parallel-size, or serve a quantised checkpoint",
    ),
    _cause(
        "context too long",
        r"max_model_len \((\d+)\) is greater than the derived max_model_len",
        "the model is not made for {} tokens",
        "lower max-model-len, or leave it out",
    ),
    _cause(
        "CUDA missing",
        r"(no cuda gpus are available|failed to infer device type|libcuda\.so[\w.]*: cannot open|found no nvidia driver"
        r"|no gpu devices found|cuda driver version is insufficient|could not select device driver)",
        "no usable GPU was found ({})",
        "see that nvidia-smi lists it and that the driver is new enough; on a CPU, vLLM needs its CPU build",
    ),
    _cause(
        "too few GPUs",
        r"(world size \(\d+\) is larger than the number of available gpus \(?\d*\)?)",
        "there are fewer GPUs than the parallel sizes ask for ({})",
        "lower tensor-parallel-size, or see CUDA_VISIBLE_DEVICES",
    ),
    _cause(
        "architecture",
        r"model architectures (\[[^\]\n]{1,120}\]) are not supported",
        "this version does not serve models of {}",
        "take a newer version of the server",
    ),
    _cause(
        "remote code",
        r"(requires you to execute the configuration file|contains custom code which must be executed|consider setting "
        r"`trust_remote_code=true`)",
        "the model brings code of its own ({})",
        "read it, then say trust-remote-code: true",
    ),
    _cause(
        "chat template missing",
        r"chat template string \(([^)\n]{1,200})\) appears path-like",
        "there is no chat template {}",
        "correct the path in launch.args",
    ),
    _cause(
        "tokenizer missing",
        r"(can't load tokenizer|couldn't instantiate the backend tokenizer|tokenizer\.model[^\n]{0,60} not found"
        r"|unable to load vocabulary)",
        "the model has no tokenizer that can be read ({})",
        "name one with tokenizer: an id or a directory with tokenizer.json",
    ),
    _cause(
        "compute capability",
        r"(bfloat16 is only supported on gpus with compute capability[^\n]{0,60}|no kernel image is available)",
        "the GPU is too old for this ({})",
        "say dtype: half, or take another GPU",
    ),
    _cause(
        "disk full",
        r"(no space left on device)",
        "a disk or /dev/shm is full ({})",
        "make room; a container wants --ipc host or a larger /dev/shm",
    ),
    _cause(
        "docker",
        r"(cannot connect to the docker daemon[^\n]{0,80}|permission denied while trying to connect to the docker[^\n]{0,80})",
        "docker does not answer ({})",
        "start it, or see that this user may talk to it",
    ),
    _cause(
        "image not found",
        r"(manifest unknown|pull access denied[^\n]{0,80}|repository does not exist)",
        "there is no such image ({})",
        "correct launch.image, or log in to its registry",
    ),
    _cause(
        "name in use",
        r"container name \"?/?([\w.-]+)\"? is already in use",
        "a container called {} is there already",
        "remove it with docker rm --force, or let the other launch end",
    ),
    _cause(
        "package missing",
        r"(modulenotfounderror: no module named '[\w.]+')",
        "the server's environment is not complete ({})",
        "install what is missing there; executable: names the environment",
    ),
)
"""In the order in which they are looked for: what says most first."""


def explained(log: str, code: int) -> str:
    """One or two sentences on an early death. ``log`` is its end; ``code`` the exit code, 128 and the signal for one."""
    for cause in CAUSES:
        if found := cause.sign.search(log):
            return f"{cause.says.format(clean(found[1]))}; {cause.do}"
    if code == 128 + signal.SIGKILL:
        return (
            "it was killed, and did not say why: most likely the machine ran out of memory (dmesg says); "
            "lower its limits, or use a larger machine"
        )
    if last := last_words(log):
        return f"its last words: {last}"
    return "it said nothing"


def last_words(log: str) -> str:
    """The last line that says something; a progress bar's last state. Empty: none does."""
    lines = (clean(line) for line in reversed(re.split(r"[\r\n]+", log)))
    return next((line for line in lines if line), "")


def clean(line: str) -> str:
    """A line as it may be shown: without keys, colours and control characters, and not too long."""
    plain = re.sub(r"\x1b\[[\d;]*[A-Za-z]|[\x00-\x1f\x7f-\x9f]", "", line).strip()
    return hide_keys(plain, lambda *_: "[hidden]")[:_WIDEST]
