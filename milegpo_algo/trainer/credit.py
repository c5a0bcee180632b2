"""From episodes and their credit to rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from milegpo_algo.batch import Row
from milegpo_algo.rollout.collect import Episode
from milegpo_algo.trainer.sampling import degenerate


def rows_of(episodes: Sequence[Episode], advantages: NDArray[np.float64]) -> list[Row]:
    """One row per step, in the order of episodes and steps, with its own advantage [N]."""
    steps = [step for episode in episodes for step in episode.steps]
    return [
        Row(
            prompt=np.array(step.prompt_ids, dtype=np.int64),
            completion=np.array(step.completion_ids, dtype=np.int64),
            sampled_logprobs=None
            if step.logprobs is None
            else np.array(step.logprobs, dtype=np.float32),
            advantage=float(advantage),
            images=step.images,
        )
        for step, advantage in zip(steps, advantages, strict=True)
    ]


def with_token_credit(
    rows: Sequence[Row],
    advantages: Sequence[NDArray[np.float64]],
    returns: Sequence[NDArray[np.float64]],
    values: Sequence[NDArray[np.float64]],
) -> list[Row]:
    """Rows with credit for each token, and what the critic is fitted to; an empty reply has none.

    A row's own `advantage` is the mean, for the record.
    """
    done = []
    for row, *columns in zip(rows, advantages, returns, values, strict=True):
        credit, target, value = (
            column[: len(row.completion)].astype(np.float32) for column in columns
        )
        done.append(
            replace(
                row,
                advantage=float(credit.mean()) if len(credit) else 0.0,
                token_advantages=credit,
                returns=target,
                values=value,
            )
        )
    return done


def without_degenerate(rows: list[Row], episodes: Sequence[Episode], size: int) -> list[Row]:
    """Rows of groups with equal returns do not train, unless they have an advantage."""
    equal = [
        degenerate(episodes[at : at + size])
        for at in range(0, len(episodes), size)
        for _ in range(size)
    ]
    flags = [alike for episode, alike in zip(episodes, equal, strict=True) for _ in episode.steps]
    return [
        replace(row, trains=not (alike and row.advantage == 0.0))
        for row, alike in zip(rows, flags, strict=True)
    ]
