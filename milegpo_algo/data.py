"""Rollouts: the steps of one iteration as columns, checked once, in any row order.

An estimator reads nothing else. States are opaque strings, interned to integers; the state after
the last step of a successful trajectory is replaced by the one artificial goal of its task
(`GOAL`). Texts, token ids and log-probs stay with whoever collected them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]

GOAL = -1
"""The value of `Rollouts.next_state` where a success ends: the goal node of the row's task."""

GOAL_NAME = "__SUCCESS__"
"""How the goal is shown to people."""

COLUMNS = (
    "task_id",
    "trajectory_id",
    "step",
    "state",
    "action",
    "next_state",
    "reward",
    "valid",
    "success",
)


class RolloutError(ValueError):
    """Rollouts that no estimator could read; the text names the row and the field."""


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
        trajectory_task: Index of the trajectory's task.  [M]
        trajectory_success: The environment's own success flag.  [M]
        order: Rows sorted by (trajectory, step).  [N]
        start: Where each trajectory begins in `order`, and N at the end.  [M + 1]
        tasks: Task ids.
        trajectory_ids: Trajectory ids, unique within their task only.  [M]
        states: State ids.
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
        rows = list(records)
        return cls.from_columns(**{name: _column(rows, name) for name in COLUMNS})

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
        lengths = {
            "task_id": len(task_id),
            "trajectory_id": len(trajectory_id),
            "step": len(step),
            "state": len(state),
            "action": len(action),
            "next_state": len(next_state),
            "reward": len(reward),
            "valid": len(valid),
            "success": len(success),
        }
        _check_lengths(lengths)
        tasks, task = _intern(_names(task_id, "task_id"))
        names, name = _intern(_names(trajectory_id, "trajectory_id"))
        key, trajectory = np.unique(task * len(names) + name, return_inverse=True)
        steps = _integers(step, "step")
        order, start = _sorted_rows(trajectory, steps, len(key))
        goal = np.zeros(len(task), dtype=np.bool_)
        succeeded = _booleans(success, "success")
        last = order[start[1:] - 1]
        goal[last] = succeeded[last]
        states, ids = _intern_states(_names(state, "state"), next_state, goal)
        actions, action_ids = _intern(_names(action, "action"))
        rollouts = cls(
            task=task,
            trajectory=trajectory,
            step=steps,
            state=ids[: len(task)],
            action=action_ids,
            next_state=ids[len(task) :],
            reward=_floats(reward, "reward"),
            valid=_booleans(valid, "valid"),
            trajectory_task=key // len(names),
            trajectory_success=succeeded[last],
            order=order,
            start=start,
            tasks=tasks,
            trajectory_ids=tuple(names[i] for i in (key % len(names)).tolist()),
            states=states,
            actions=actions,
        )
        _check_success(rollouts, succeeded)
        return rollouts

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
        task, state = self.trajectory_task, self.state[first]
        pattern = np.empty(len(self.tasks), dtype=np.int64)
        pattern[task] = np.arange(len(first))
        other = np.flatnonzero(state != state[pattern[task]])
        if len(other):
            one, two = (self.describe(int(first[i])) for i in (other[0], pattern[task[other[0]]]))
            raise RolloutError(
                f"'state' differs at the start of one task: {one} begins in"
                f" {self.states[state[other[0]]]!r}, {two} in"
                f" {self.states[state[pattern[task[other[0]]]]]!r}; give trajectories with other"
                " starts other task ids, or set one_start=False"
            )

    def describe(self, row: int) -> str:
        """Name a row in an error or a report."""
        task, name = self.tasks[self.task[row]], self.trajectory_ids[self.trajectory[row]]
        return f"row {row} (task {task!r}, trajectory {name!r}, step {self.step[row]})"


def _column(rows: Sequence[Mapping[str, object]], name: str) -> list[object]:
    try:
        return [row[name] for row in rows]
    except KeyError:
        at = next(i for i, row in enumerate(rows) if name not in row)
        close = get_close_matches(name, [key for key in rows[at] if key not in COLUMNS], 1, 0.5)
        hint = f" (it has {close[0]!r})" if close else ""
        needed = ", ".join(COLUMNS)
        raise RolloutError(f"row {at} has no {name!r}{hint}; a step needs {needed}") from None


