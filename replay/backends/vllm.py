"""vLLM, as its 0.32 and 0.33 servers are."""

from replay.backends.facts import Facts

VLLM = Facts(
    kind="vllm",
    name="vLLM",
    owner="vllm",
    health="/health",
    version="/version",
    metrics=("/metrics",),
    context=("max_model_len",),
    envelopes=("openai", "string"),
    refuses_unknown=False,
    checks_model=True,
    changes={
        "model": "or start it with --served-model-name",
        "chat template": "start it with --chat-template FILE, or serve the instruction-tuned model",
        "tools": "start it with --enable-auto-tool-choice and the --tool-call-parser of the model",
        "schema": "ask with response_format or structured_outputs; guided_json has no effect any more",
        "context": "start it with a larger --max-model-len",
        "engine": "look for EngineDeadError in its log and restart it",
        "localhost": "start it with --host 0.0.0.0",
    },
)
