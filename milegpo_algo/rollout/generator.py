"""What a rollout asks of a language model, and how one row's randomness is named.

A backend turns prompts (token ids) into samples (token ids, log-probs). Every row comes with a
64-bit key that names it (seed, iteration, task, trajectory, step), so that a backend can sample
each row the same way whatever else is in the batch, whatever the batch size, and on whichever
process the row lands. A `ChatGenerator` is the same for models that take and return text only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, cast

import numpy as np
from numpy.typing import NDArray

Messages = Sequence[Mapping[str, object]]
"""A chat; an image stands in its message as the part `{"type": "image", "image": array}`."""

Image = NDArray[np.uint8]
"""Rows, columns and the three colours."""

FinishReason = Literal["stop", "length"]


@dataclass(frozen=True, slots=True)
class Sample:
    """One reply as the model emitted it.

    Attributes:
        token_ids: the sampled ids, the end-of-turn token included when one was sampled.
        logprobs: log-probability of each sampled id under the sampling distribution, or None where
            a backend cannot tell. A single one it cannot tell is NaN, which `known_logprobs`
            fills.
        finish_reason: "stop" when an end-of-turn token was sampled, "length" when the token budget
            ran out.
    """

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...] | None
    finish_reason: FinishReason


class Generator(Protocol):
    """A policy that samples replies."""

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        keys: Sequence[int],
        images: Sequence[Sequence[Image]] = (),
    ) -> list[Sample]:
        """Sample one reply per prompt; `keys[i]` names the randomness of row i.

        `images[i]` are those of row i, in the order of their places in the prompt; empty where no
        row has any.
        """
        ...


@dataclass(frozen=True, slots=True)
class Usage:
    """What a reply of a text model took.

    Attributes:
        prompt_tokens: as the model's owner counts them.
        completion_tokens: likewise.
        cost: price of the reply, in the currency of the settings; 0 where it came from a cache.
        cached: whether it came from a cache.
    """

    prompt_tokens: int
    completion_tokens: int
    cost: float = 0.0
    cached: bool = False


@dataclass(frozen=True, slots=True)
class ChatReply:
    """One reply of a text model; "length" when its token budget ran out."""

    text: str
    finish_reason: FinishReason
    usage: Usage


class ChatGenerator(Protocol):
    """A model that takes chat messages and returns text."""

    def chat(self, conversations: Sequence[Messages], keys: Sequence[int]) -> list[ChatReply]:
        """Answer each conversation; `keys[i]` names the randomness of row i."""
        ...


class Codec(Protocol):
    """Chat messages to token ids, and sampled ids back to text."""

    def encode(self, messages: Messages) -> list[int]:
        """Token ids of the prompt, up to and including the opening of the assistant's turn."""
        ...

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text of a reply, without special tokens."""
        ...


def with_images(messages: Messages, images: Sequence[Image]) -> Messages:
    """Put images at their places in the messages, `{"type": "image"}`, in order.

    Raises:
        ValueError: there are more places than images, or fewer.
    """
    left = iter(images)
    try:
        filled = [
            message
            if isinstance(message["content"], str)
            else {**message, "content": [_filled(part, left) for part in _parts(message)]}
            for message in messages
        ]
    except StopIteration:
        raise ValueError(f"A prompt has places for more images than its {len(images)}.") from None
    if (unused := len(list(left))) > 0:
        raise ValueError(f"A prompt has no place for {unused} of its {len(images)} images.")
    return filled


def images_of(messages: Messages) -> tuple[Image, ...]:
    """Take the images out of messages, in order."""
    return tuple(
        cast(Image, part["image"])
        for message in messages
        if not isinstance(message["content"], str)
        for part in _parts(message)
        if "image" in part
    )


def _parts(message: Mapping[str, object]) -> Sequence[Mapping[str, object]]:
    return cast("Sequence[Mapping[str, object]]", message["content"])


def _filled(part: Mapping[str, object], images: Iterator[Image]) -> Mapping[str, object]:
    return {**part, "image": next(images)} if part["type"] == "image" else part


def sampling_key(seed: int, iteration: int, task_id: str, trajectory_id: int, step: int) -> int:
    """Return the 64-bit name of one row's randomness, the same in any process."""
    name = f"{seed}\0{iteration}\0{task_id}\0{trajectory_id}\0{step}"
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


def known_logprobs(
    sampled: NDArray[np.float32], recomputed: NDArray[np.float32]
) -> tuple[NDArray[np.float32], int]:
    """Sampled log-probs [C] with the unknown ones (NaN) as recomputed, and how many those are.

    Filled so, the ratio of recomputed to sampled probability is exactly 1 at those tokens.
    """
    unknown = np.isnan(sampled)
    return np.where(unknown, recomputed, sampled), int(unknown.sum())
