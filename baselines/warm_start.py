"""Warm start: teach a tiny policy the format and the game from noisy expert episodes.

Supervised learning on whole episodes of an expert (``demonstrations``), with the prompt's tokens in
the loss at a small weight: a model that learns to continue prompts, which repeat names all the
time, learns to copy an action from the list far sooner than one that sees replies alone. Matrices
are updated by Muon (torch's), the rest by AdamW.

The result is cached in a folder named by a hash of everything it depends on: the demonstrations'
own text, every setting, the number of threads and the versions of the libraries that do the
arithmetic. Same machine, same settings: same weights.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path

import gymnasium as gym
import torch
from torch.nn.functional import cross_entropy
from transformers import PreTrainedTokenizerFast, Qwen2ForCausalLM

from baselines.demonstrations import Demonstration, demonstrate, expert_for
from baselines.tiny_policy import TinyShape, build_model, train_tokenizer
from milegpo_envs.state import canonical_json

OnProgress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""

_ARITHMETIC = ("torch", "transformers", "tokenizers")
_BUCKET = 8  # batches that are sorted by length together, so that little is padded


@dataclass(frozen=True)
class WarmStart:
    """What the warm start depends on, beside the environment.

    noise: probability that a demonstrated step is random.
    prompt_weight: of a prompt token in the loss; a reply token counts 1.
    steps: optimizer steps of ``batch_rows`` rows; the rate rises over the first 4 % and falls
        linearly over the second half.
    """

    episodes: int = 2000
    noise: float = 0.35
    style: str = "compact"
    history: int = 2
    vocabulary: int = 700
    shape: TinyShape = field(default_factory=TinyShape)
    steps: int = 1500
    batch_rows: int = 16
    learning_rate: float = 2e-3
    matrix_learning_rate: float = 4e-3
    prompt_weight: float = 0.3
    threads: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what nothing can be learnt from.

        Raises:
            ValueError: no episode, a number of steps below 0, or a noise that is no probability.
        """
        if self.episodes < 1 or self.steps < 0 or not 0 <= self.noise <= 1:
            raise ValueError(
                f"warm_episodes={self.episodes}, warm_steps={self.steps}, "
                f"warm_noise={self.noise}: they are at least 1, at least 0, and from 0 to 1."
            )


def warm_start(
    make_env: Callable[[], gym.Env[str, str]],
    env_id: str,
    settings: WarmStart,
    cache: Path,
    on_progress: OnProgress = lambda what, done, total: None,
) -> Path:
    """Return the folder of the warm-started model and tokenizer, made now or found in the cache.

    Args:
        make_env: makes the training split's environment, not yet ``Prompted``.
        env_id: names the expert.
        settings: see ``WarmStart``.
        cache: parent of the result's folder. A killed run leaves nothing that is taken for one.
        on_progress: see ``OnProgress``.
    """
    demonstrations = _demonstrations(make_env, env_id, settings, on_progress)
    folder = cache / _content_hash(demonstrations, settings)
    if folder.is_dir():
        return folder
    tokenizer = train_tokenizer(
        (f"{d.messages[0]['content']}\n{d.reply}" for d in demonstrations[:8000]),
        settings.vocabulary,
    )
    model = build_model(tokenizer, settings.shape, settings.seed)
    fit(model, tokenizer, demonstrations, settings, on_progress)
    unfinished = folder.with_suffix(f".unfinished-{os.getpid()}")
    model.save_pretrained(unfinished)
    tokenizer.save_pretrained(unfinished)
    try:
        unfinished.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
        shutil.rmtree(unfinished)  # another process made the same at the same time
    return folder


def fit(
    model: Qwen2ForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    demonstrations: Sequence[Demonstration],
    settings: WarmStart,
    on_progress: OnProgress = lambda what, done, total: None,
) -> None:
    """Train in place; torch's thread count is set for the duration."""
    rows = [_encode(tokenizer, demonstration) for demonstration in demonstrations]
    matrices = [p for n, p in model.named_parameters() if p.ndim == 2 and "embed" not in n]
    chosen = {id(p) for p in matrices}
    others = [p for p in model.parameters() if id(p) not in chosen]
    optimizers: list[torch.optim.Optimizer] = [
        torch.optim.AdamW(others, lr=settings.learning_rate, weight_decay=0.01, betas=(0.9, 0.98)),
        torch.optim.Muon(
            matrices,
            lr=settings.matrix_learning_rate,
            weight_decay=0.01,
            adjust_lr_fn="match_rms_adamw",
        ),
    ]
    rates = [optimizer.param_groups[0]["lr"] for optimizer in optimizers]
    threads = torch.get_num_threads()
    torch.set_num_threads(settings.threads)
    model.train()
    try:
        for step, batch in enumerate(_batches(rows, settings)):
            for optimizer, rate in zip(optimizers, rates, strict=True):
                optimizer.param_groups[0]["lr"] = rate * _schedule(step / settings.steps)
            loss = _loss(model, batch, settings.prompt_weight)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad()
            on_progress("warm start", step + 1, settings.steps)
    finally:
        torch.set_num_threads(threads)
    model.eval()


