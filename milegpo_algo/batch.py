"""From rows to the padded micro-batches of TRL's loss, no row lost and none counted twice.

    rows -> mini-batches (global) -> this process's share, by length -> micro-batches -> tensors

Mini-batches are cut before rows are dealt to processes, so that what an optimizer step averages
over does not depend on the number of processes.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

Tokens = NDArray[np.int64]
Floats = NDArray[np.float32]
Image = NDArray[np.uint8]

_LOWEST = -20.0  # log-ratio of reference to sampling policy, below which nothing is told apart


@dataclass(frozen=True, slots=True)
class Row:
    """One environment step as a training example.

    Attributes:
        prompt: token ids [P].
        completion: sampled token ids [C]; C can be 0.
        sampled_logprobs: as the generator reported them [C], or None.
        advantage: the step's credit, the same for each of its tokens.
        old_logprobs: of the policy that sampled, as the loss uses them [C].
        ref_logprobs: of the reference policy [C]; None without a KL term.
        counts: False for a row that only fills up a process's share: its mask is 0 everywhere.
        trains: False for a row that the mean counts and the loss leaves out.
        token_advantages: credit of each token [C], in place of `advantage`.
        importance: weight of each token [C]: probability when trained / when sampled, truncated.
        values: of a critic before each token [C].
        returns: what they should have been [C].
        images: of the prompt, in the order of their places.
    """

    prompt: Tokens
    completion: Tokens
    sampled_logprobs: Floats | None
    advantage: float
    old_logprobs: Floats | None = None
    ref_logprobs: Floats | None = None
    counts: bool = True
    trains: bool = True
    token_advantages: Floats | None = None
    importance: Floats | None = None
    values: Floats | None = None
    returns: Floats | None = None
    images: tuple[Image, ...] = ()

    @property
    def content(self) -> tuple[bytes, ...]:
        """Equal for rows that a model cannot tell apart."""
        pictures = [f"{image.shape}".encode() + image.tobytes() for image in self.images]
        return (self.prompt.tobytes(), self.completion.tobytes(), *pictures)

    @property
    def order(self) -> tuple[int, bytes, int]:
        """Sorts rows so that neighbours pad little, and equal prompts are neighbours."""
        return len(self.prompt), self.prompt.tobytes(), len(self.completion)

    @property
    def tokens(self) -> int:
        """Tokens the loss averages over."""
        return len(self.completion) if self.counts else 0

    def __len__(self) -> int:
        return len(self.prompt) + len(self.completion)


def minibatches(rows: Sequence[Row], size: int, seed: int, iteration: int) -> list[list[Row]]:
    """Shuffle the rows and cut them into the fewest mini-batches of at most `size` rows.

    Sizes are within one of each other: a remainder of a few rows would otherwise get an optimizer
    step as large as all others.
    """
    if not rows:
        return []
    name = hashlib.blake2b(f"{seed}\0{iteration}\0minibatches".encode(), digest_size=8).digest()
    order = np.random.default_rng(int.from_bytes(name, "little")).permutation(len(rows))
    count = math.ceil(len(rows) / size)
    return [[rows[i] for i in part] for part in np.array_split(order, count)]


def deal(rows: Sequence[Row], world: int, rank: int) -> list[Row]:
    """This process's share of a mini-batch, in `Row.order`.

    Rows are dealt by length in a snake (0, 1, 1, 0, 0, 1, ...), which evens out the token counts;
    shares that come out one short are filled up with a copy of the shortest row that does not
    count.
    """
    by_length = sorted(rows, key=len)
    share = [
        row
        for j, row in enumerate(by_length)
        if (j % world if (j // world) % 2 == 0 else world - 1 - j % world) == rank
    ]
    missing = math.ceil(len(rows) / world) - len(share)
    share += [replace(by_length[0], counts=False)] * missing
    return sorted(share, key=lambda row: row.order)


Item = TypeVar("Item")


def microbatches(items: Sequence[Item], size: int) -> list[Sequence[Item]]:
    """Cut a list into the fewest pieces of at most `size` items, of even size."""
    count = math.ceil(len(items) / size)
    cuts = [round(i * len(items) / count) for i in range(count + 1)] if count else [0]
    return [items[start:end] for start, end in pairwise(cuts)]


def collate(rows: Sequence[Row], pad_id: int, device: torch.device) -> dict[str, torch.Tensor]:
    """TRL's loss inputs: prompts padded on the left (B, P), completions on the right (B, C)."""
    lengths = [len(row.completion) if row.counts else 0 for row in rows]
    width = max(1, *(len(row.completion) for row in rows))
    mask = (np.arange(width) < np.array(lengths)[:, None]).astype(np.int64)
    prompt_width = max(len(row.prompt) for row in rows)
    prompt_lengths = np.array([len(row.prompt) for row in rows])
    arrays: dict[str, NDArray[np.generic]] = {
        "prompt_ids": _padded([row.prompt for row in rows], prompt_width, pad_id, left=True),
        "prompt_mask": (np.arange(prompt_width) >= prompt_width - prompt_lengths[:, None]).astype(
            np.int64
        ),
        "completion_ids": _padded([row.completion for row in rows], width, pad_id),
        "completion_mask": mask,
        "advantages": _advantages(rows, mask),
    }
    columns = {
        "old_per_token_logps": [row.old_logprobs for row in rows],
        "ref_per_token_logps": [row.ref_logprobs for row in rows],
        "old_values": [row.values for row in rows],
        "returns": [row.returns for row in rows],
    }
    for name, column in columns.items():
        known = [values for values in column if values is not None]
        if len(known) == len(rows):
            # not times the mask: what is masked may be infinite
            arrays[name] = np.where(mask, _padded(known, width, 0.0), np.float32(0.0))
    return {name: torch.as_tensor(array, device=device) for name, array in arrays.items()}


