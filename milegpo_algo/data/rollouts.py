"""Rollouts: the steps of one iteration as columns, checked once, in any row order.

An estimator reads nothing else. States are opaque strings, interned to integers; the state after
the last step of a successful trajectory is replaced by the one artificial goal of its task
(`GOAL`). Texts, token ids and log-probs stay with whoever collected them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np

from milegpo_algo.data import checks, parquet
from milegpo_algo.data.checks import BoolArray, FloatArray, RolloutError
from milegpo_algo.data.keys import IntArray

GOAL = -1
"""The value of `Rollouts.next_state` where a success ends: the goal node of the row's task."""

GOAL_NAME = "__SUCCESS__"
"""How the goal is shown to people."""

BLOCK = 1 << 15


@dataclass(frozen=True, eq=False)
class Rollouts:
    """N steps of M trajectories of T tasks, one value per step in the order the steps were given.

    Build one with `from_steps` or `from_columns`, which check the input; the arrays are read-only.

    Attributes:
        task: Index of the row's task in `tasks`.  [N]
        trajectory: Index of the row's trajectory in the per-trajectory columns.  [N]
        step: 0, 1, 2, ... within the trajectory.  [N]
        state: Index in `states` of the state the action was taken in.  [N]
        action: Index in `actions`.  [N]
        next_state: Index in `states` of the state after the action; `GOAL` where a success ends.
            [N]
        reward: Raw environment reward of the step, penalties not included.  [N]
        valid: False where the reply was malformed, so that estimators subtract their penalty.  [N]
        state_task: The task each entry of `states` belongs to.  [S]
        trajectory_task: Index of the trajectory's task.  [M]
        trajectory_success: The environment's own success flag.  [M]
        order: Rows sorted by (trajectory, step).  [N]
        start: Where each trajectory begins in `order`, and N at the end.  [M + 1]
        tasks: Task ids.
        trajectory_ids: Trajectory ids, unique within their task only.  [M]
        states: State ids, task by task: a state that occurs in two tasks has two entries.  [S]
        actions: Actions as text.
    """

    task: IntArray
    trajectory: IntArray
    step: IntArray
    state: IntArray
    action: IntArray
    next_state: IntArray
    reward: FloatArray
    valid: BoolArray
    state_task: IntArray
    trajectory_task: IntArray
    trajectory_success: BoolArray
    order: IntArray
    start: IntArray
    tasks: tuple[str, ...]
    trajectory_ids: tuple[str, ...]
    states: tuple[str, ...]
    actions: tuple[str, ...]

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __len__(self) -> int:
        return len(self.task)

    @classmethod
    def from_steps(cls, records: Iterable[Mapping[str, object]]) -> Rollouts:
        """Build from plain records, one per environment step, in any order.

        Every record has the keys of `COLUMNS`; further keys are ignored. `success` is the
        trajectory's, repeated on its rows; `next_state` may be None where a success ends. A
        trajectory id is unique within its task only.

        Raises:
            RolloutError: A key is missing, a value has the wrong type or is not finite, steps leave
                a gap or repeat, or success differs within a trajectory.
        """
        return cls.from_columns(**checks.transpose(records))

    @classmethod
    def from_columns(
        cls,
        *,
        task_id: Sequence[object],
        trajectory_id: Sequence[object],
        step: Sequence[object] | IntArray,
        state: Sequence[object],
        action: Sequence[object],
        next_state: Sequence[object],
        reward: Sequence[object] | FloatArray,
        valid: Sequence[object] | BoolArray,
        success: Sequence[object] | BoolArray,
    ) -> Rollouts:
        """Build from one sequence per key of `COLUMNS`; checks as in `from_steps`."""
        columns: dict[str, Sequence[object] | FloatArray | IntArray | BoolArray] = {
            "task_id": task_id,
            "trajectory_id": trajectory_id,
            "step": step,
            "state": state,
            "action": action,
            "next_state": next_state,
            "reward": reward,
            "valid": valid,
            "success": success,
        }
        checks.check_lengths(columns)
        tasks, task = checks.intern(checks.names(task_id, "task_id"))
        names = checks.names(trajectory_id, "trajectory_id")
        trajectories, (trajectory,), trajectory_task = checks.intern_within(task, names)
        steps = checks.integers(step, "step")
        order, start = checks.sorted_rows(trajectory, steps, len(trajectories))
        succeeded = checks.booleans(success, "success")
        last = order[start[1:] - 1]
        goal = np.zeros(len(task), dtype=np.bool_)
        goal[last] = succeeded[last]
        before = checks.names(state, "state")
        after = checks.next_names(next_state, before, goal)
        states, (here, there), state_task = checks.intern_within(task, before, after)
        actions, action_ids = checks.intern(checks.names(action, "action"))
        rollouts = cls(
            task=task,
            trajectory=trajectory,
            step=steps,
            state=here,
            action=action_ids,
            next_state=np.where(goal, GOAL, there),
            reward=checks.floats(reward, "reward"),
            valid=checks.booleans(valid, "valid"),
            state_task=state_task,
            trajectory_task=trajectory_task,
            trajectory_success=succeeded[last],
            order=order,
            start=start,
            tasks=tasks,
            trajectory_ids=trajectories,
            states=states,
            actions=actions,
        )
        _check_success(rollouts, succeeded)
        return rollouts

    @classmethod
    def from_parquet(cls, path: str | Path) -> Rollouts:
        """Load what `to_parquet` saved, or any Parquet file with the columns of `from_steps`."""
        return cls.from_columns(**parquet.read(path))

    def to_parquet(self, path: str | Path) -> None:
        """Save the steps in their order, one column per key of `from_steps`."""
        parquet.write(
            path,
            names={
                "task_id": (self.tasks, self.task),
                "trajectory_id": (self.trajectory_ids, self.trajectory),
                "state": (self.states, self.state),
                "action": (self.actions, self.action),
                "next_state": (self.states, self.next_state),
            },
            numbers={
                "step": self.step,
                "reward": self.reward,
                "valid": self.valid,
                "success": self.success,
            },
        )

    def blocks(self, rows: int = BLOCK) -> Iterator[tuple[IntArray, Rollouts]]:
        """Split into groups of whole tasks of about `rows` steps, so that work stays in cache.

        Yields:
            The rows of a block, and the block as rollouts of its own.
        """
        sizes = np.bincount(self.task, minlength=len(self.tasks))
        begun = np.cumsum(sizes) - sizes
        _, first = np.unique(begun // rows, return_index=True)
        bounds = [*first.tolist(), len(self.tasks)]
        if len(bounds) == 2:
            yield np.arange(len(self)), self
            return
        for begin, end in pairwise(bounds):
            yield self.slice_tasks(begin, end)

    def slice_tasks(self, begin: int, end: int) -> tuple[IntArray, Rollouts]:
        """The rows of tasks begin ... end - 1, sorted by (trajectory, step), on their own."""
        m, n = np.searchsorted(self.trajectory_task, (begin, end)).tolist()
        s, e = np.searchsorted(self.state_task, (begin, end)).tolist()
        rows = self.order[self.start[m] : self.start[n]]
        run = np.arange(rows[0], rows[0] + len(rows))
        at = slice(run[0], run[0] + len(run)) if np.array_equal(rows, run) else rows
        after = self.next_state[at]
        part = Rollouts(
            task=self.task[at] - begin,
            trajectory=self.trajectory[at] - m,
            step=self.step[at],
            state=self.state[at] - s,
            action=self.action[at],
            next_state=np.where(after == GOAL, GOAL, after - s),
            reward=self.reward[at],
            valid=self.valid[at],
            state_task=self.state_task[s:e] - begin,
            trajectory_task=self.trajectory_task[m:n] - begin,
            trajectory_success=self.trajectory_success[m:n],
            order=run - run[0],
            start=self.start[m : n + 1] - self.start[m],
            tasks=self.tasks[begin:end],
            trajectory_ids=self.trajectory_ids[m:n],
            states=self.states[s:e],
            actions=self.actions,
        )
        return rows, part

    @cached_property
    def success(self) -> BoolArray:
        """The trajectory's success on each of its rows.  [N]."""
        return self.trajectory_success[self.trajectory]

    @cached_property
    def trajectory_length(self) -> IntArray:
        """Number of steps.  [M]."""
        return np.diff(self.start)

    @cached_property
    def trajectory_return(self) -> FloatArray:
        """R_i: the undiscounted sum of raw rewards.  [M]."""
        rewards = self.reward[self.order]
        return np.add.reduceat(rewards, self.start[:-1])

    @cached_property
    def env_return(self) -> FloatArray:
        """R_i on each row of its trajectory.  [N]."""
        return self.trajectory_return[self.trajectory]

    @cached_property
    def last(self) -> IntArray:
        """The row of each trajectory's last step.  [M]."""
        return self.order[self.start[1:] - 1]

    def require_one_start(self) -> None:
        """Check that all trajectories of a task begin in the same state.

        Raises:
            RolloutError: Two do not; the text names their rows.
        """
        first = self.order[self.start[:-1]]
        example = np.empty(len(self.tasks), dtype=np.int64)
        example[self.trajectory_task] = first
        expected = example[self.trajectory_task]
        other = np.flatnonzero(self.state[first] != self.state[expected])
        if len(other) == 0:
            return
        told = " and ".join(
            f"{self.describe(row)} in {self.states[self.state[row]]!r}"
            for row in sorted((int(first[other[0]]), int(expected[other[0]])))
        )
        raise RolloutError(
            f"'state' differs at the start of one task: {told}; give trajectories with other"
            " starts other task ids, or set one_start=False"
        )

    def describe(self, row: int) -> str:
        """Name a row in an error or a report."""
        task, name = self.tasks[self.task[row]], self.trajectory_ids[self.trajectory[row]]
        return f"row {row} (task {task!r}, trajectory {name!r}, step {self.step[row]})"


def _check_success(rollouts: Rollouts, success: BoolArray) -> None:
    differs = np.flatnonzero(success != rollouts.success)
    if len(differs) == 0:
        return
    row = int(differs[0])
    where = rollouts.describe(row)
    last = int(rollouts.last[rollouts.trajectory[row]])
    if success[row]:
        raise RolloutError(
            f"{where}: 'success' is True, but the trajectory's last step, row {last}, is not a"
            " success: a success needs its last step, and every row repeats the trajectory's flag"
        )
    raise RolloutError(
        f"{where}: 'success' is False, but the trajectory succeeds at row {last};"
        " every row repeats the trajectory's flag"
    )
