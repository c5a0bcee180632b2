"""Turn what a caller gives into typed columns, or say which row and field is wrong."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from itertools import count, islice
from operator import itemgetter
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from milegpo_algo.data.keys import IntArray, compact

FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]

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
CHUNK = 4096


class RolloutError(ValueError):
    """Rollouts that no estimator could read; the text names the row and the field."""


_STEP = f"a step needs {', '.join(COLUMNS)}"


def transpose(records: Iterable[Mapping[str, object]]) -> dict[str, list[object]]:
    """Gather the values of `COLUMNS`; a record that lacks one is named."""
    columns: dict[str, list[object]] = {name: [] for name in COLUMNS}
    if isinstance(records, str | bytes | Mapping) or not isinstance(records, Iterable):
        raise RolloutError(f"a {type(records).__name__}, where a list of steps is wanted: {_STEP}")
    remaining, before = iter(records), 0
    while chunk := list(islice(remaining, CHUNK)):  # in cache while its nine values are read
        try:
            for name, column in columns.items():
                column.extend(map(itemgetter(name), chunk))
        except (KeyError, TypeError):
            raise RolloutError(_missing(chunk, before)) from None
        before += len(chunk)
    return columns


def _missing(chunk: Sequence[Mapping[str, object]], before: int) -> str:
    for at, row in enumerate(cast("Sequence[object]", chunk)):
        if not isinstance(row, Mapping):
            return f"row {before + at} is a {type(row).__name__}: {_STEP}"
    at, name = next(
        (at, name) for at, row in enumerate(chunk) for name in COLUMNS if name not in row
    )
    close = get_close_matches(name, [key for key in chunk[at] if key not in COLUMNS], 1, 0.5)
    hint = f" (it has {close[0]!r})" if close else ""
    return f"row {before + at} has no {name!r}{hint}; {_STEP}"


def check_lengths(columns: Mapping[str, Sequence[object] | NDArray[np.generic]]) -> None:
    """Check that there are steps, and as many values in every column."""
    rows = len(columns["task_id"])
    if rows == 0:
        raise RolloutError("no steps: column 'task_id' is empty")
    for name, column in columns.items():
        if len(column) != rows:
            raise RolloutError(f"column {name!r} has {len(column)} values, 'task_id' has {rows}")


def names(values: Sequence[object], name: str) -> Sequence[str]:
    """Check strings; a task or trajectory may also be numbered."""
    if set(map(type, values)) <= {str}:
        return cast(Sequence[str], values)
    numbered = (int, np.integer) if name in ("task_id", "trajectory_id") else ()
    for row, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, (str, *numbered)):
            raise RolloutError(f"row {row}: {name!r} is {value!r}, not a string")
    return [str(value) for value in values]


def intern(values: Sequence[str]) -> tuple[tuple[str, ...], IntArray]:
    """Number strings by first appearance."""
    table = defaultdict[str, int](count().__next__)
    ids = np.fromiter(map(table.__getitem__, values), np.int64, len(values))
    return tuple(table), ids


def next_names(values: Sequence[object], before: Sequence[str], goal: BoolArray) -> Sequence[str]:
    """Check the states after the steps; where a success ends, none is read and none is added."""
    after = list(values)
    for row in np.flatnonzero(goal).tolist():
        after[row] = before[row]
    return names(after, "next_state")


def intern_within(
    task: IntArray, *columns: Sequence[str]
) -> tuple[tuple[str, ...], list[IntArray], IntArray]:
    """Number (task, name) pairs, task after task.

    Args:
        task: The task of each row.  [N]
        *columns: Names, unique within their task only, that share one numbering.  [N] each

    Returns:
        The distinct names [S], the numbers in each column [N], the task of each distinct name [S].
    """
    table = defaultdict[str, int](count().__next__)
    found = np.empty((len(columns), len(task)), dtype=np.int64)
    for at, names in enumerate(columns):
        found[at] = np.fromiter(map(table.__getitem__, names), np.int64, len(names))
    names, keys = tuple(table), (found + task * len(table)).ravel()
    ids, size = compact(keys)
    distinct = np.empty(size, dtype=np.int64)
    distinct[ids] = keys
    owner, name = np.divmod(distinct, len(names))
    return tuple(names[at] for at in name.tolist()), list(ids.reshape(found.shape)), owner


def integers(values: Sequence[object] | IntArray, name: str) -> IntArray:
    """Check integers.  [N]."""
    array = _array(values)
    if array.ndim == 1 and array.dtype.kind in "iu":
        return array.astype(np.int64)
    for row, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise RolloutError(f"row {row}: {name!r} is {value!r}, not an integer")
    raise RolloutError(f"column {name!r} does not hold one integer per row")


def booleans(values: Sequence[object] | BoolArray, name: str) -> BoolArray:
    """Check truth values.  [N]."""
    array = _array(values)
    if array.ndim == 1 and array.dtype.kind == "b":
        return array.astype(np.bool_)
    for row, value in enumerate(values):
        if not isinstance(value, (bool, np.bool_)):
            raise RolloutError(f"row {row}: {name!r} is {value!r}, not True or False")
    raise RolloutError(f"column {name!r} does not hold one truth value per row")


def floats(values: Sequence[object] | FloatArray, name: str) -> FloatArray:
    """Check finite numbers.  [N]."""
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


def sorted_rows(trajectory: IntArray, step: IntArray, count: int) -> tuple[IntArray, IntArray]:
    """Sort rows by (trajectory, step) and check that each trajectory's steps are 0, 1, 2, ..."""
    start = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(trajectory, minlength=count), out=start[1:])
    order = np.full(len(step), -1, dtype=np.int64)
    if ((step >= 0) & (step < np.diff(start)[trajectory])).all():
        order[start[trajectory] + step] = np.arange(len(step))
    if (order < 0).any():
        raise RolloutError(_wrong_step(trajectory, step, start))
    return order, start


def _wrong_step(trajectory: IntArray, step: IntArray, start: IntArray) -> str:
    order = np.lexsort((step, trajectory))
    expected = np.arange(len(step)) - start[trajectory[order]]
    at = np.flatnonzero(step[order] != expected)[0]
    row, found, wanted = order[at], step[order[at]], expected[at]
    if found > wanted:
        return (
            f"row {row}: 'step' is {found}, but step {wanted} of its trajectory is missing;"
            " steps run 0, 1, 2, ... without gaps"
        )
    if found < 0:
        return f"row {row}: 'step' is {found}; steps count from 0"
    one, two = sorted((int(order[at - 1]), int(row)))
    return (
        f"rows {one} and {two} are both step {found} of one trajectory;"
        " 'trajectory_id' must be unique within its task"
    )
