"""Makes a tiny chat model on disk: a two-layer random Llama and a small BPE tokenizer, the same on every machine.

Runs in the environment of vLLM (it needs torch, tokenizers and transformers): ``python tiny_model.py FOLDER``. llama.cpp's
tiny model (``tests/servers/tiny_model.py``) has the same tokenizer and template, in an environment without torch.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

CORPUS = [
    "The harbour opens at nine and closes at five. Ferries leave on the hour when the wind allows.",
    "What is the tide at noon? The tide is high at ten past four and low before eleven.",
    "Please write to the service desk, and name your order, the date and what went wrong.",
    "0123456789 {}[]():;,.!?\"'+-*/=<>@#$%&_ ABCDEFGHIJKLMNOPQRSTUVWXYZ abcdefghijklmnopqrstuvwxyz",
] * 20

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def tiny_tokenizer() -> Tokenizer:
    """Byte-level BPE, trained on ``CORPUS``: the four special tokens come first, then all bytes."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|pad|>", "<|end|>", "<|im_start|>", "<|im_end|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=1_000, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def main(folder: Path) -> None:
    """Writes model, tokenizer and chat template into ``folder``."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    fast = PreTrainedTokenizerFast(
        tokenizer_object=tiny_tokenizer(),
        pad_token="<|pad|>",
        eos_token="<|im_end|>",
        bos_token="<|im_start|>",
    )
    fast.chat_template = TEMPLATE
    torch.manual_seed(7)
    config = LlamaConfig(
        vocab_size=len(fast),
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=2_048,
        bos_token_id=fast.bos_token_id,
        eos_token_id=fast.eos_token_id,
        pad_token_id=fast.pad_token_id,
    )
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
    fast.save_pretrained(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
