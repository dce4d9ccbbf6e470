"""TensorRT-LLM's ``trtllm-serve``, from its released sources: it needs a GPU and has not been run."""

from replay.backends.facts import Facts

TENSORRT_LLM = Facts(
    kind="tensorrt-llm",
    name="TensorRT-LLM",
    owner="tensorrt_llm",
    health="/health",
    ready="/health_generate",
    version="/version",
    metrics=("/prometheus/metrics",),
    drained=("/metrics", "/perf_metrics"),
    envelopes=("flat", "string", "detail"),
    refuses_unknown=True,
    checks_model=False,
    changes={
        "model": "it is called by the last part of the directory or id that trtllm-serve was given, or by --served_model_name",
        "chat template": "start it with --chat_template FILE, or serve the instruction-tuned model",
        "tools": "start it with the --tool_parser of the model",
        "schema": "set guided_decoding_backend: xgrammar in the file of --config",
        "context": "start it with a larger --max_seq_len",
        "engine": "look at its log and restart it",
        "localhost": "start it with --host 0.0.0.0: trtllm-serve binds localhost by default",
    },
)
