"""Makes a tiny chat model as one GGUF file: the tokenizer of vLLM's tiny model and a two-layer random Llama, always the same.

Runs in the environment of llama.cpp (it needs gguf, numpy and tokenizers): ``python -m tests.servers.tiny_model FILE``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from gguf import GGUFWriter, TokenType

from tests.vllm.tiny_model import tiny_tokenizer

WIDTH, INNER, LAYERS, HEADS, KV_HEADS, CONTEXT = 128, 256, 2, 4, 2, 2_048

CALL = "<tool_call>"
"""The last token: a request that wishes for it gets a call, which llama.cpp holds to its schema only once it has begun so."""

# llama.cpp reads from the template how a model calls tools, and holds the model to it: there is no flag that names a parser.
TEMPLATE = """\
{%- if tools -%}
<|im_start|>system
Tools:
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}Call one so:
<tool_call>{"name": NAME, "arguments": OBJECT}</tool_call><|im_end|>
{% endif -%}
{%- for message in messages -%}
<|im_start|>{{ message.role }}
{% if message.content %}{{ message.content }}{% endif -%}
{%- for call in message.tool_calls or [] %}
<tool_call>{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}</tool_call>
{%- endfor -%}
<|im_end|>
{% endfor -%}
{%- if add_generation_prompt -%}
<|im_start|>assistant
{% endif -%}
"""


def main(file: Path) -> None:
    """Writes model, tokenizer and chat template into ``file``."""
    writer = GGUFWriter(file, "llama")
    writer.add_name("tiny")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(INNER)
    writer.add_block_count(LAYERS)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-6)
    tokens = _tokenizer(writer)
    for name, array in _weights(tokens).items():
        writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _tokenizer(writer: GGUFWriter) -> int:
    """Adds tokenizer and template; how many tokens there are."""
    model = json.loads(tiny_tokenizer().to_str())
    special = {one["content"] for one in model["added_tokens"]}
    ids = model["model"]["vocab"]
    tokens = [*sorted(ids, key=ids.__getitem__), CALL]
    kinds = [TokenType.CONTROL if token in special else TokenType.NORMAL for token in tokens[:-1]]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([*kinds, TokenType.USER_DEFINED])
    writer.add_token_merges([" ".join(merge) for merge in model["model"]["merges"]])
    writer.add_bos_token_id(ids["<|im_start|>"])
    writer.add_eos_token_id(ids["<|im_end|>"])
    writer.add_pad_token_id(ids["<|pad|>"])
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)
    return len(tokens)


def _weights(tokens: int) -> dict[str, np.ndarray]:
    """By llama.cpp's names; rows are outputs. So wide that each layer changes what is said, and the whole prompt counts."""
    chance = np.random.default_rng(7)

    def drawn(rows: int, columns: int) -> np.ndarray:
        return chance.normal(0, 2 * columns**-0.5, (rows, columns)).astype(np.float32)

    ones, kv = np.ones(WIDTH, np.float32), WIDTH // HEADS * KV_HEADS
    found = {
        "token_embd.weight": drawn(tokens, WIDTH),
        "output_norm.weight": ones,
        "output.weight": drawn(tokens, WIDTH) / 8,  # so that a request's logit_bias can decide
    }
    for n in range(LAYERS):
        found |= {
            f"blk.{n}.attn_norm.weight": ones,
            f"blk.{n}.attn_q.weight": drawn(WIDTH, WIDTH),
            f"blk.{n}.attn_k.weight": drawn(kv, WIDTH),
            f"blk.{n}.attn_v.weight": drawn(kv, WIDTH),
            f"blk.{n}.attn_output.weight": drawn(WIDTH, WIDTH),
            f"blk.{n}.ffn_norm.weight": ones,
            f"blk.{n}.ffn_gate.weight": drawn(INNER, WIDTH),
            f"blk.{n}.ffn_up.weight": drawn(INNER, WIDTH),
            f"blk.{n}.ffn_down.weight": drawn(WIDTH, INNER),
        }
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1]))
