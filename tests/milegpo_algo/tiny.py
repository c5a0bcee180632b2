"""A tiny chat model for trainer tests: random Qwen2, BPE tokenizer trained in memory, the House."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import gymnasium as gym
import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from milegpo_envs.pool import EnvPool
from milegpo_envs.wrappers import Prompted
from tests.toys import HOUSE_ID, TASKS, solution, well_formed

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TASK_IDS = tuple(sorted(TASKS))


def house_pool(size: int, **settings: object) -> EnvPool:
    """Houses in compact prompts."""
    return EnvPool(lambda: Prompted(gym.make(HOUSE_ID, **settings), style="compact"), size)


def corpus() -> list[str]:
    """Every prompt and reply of every task's shortest solution."""
    texts = []
    pool = house_pool(1)
    for task_id in TASK_IDS:
        [(messages, _)] = pool.reset([task_id])
        for action in solution(task_id):
            reply = well_formed(action)
            texts.append(
                f"<|im_start|>user\n{messages[0]['content']}<|im_end|>\n"
                f"<|im_start|>assistant\n{reply}<|im_end|>\n"
            )
            messages = pool.step({0: reply})[0][0]
    pool.close()
    return texts


def tiny_tokenizer(vocabulary: int = 512) -> PreTrainedTokenizerFast:
    """Byte-level BPE on the House's own text, with Qwen's chat template."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<pad>", "<|im_start|>", "<|im_end|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus(), trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        eos_token="<|im_end|>",
        padding_side="left",
    )
    fast.chat_template = TEMPLATE
    return fast


def tiny_model(
    tokenizer: PreTrainedTokenizerFast, *, hidden: int = 32, layers: int = 2, seed: int = 0
) -> Qwen2ForCausalLM:
    """A random Qwen2 with grouped heads."""
    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=3 * hidden,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    return Qwen2ForCausalLM(config)


def lively_model(tokenizer: PreTrainedTokenizerFast, **settings: int) -> Qwen2ForCausalLM:
    """Weights four times the usual size: replies of a random model that are not all alike."""
    model = tiny_model(tokenizer, **settings).eval()
    with torch.no_grad():
        for weight in model.model.parameters():
            weight.mul_(4.0)
    return model


def plain_logprobs(
    model: Qwen2ForCausalLM, prompt: Sequence[int], completion: Sequence[int], temperature: float
) -> NDArray[np.float32]:
    """Log-probs of a completion: one row, no cache, no padding."""
    with torch.no_grad():
        logits = model(torch.tensor([[*prompt, *completion]])).logits[0] / temperature
    picked = torch.log_softmax(logits, -1)[len(prompt) - 1 : -1]
    return picked.gather(1, torch.tensor(completion).unsqueeze(1)).squeeze(1).numpy()


def save_tiny(folder: Path, **settings: int) -> str:
    """Save model and tokenizer where the trainer and its reference find them."""
    tokenizer = tiny_tokenizer()
    tiny_model(tokenizer, **settings).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)