def _advantages(rows: Sequence[Row], mask: NDArray[np.int64]) -> NDArray[np.float32]:
    """One advantage a row (B,), or one a token (B, C), 0 where masked."""
    per_row = np.array([row.advantage for row in rows], dtype=np.float32)
    if all(row.token_advantages is None and row.importance is None for row in rows):
        return per_row
    per_token = np.repeat(per_row[:, None], mask.shape[1], axis=1)
    for i, row in enumerate(rows):
        if row.token_advantages is not None:
            per_token[i, : len(row.completion)] = row.token_advantages
        if row.importance is not None:
            # Every surrogate is linear in the advantage, so a weight on it is one on the loss.
            per_token[i, : len(row.completion)] *= row.importance
    return np.where(mask, per_token, np.float32(0.0))


def _padded(
    values: Sequence[NDArray[np.generic]], width: int, fill: float, left: bool = False
) -> NDArray[np.generic]:
    out = np.full((len(values), width), fill, dtype=values[0].dtype)
    for i, value in enumerate(values):
        start = width - len(value) if left else 0
        out[i, start : start + len(value)] = value
    return out


def token_slots(shares: Sequence[Sequence[Row]], size: int) -> tuple[int, int]:
    """Tokens, and places for tokens, of all micro-batches of at most `size` rows.

    The share of padding is 1 - tokens / places.
    """
    pieces = [piece for share in shares for piece in microbatches(share, size)]
    places = sum(
        len(piece)
        * (max(len(row.prompt) for row in piece) + max(len(row.completion) for row in piece))
        for piece in pieces
    )
    tokens = sum(len(row.prompt) + row.tokens for piece in pieces for row in piece if row.counts)
    return tokens, places


def guard_reference(reference: Floats, old: Floats, limit: float) -> tuple[Floats, int]:
    """Reference log-probs held near the sampling policy's, and how many had to be.

    TRL's KL term is exp(x) - x - 1 with x = reference - policy and nothing to hold the exponential:
    one token that the reference finds far likelier than the policy can outweigh a mini-batch. So x
    is cut at `limit`, where the token still pulls the policy back, with a force of exp(limit) - 1.
    Below, where the force never exceeds 1, x is cut at -20. What is not a number counts as x = 0.
    """
    x = reference - old  # [C]
    held = np.clip(np.nan_to_num(x, nan=0.0, posinf=limit, neginf=_LOWEST), _LOWEST, limit)
    fits = (x >= _LOWEST) & (x <= limit)
    return np.where(fits, reference, old + held).astype(np.float32), int((~fits).sum())


def truncated_importance(old: Floats, sampled: Floats, cap: float) -> tuple[Floats, int]:
    """Weights min(p / q, cap) of tokens [C], and how many could not be told.

    p is the probability under the policy as it is trained, q that with which the engine sampled
    (truncated importance sampling, arXiv:2504.11914 and verl's `token_truncate`). Where either is
    not a number the weight is exactly 1.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        weight = np.minimum(np.exp(old - sampled), np.float32(cap))
    known = np.isfinite(old) & np.isfinite(sampled)
    return np.where(known, weight, np.float32(1.0)).astype(np.float32), int((~known).sum())


def shares(
    rows: Sequence[Row], size: int, seed: int, iteration: int, world: int, rank: int
) -> list[Share]:
    """This process's part of every mini-batch of an iteration."""
    return [
        Share.of(part, world, rank) for part in minibatches(rows, size, seed, iteration) if part
    ]


@dataclass(frozen=True)
class Share:
    """A process's part of a mini-batch, and what the whole of it counts.

    Attributes:
        rows: to train on, in `Row.order`, fillers included.
        tokens: of all processes' rows, trained on or not.
        count: number of those rows.
    """

    rows: list[Row]
    tokens: int
    count: int

    @classmethod
    def of(cls, minibatch: Sequence[Row], world: int, rank: int) -> Share:
        """Deal the rows that train; see `deal`."""
        trained = [row for row in minibatch if row.trains]
        return cls(
            rows=deal(trained, world, rank) if trained else [],
            tokens=sum(row.tokens for row in minibatch),
            count=sum(row.counts for row in minibatch),
        )