def _check_lengths(lengths: Mapping[str, int]) -> None:
    if lengths["task_id"] == 0:
        raise RolloutError("no steps: column 'task_id' is empty")
    for name, length in lengths.items():
        if length != lengths["task_id"]:
            raise RolloutError(
                f"column {name!r} has {length} values, 'task_id' has {lengths['task_id']}"
            )


def _names(values: Sequence[object], name: str) -> Sequence[str]:
    """Check strings; a task or trajectory may also be numbered."""
    if set(map(type, values)) <= {str}:
        return cast(Sequence[str], values)
    numbered = (int, np.integer) if name in ("task_id", "trajectory_id") else ()
    for row, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, (str, *numbered)):
            raise RolloutError(f"row {row}: {name!r} is {value!r}, not a string")
    return [str(value) for value in values]


def _intern(values: Sequence[str]) -> tuple[tuple[str, ...], IntArray]:
    """Number strings by first appearance."""
    table: dict[str, int] = {}
    ids = [table.setdefault(value, len(table)) for value in values]
    return tuple(table), np.array(ids, dtype=np.int64)


def _intern_states(
    state: Sequence[str], next_state: Sequence[object], goal: BoolArray
) -> tuple[tuple[str, ...], IntArray]:
    """Intern both state columns in one table; rows that reach the goal leave no state behind."""
    after = list(next_state)
    for row in np.flatnonzero(goal).tolist():
        after[row] = state[row]
    states, ids = _intern([*state, *_names(after, "next_state")])
    ids[len(state) :][goal] = GOAL
    return states, ids


def _integers(values: Sequence[object] | IntArray, name: str) -> IntArray:
    array = _array(values)
    if array.ndim == 1 and array.dtype.kind in "iu":
        return array.astype(np.int64)
    for row, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise RolloutError(f"row {row}: {name!r} is {value!r}, not an integer")
    raise RolloutError(f"column {name!r} does not hold one integer per row")


def _booleans(values: Sequence[object] | BoolArray, name: str) -> BoolArray:
    array = _array(values)
    if array.ndim == 1 and array.dtype.kind == "b":
        return array.astype(np.bool_)
    for row, value in enumerate(values):
        if not isinstance(value, (bool, np.bool_)):
            raise RolloutError(f"row {row}: {name!r} is {value!r}, not True or False")
    raise RolloutError(f"column {name!r} does not hold one truth value per row")


def _floats(values: Sequence[object] | FloatArray, name: str) -> FloatArray:
    array = _array(values)
    if array.ndim != 1 or array.dtype.kind not in "iuf":
        for row, value in enumerate(values):
            if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
                raise RolloutError(f"row {row}: {name!r} is {value!r}, not a number")
        raise RolloutError(f"column {name!r} does not hold one number per row")
    numbers = array.astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(numbers))
    if len(bad):
        raise RolloutError(f"row {bad[0]}: {name!r} is {numbers[bad[0]]}, not a finite number")
    return numbers


def _array(values: Sequence[object] | NDArray[np.generic]) -> NDArray[np.generic]:
    """Make an array of the values, of dtype object where they do not fit one type."""
    try:
        return np.asarray(values)
    except (ValueError, OverflowError):
        return np.empty(0, dtype=object)


def _sorted_rows(trajectory: IntArray, step: IntArray, count: int) -> tuple[IntArray, IntArray]:
    """Sort rows by (trajectory, step) and check that each trajectory's steps are 0, 1, 2, ..."""
    order = np.lexsort((step, trajectory))
    start = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(trajectory, minlength=count), out=start[1:])
    expected = np.arange(len(step)) - start[trajectory[order]]
    wrong = np.flatnonzero(step[order] != expected)
    if len(wrong) == 0:
        return order, start
    at = wrong[0]
    row, found, wanted = order[at], step[order[at]], expected[at]
    if found < wanted:
        if found < 0:
            raise RolloutError(f"row {row}: 'step' is {found}; steps count from 0")
        rows = sorted((int(order[at - 1]), int(row)))
        raise RolloutError(
            f"rows {rows[0]} and {rows[1]} are both step {found} of one trajectory;"
            " 'trajectory_id' must be unique within its task"
        )
    raise RolloutError(
        f"row {row}: 'step' is {found}, but step {wanted} of its trajectory is missing;"
        " steps run 0, 1, 2, ... without gaps"
    )


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