def _demonstrations(
    make_env: Callable[[], gym.Env[str, str]],
    env_id: str,
    settings: WarmStart,
    on_progress: OnProgress,
) -> list[Demonstration]:
    """Play the first tasks of the split, over again with other noise where there are too few."""
    env, expert = make_env(), expert_for(env_id)
    known = env.unwrapped.task_ids()  # type: ignore[attr-defined]  # the contract's own method
    found: list[Demonstration] = []
    for start in range(0, settings.episodes, len(known)):
        episodes = demonstrate(
            env,
            expert,
            known[: settings.episodes - start],
            noise=settings.noise,
            seed=settings.seed + start,
            style=settings.style,
            history=settings.history,
        )
        for played, (steps, _) in enumerate(episodes, start + 1):
            found.extend(steps)
            on_progress("demonstrations", played, settings.episodes)
    env.close()
    return found


def _content_hash(demonstrations: Sequence[Demonstration], settings: WarmStart) -> str:
    """Name a result by all it depends on: 32 hex digits."""
    digest = hashlib.blake2b(digest_size=16)
    versions = {name: version(name) for name in _ARITHMETIC}
    digest.update(canonical_json([asdict(settings), versions]).encode())
    for demonstration in demonstrations:
        step = [demonstration.messages[0]["content"], demonstration.reply]
        digest.update(canonical_json(step).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _encode(tokenizer: PreTrainedTokenizerFast, step: Demonstration) -> tuple[list[int], int]:
    """Return a row's tokens and how many of them are the prompt's."""
    prompt = tokenizer.apply_chat_template(
        [{"role": m["role"], "content": str(m["content"])} for m in step.messages],
        add_generation_prompt=True,
        tokenize=True,
        return_dict=False,
    )
    reply = tokenizer(step.reply, add_special_tokens=False)["input_ids"]
    return [*prompt, *reply, tokenizer.eos_token_id], len(prompt)


def _batches(
    rows: Sequence[tuple[list[int], int]], settings: WarmStart
) -> Iterator[list[tuple[list[int], int]]]:
    """Yield ``settings.steps`` batches of rows of like length, epoch after epoch."""
    draws = random.Random(settings.seed)
    size = settings.batch_rows
    left = settings.steps
    while left:
        order = draws.sample(range(len(rows)), len(rows))
        batches = []
        for start in range(0, len(order), size * _BUCKET):
            bucket = sorted(order[start : start + size * _BUCKET], key=lambda i: len(rows[i][0]))
            batches += [bucket[i : i + size] for i in range(0, len(bucket), size)]
        draws.shuffle(batches)
        for batch in batches[:left]:
            yield [rows[i] for i in batch]
        left -= min(left, len(batches))


def _loss(
    model: Qwen2ForCausalLM, batch: Sequence[tuple[list[int], int]], prompt_weight: float
) -> torch.Tensor:
    """Weighted mean cross-entropy of the next token; rows are padded on the right."""
    longest = max(len(tokens) for tokens, _ in batch)
    ids = torch.zeros(len(batch), longest, dtype=torch.long)  # (B, T)
    present = torch.zeros_like(ids)
    weight = torch.zeros(len(batch), longest)
    for row, (tokens, prompt) in enumerate(batch):
        ids[row, : len(tokens)] = torch.tensor(tokens)
        present[row, : len(tokens)] = 1
        weight[row, 1:prompt] = prompt_weight
        weight[row, prompt : len(tokens)] = 1.0
    logits = model(input_ids=ids, attention_mask=present).logits[:, :-1]
    losses = cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
    weights = weight[:, 1:].flatten()
    return (losses * weights).sum() / weights.sum()


def _schedule(progress: float) -> float:
    """Return the factor of the learning rates at a share of the steps."""
    return min(1.0, progress / 0.04 + 0.01, 2 * (1 - progress) + 0.01)
