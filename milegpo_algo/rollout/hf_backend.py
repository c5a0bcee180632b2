"""Transformers backend: a chat tokenizer and a sampler with a key/value cache.

The sampler is a short loop of its own instead of `model.generate`, for three reasons: it keeps the
log-prob of every token it samples, each row draws from its own named random numbers (so a row's
reply does not depend on its neighbours), and on small models it is several times faster: equal
prompts are read once, prompts are read without an attention mask, the cache is allocated once, and
finished rows leave the batch.

Leaves out: top-p, top-k, beam search, models whose state is not a plain key/value cache (Mamba and
its kin), and images, for which see `vision`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.cache_utils import Cache

from milegpo_algo.rollout.generator import Image, Messages, Sample, images_of
from milegpo_algo.rollout.prefix import RoomyLayer, read
from milegpo_algo.rollout.words import WordTokeniser

_READS_ONLY = (
    "The environment shows pictures, and this model reads text only. Make the environment with "
    "observation='text', or take a vision-language model."
)
_PREFILL_ROWS = 16  # prompts read at once
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


class ChatCodec:
    """A tokenizer with its chat template.

    Args:
        tokenizer: a Hugging Face tokenizer with a chat template.
        template_settings: passed to the template, such as `{"enable_thinking": False}` for Qwen3.
        cache_size: prompts remembered. Rollouts of one task start from the same prompt, and an
            invalid action often leaves it unchanged.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        template_settings: Mapping[str, object] | None = None,
        cache_size: int = 4096,
    ) -> None:
        if tokenizer.chat_template is None:
            raise ValueError(
                "The tokenizer has no chat template. Set tokenizer.chat_template, or use an "
                "instruction-tuned model."
            )
        self.tokenizer = tokenizer
        self.template_settings = dict(template_settings or {})
        check_template(str(tokenizer.chat_template), self.template_settings)
        self._ids_of = lru_cache(cache_size)(self._never_empty)
        self._by_words = WordTokeniser(self._tokenise)

    def encode(self, messages: Messages) -> list[int]:
        """Token ids of the messages and the opening of the assistant's turn; never empty."""
        if images_of(messages):
            raise ValueError(_READS_ONLY)
        render = cast(Callable[..., str], self.tokenizer.apply_chat_template)
        text = render(
            [dict(message) for message in messages],
            tokenize=False,
            add_generation_prompt=True,
            **self.template_settings,
        )
        return list(self._ids_of(text))

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text of the ids, special tokens left out."""
        return cast(str, self.tokenizer.decode(list(token_ids), skip_special_tokens=True))

    def _never_empty(self, text: str) -> tuple[int, ...]:
        # A model cannot continue nothing: an empty prompt is the end-of-text token, as in
        # pre-training.
        return self._by_words(text) or (cast(int, self.tokenizer.eos_token_id),)

    def _tokenise(self, text: str) -> list[int]:
        return cast("list[int]", self.tokenizer(text, add_special_tokens=False)["input_ids"])


def check_template(template: str, settings: Mapping[str, object]) -> None:
    """Refuse settings that a chat template never reads, so that a misspelt one is not ignored.

    Raises:
        ValueError: naming them.
    """
    unread = [name for name in settings if not re.search(rf"\b{re.escape(name)}\b", template)]
    if unread:
        raise ValueError(
            f"chat_template_kwargs: the model's chat template does not read {', '.join(unread)}. "
            "Leave out what it does not know; Qwen3's takes enable_thinking, Qwen2.5's nothing."
        )


@dataclass
class HFGenerator:
    """Samples from a causal language model of transformers.

    Attributes:
        model: the policy. It is put in evaluation mode while sampling and back afterwards.
        end_ids: ids that end a reply; the one sampled is kept as the reply's last id.
        max_new_tokens: longest reply.
        temperature: divides the logits; 0 takes the most likely token. Log-probs are those of the
            distribution sampled from (at temperature 0: those of temperature 1).
        max_rows: rows sampled at once; a longer list is sorted by length and cut.
    """

    model: PreTrainedModel
    end_ids: Sequence[int]
    max_new_tokens: int
    temperature: float = 1.0
    max_rows: int = 128

    @torch.no_grad()
    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        keys: Sequence[int],
        images: Sequence[Sequence[Image]] = (),
    ) -> list[Sample]:
        """Sample one reply per prompt.

        Token t of a row is the inverse of the distribution function at a uniform number that
        depends on (key, t) alone, so the same prompt and key give the same reply in every batch, up
        to rounding in the logits.
        """
        if any(images):
            raise ValueError(_READS_ONLY)
        return in_batches(
            self.model,
            prompts,
            self.max_rows,
            lambda rows: self._sample([prompts[i] for i in rows], [keys[i] for i in rows]),
        )

    def _sample(self, prompts: list[Sequence[int]], keys: list[int]) -> list[Sample]:
        state = _prefill(self.model, prompts, self.max_new_tokens)
        stream = np.asarray(keys, dtype=np.uint64)
        rows = np.arange(len(prompts))  # which prompt each row of the shrinking batch belongs to
        last = torch.tensor([prompt[-1] for prompt in prompts], device=self.model.device)
        ids = np.zeros((len(prompts), self.max_new_tokens), dtype=np.int64)
        logprobs = np.zeros((len(prompts), self.max_new_tokens), dtype=np.float32)
        length = np.full(len(prompts), self.max_new_tokens)
        ended = np.zeros(len(prompts), dtype=bool)
        for t in range(self.max_new_tokens):
            logits = state.advance(self.model, last)  # (B, V)
            last, chosen = choose(logits, uniforms(stream[rows], t), self.temperature)
            ids[rows, t], logprobs[rows, t] = last.cpu().numpy(), chosen.cpu().numpy()
            ending = np.isin(ids[rows, t], self.end_ids)
            length[rows[ending]], ended[rows[ending]] = t + 1, True
            alive = ~ended[rows]
            if not alive.any():
                break
            if alive.sum() <= 0.75 * len(
                rows
            ):  # copying the cache pays from about a quarter of the rows
                keep = np.flatnonzero(alive)
                state.keep(torch.as_tensor(keep, device=last.device))
                rows, last = rows[keep], last[torch.as_tensor(keep, device=last.device)]
        return [
            Sample(
                token_ids=tuple(ids[i, :n].tolist()),
                logprobs=tuple(logprobs[i, :n].tolist()),
                finish_reason="stop" if ended[i] else "length",
            )
            for i, n in enumerate(length)
        ]


def in_batches(
    model: PreTrainedModel,
    prompts: Sequence[Sequence[int]],
    max_rows: int,
    sample: Callable[[list[int]], list[Sample]],
) -> list[Sample]:
    """Sample rows of like length together, the model in evaluation mode meanwhile.

    sample: from indices of prompts to a sample for each.

    Raises:
        ValueError: a prompt is empty.
    """
    if any(len(prompt) == 0 for prompt in prompts):
        raise ValueError("An empty prompt: a model needs at least one token to continue.")
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    samples: dict[int, Sample] = {}
    was_training = model.training
    model.train(False)
    try:
        for start in range(0, len(order), max_rows):
            rows = order[start : start + max_rows]
            samples.update(zip(rows, sample(rows), strict=True))
    finally:
        model.train(was_training)
    return [samples[i] for i in range(len(prompts))]


def choose(
    logits: torch.Tensor, uniform: NDArray[np.float64], temperature: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """One token per row of logits (B, V), and its log-prob: (B,), (B,)."""
    logprobs = torch.log_softmax(logits.float() / (temperature or 1.0), dim=-1)
    if temperature == 0.0:
        tokens = logprobs.argmax(dim=-1)
    else:
        below = logprobs.double().exp().cumsum(dim=-1)  # (B, V)
        height = torch.as_tensor(uniform, device=logits.device).unsqueeze(1) * below[:, -1:]
        tokens = torch.searchsorted(below, height, right=True).squeeze(1)
        tokens = tokens.clamp(max=logits.size(-1) - 1)
    return tokens, logprobs.gather(1, tokens.unsqueeze(1)).squeeze(1)


def uniforms(keys: NDArray[np.uint64], position: int) -> NDArray[np.float64]:
    """One number in [0, 1) per key: output `position` of SplitMix64 (Steele et al. 2014)."""
    z = keys + np.uint64(((position + 1) * int(_GOLDEN)) & 0xFFFFFFFFFFFFFFFF)
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)).astype(np.float64) * 2.0**-53


@dataclass
class _Decoding:
    """A batch in the middle of its replies: cache padded on the left, mask, next positions."""

    layers: list[RoomyLayer]
    mask: torch.Tensor  # (B, P + C): 1 on real tokens
    position: torch.Tensor  # (B,)
    filled: int

    def advance(self, model: PreTrainedModel, last: torch.Tensor) -> torch.Tensor:
        """Feed one token per row; logits of the next, (B, V)."""
        self.filled += 1
        output = model(
            input_ids=last.unsqueeze(1),
            attention_mask=self.mask[:, : self.filled],
            position_ids=self.position.unsqueeze(1),
            past_key_values=Cache(layers=list(self.layers)),
            use_cache=True,
            logits_to_keep=1,
        )
        self.position = self.position + 1
        return cast(torch.Tensor, output.logits[:, -1])

    def keep(self, rows: torch.Tensor) -> None:
        """Drop all other rows."""
        for layer in self.layers:
            layer.keep(rows)
        self.mask, self.position = self.mask[rows], self.position[rows]


def _prefill(model: PreTrainedModel, prompts: list[Sequence[int]], room: int) -> _Decoding:
    """Read every prompt but its last token, each distinct one once.

    The distinct heads are padded on the right and read without a mask (causal attention never looks
    at what follows), in slices of similar length; their cache entries are then copied to each row,
    aligned on the right.
    """
    device = model.device
    heads = [tuple(prompt[:-1]) for prompt in prompts]
    distinct = sorted(set(heads), key=lambda head: (len(head), head))
    rank = {head: i for i, head in enumerate(distinct)}
    source = np.array([rank[head] for head in heads])
    length = np.array([len(head) for head in heads])
    widest = max(1, int(length.max()))  # one-token prompts read one masked token
    mask = np.ones((len(heads), widest + room), dtype=np.int64)
    mask[:, :widest] = np.arange(widest) >= (widest - length)[:, None]
    rooms: list[torch.Tensor] = []
    for start in range(0, len(distinct), _PREFILL_ROWS):
        part = distinct[start : start + _PREFILL_ROWS]
        width = max(1, len(part[-1]))
        ids = torch.zeros((len(part), width), dtype=torch.long)
        for i, head in enumerate(part):
            ids[i, : len(head)] = torch.tensor(head, dtype=torch.long)
        layers = read(model, ids.to(device))
        if not rooms:
            rooms = [_room(keys, len(heads), widest + room) for keys, _ in layers]
        rows = np.flatnonzero((source >= start) & (source < start + len(part)))
        slot = np.maximum(np.arange(width) - (width - length[rows])[:, None], 0)  # (R, width)
        local = torch.as_tensor(source[rows] - start, device=device).unsqueeze(1)
        where = torch.as_tensor(slot, device=device)
        for target, pair in zip(rooms, layers, strict=True):
            for which, states in enumerate(pair):
                aligned = states.transpose(1, 2)[local, where].transpose(1, 2)
                target[which, rows, :, widest - width : widest] = aligned
    return _Decoding(
        layers=[RoomyLayer(target, widest) for target in rooms],
        mask=torch.as_tensor(mask, device=device),
        position=torch.as_tensor(length, device=device),
        filled=widest,
    )


def _room(keys: torch.Tensor, rows: int, width: int) -> torch.Tensor:
    _, heads, _, size = keys.shape
    return keys.new_zeros((2, rows, heads, width, size))
