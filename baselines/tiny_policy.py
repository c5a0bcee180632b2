"""A tiny policy for CPUs: a Qwen2-architecture model and a tokenizer, both made here from text.

The tokenizer is a byte-level BPE learned from an environment's own prompts and replies, so that a
word of the game is about one token and any other text still has an encoding. The tags of the reply
protocol are single tokens. Nothing is downloaded and nothing is pretrained: ``warm_start`` teaches
the model the format.

Text is split into words as Qwen2's tokenizer does it: ``AutoTokenizer`` loads whatever lies beside
a Qwen2 model as that class, and would otherwise cut words in places the training never saw.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    GenerationConfig,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen2Tokenizer,
)

PAD, START, END = "<pad>", "<|im_start|>", "<|im_end|>"
REPLY_TAGS = ("<think>", "</think>", "<action>", "</action>")
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
"""ChatML as Qwen writes it, without a system prompt of its own."""


@dataclass(frozen=True)
class TinyShape:
    """Size of the model. The default has about 0.5 M parameters with 700 tokens."""

    hidden: int = 128
    layers: int = 2
    heads: int = 4
    key_value_heads: int = 2
    intermediate: int = 384
    positions: int = 2048


def train_tokenizer(texts: Iterable[str], vocabulary: int) -> PreTrainedTokenizerFast:
    """Learn a byte-level BPE tokenizer; it pads on the left, as generation needs.

    Args:
        texts: prompts and replies as the environment and its experts write them.
        vocabulary: number of tokens, special ones and the 256 bytes included; at least 300.
    """
    if vocabulary < 300:
        raise ValueError(f"A byte-level vocabulary needs at least 300 tokens, not {vocabulary}.")
    qwen = Qwen2Tokenizer().backend_tokenizer
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = qwen.normalizer
    tokenizer.pre_tokenizer = qwen.pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[PAD, START, END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_tokens(list(REPLY_TAGS))
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=END,
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )
    fast.chat_template = CHAT_TEMPLATE
    return fast


def build_model(
    tokenizer: PreTrainedTokenizerFast, shape: TinyShape, seed: int
) -> Qwen2ForCausalLM:
    """Make a random model for a tokenizer. Torch's global generator is left as it was."""
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=shape.hidden,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.key_value_heads,
        intermediate_size=shape.intermediate,
        max_position_embeddings=shape.positions,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Qwen2ForCausalLM(config)
    model.generation_config = GenerationConfig(
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id
    )
    return model
