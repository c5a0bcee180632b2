"""Which tasks an iteration plays: a pure function of (tasks, seed, iteration).

The epochs' permutations are laid end to end and cut into iterations, so no task is dropped at an
epoch's end, a list shorter than an iteration works, and a resumed run needs no state to continue
with the right tasks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class TaskSchedule:
    """Draws `per_iteration` tasks for each iteration.

    Attributes:
        task_ids: the tasks, each once an epoch.
        per_iteration: tasks an iteration.
        seed: names the permutations.
        shuffle: False keeps the given order in every epoch.
    """

    task_ids: Sequence[str]
    per_iteration: int
    seed: int
    shuffle: bool = True

    def __post_init__(self) -> None:
        if not self.task_ids:
            raise ValueError("No training tasks. Give at least one task id.")

    @property
    def iterations_per_epoch(self) -> int:
        """Iterations until every task has been played at least once."""
        return math.ceil(len(self.task_ids) / self.per_iteration)

    def tasks(self, iteration: int) -> list[str]:
        """Tasks of an iteration, counted from 0; one can occur twice where two epochs meet."""
        return self.take(iteration * self.per_iteration, self.per_iteration)

    def take(self, position: int, count: int) -> list[str]:
        """So many tasks from a position on in the epochs laid end to end."""
        return [self._at(at) for at in range(position, position + count)]

    def _at(self, position: int) -> str:
        epoch, place = divmod(position, len(self.task_ids))
        return self.task_ids[self._order(epoch)[place]]

    def _order(self, epoch: int) -> Sequence[int]:
        if not self.shuffle:
            return range(len(self.task_ids))
        order: list[int] = (
            np.random.default_rng((self.seed, epoch)).permutation(len(self.task_ids)).tolist()
        )
        return order
