"""Any OpenAI-compatible address of which nothing more is known; a preset says more."""

from replay.backends.facts import Facts

RELAY = Facts(
    kind="relay",
    name="the relay",
    context=("context_length", "max_model_len", "context_window", "max_context_length"),
    changes={
        "tools": "choose a model of the relay that has tools",
        "schema": "choose a model of the relay that has structured output",
        "context": "choose a model of the relay with a longer context",
        "engine": "look at the relay's status page",
        "localhost": "start it with --host 0.0.0.0",
    },
)
