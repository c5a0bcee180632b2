"""Scores, returns and the one way to normalise them within groups of rows.

All in float64. In float32 the mean of equal numbers is not that number, and the groups whose
numbers are all equal are those of a policy that is already good.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from milegpo_algo.data import BoolArray, FloatArray, IntArray, Rollouts, compact

NormKind: TypeAlias = Literal["mean_std", "mean"]

STD_EPSILON = 1e-6
ROUNDING = 16 * np.finfo(np.float64).eps
SUM_NOISE = 1e-12
"""What sums of rewards that are equal may differ by: 0.1 + 0.2 - 0.3 is not 0."""


@dataclass(frozen=True)
class Moments:
    """Centre and spread of the values of each group.

    Attributes:
        anchor: One member's value; the others are taken relative to it, so that equal values centre
            to exactly 0.  [G]
        offset: Mean minus anchor.  [G]
        std: Standard deviation; 0 for a group of one.  [G]
        size: Number of members.  [G]
        noise: Differences up to this are none.
    """

    anchor: FloatArray
    offset: FloatArray
    std: FloatArray
    size: IntArray
    noise: float

    @property
    def mean(self) -> FloatArray:
        """Mean of each group.  [G]."""
        return self.anchor + self.offset

    def centre(self, values: FloatArray, group: IntArray) -> FloatArray:
        """Subtract each value's group mean; what is only rounding noise is 0.  [N]."""
        anchor = self.anchor[group]
        deviation = (values - anchor) - self.offset[group]
        noise = ROUNDING * (np.abs(values) + np.abs(anchor))
        deviation[np.abs(deviation) <= np.maximum(noise, self.noise)] = 0.0
        return deviation

    def norm(self, values: FloatArray, group: IntArray, norm: NormKind) -> FloatArray:
        """(x - mean) / (std + 1e-6), or x - mean where `norm` is "mean".  [N]."""
        centred = self.centre(values, group)
        if norm == "mean":
            return centred
        return centred / (self.std + STD_EPSILON)[group]


def moments(
    values: FloatArray, group: IntArray, count: int, ddof: int = 1, noise: float = 0.0
) -> Moments:
    """Mean and standard deviation of each of `count` groups; `group` [N] names a row's.

    Sums of rewards come with `noise` = `SUM_NOISE`, so that which groups are constant, and which
    members are exactly average, does not hang on rounding.
    """
    size = np.bincount(group, minlength=count)
    anchor = np.zeros(count)
    anchor[group] = values
    total = np.bincount(group, values - anchor[group], minlength=count)
    offset = total / np.maximum(size, 1)
    found = Moments(anchor, offset, np.zeros(count), size, noise)
    squares = np.bincount(group, found.centre(values, group) ** 2, minlength=count)
    return Moments(anchor, offset, np.sqrt(squares / np.maximum(size - ddof, 1)), size, noise)


def normalise(
    values: FloatArray,
    group: IntArray,
    count: int,
    norm: NormKind,
    ddof: int = 1,
    noise: float = 0.0,
) -> FloatArray:
    """Norm(x) = (x - mean) / (std + 1e-6) within each group, or x - mean where `norm` is "mean".

    A group of one gives 0; a group whose values are equal gives exactly 0.  [N].
    """
    return moments(values, group, count, ddof, noise).norm(values, group, norm)


def state_groups(rollouts: Rollouts) -> tuple[IntArray, int]:
    """Group rows that left the same state of the same task.

    Two visits by one trajectory are two members.

    Returns:
        The group of each row [N] and the number of groups.
    """
    return rollouts.state, len(rollouts.states)


def penalties(rollouts: Rollouts, penalty: float) -> FloatArray:
    """`penalty` on each malformed row, else 0.  [N]."""
    return np.where(rollouts.valid, 0.0, penalty)


def discounted_returns(rollouts: Rollouts, gamma: float) -> FloatArray:
    """G_t = r_t + gamma * G_{t+1} over raw rewards, G = 0 after the last step.  [N]."""
    returns = np.empty(len(rollouts))
    rewards = rollouts.reward[rollouts.order]
    returns[rollouts.order] = discounted_sums(rewards, rollouts.start, gamma)
    return returns


def discounted_sums(values: FloatArray, start: IntArray, factor: float) -> FloatArray:
    """y_j = x_j + factor * y_{j+1} within each segment.

    Args:
        values: x, segment after segment.  [J]
        start: Where each segment begins, and J at the end; none is empty.  [M + 1]
        factor: The discount.
    """
    length = np.diff(start)
    last = start[1:][np.argsort(-length)] - 1
    longer = len(length) - np.cumsum(np.bincount(length))  # how many segments exceed 0, 1, ...
    sums = values.astype(np.float64)
    for back in range(1, len(longer) - 1):
        at = last[: longer[back]] - back
        sums[at] += factor * sums[at + 1]
    return sums


def trajectory_scores(rollouts: Rollouts, penalty: float) -> FloatArray:
    """Z_i = R_i - penalty * n_inv(i), one number per trajectory.  [M]."""
    malformed = np.bincount(
        rollouts.trajectory[~rollouts.valid], minlength=len(rollouts.trajectory_ids)
    )
    return rollouts.trajectory_return - penalty * malformed


def row_scores(rollouts: Rollouts, penalty: float) -> FloatArray:
    """Z_row = R_i, minus `penalty` where this very row is malformed.  [N]."""
    return rollouts.env_return - penalties(rollouts, penalty)


def tasks_with_spread(rollouts: Rollouts) -> BoolArray:
    """Tasks whose trajectories differ in raw return; dynamic sampling keeps those.  [T]."""
    returns, count = rollouts.trajectory_return, len(rollouts.tasks)
    return moments(returns, rollouts.trajectory_task, count, noise=SUM_NOISE).std > 0.0


def history_groups(rollouts: Rollouts, depth: int) -> list[tuple[IntArray, IntArray, int]]:
    """For k = 1 ... depth, group the rows of a task whose last k states are equal.

    Returns:
        Per depth: the rows with at least k states so far, their group, and the number of groups.
        Repeated suffixes within one trajectory are separate members.
    """
    state, count = state_groups(rollouts)
    previous = np.empty(len(rollouts), dtype=np.int64)
    previous[rollouts.order] = np.concatenate(([0], rollouts.order[:-1]))
    rows, groups = np.arange(len(rollouts)), [state]
    found = [(rows, state, count)]
    for k in range(1, depth):
        rows = np.flatnonzero(rollouts.step >= k)
        if len(rows) == 0:
            break
        longer = np.zeros(len(rollouts), dtype=np.int64)
        longer[rows], size = compact(groups[-1][previous[rows]] * count + state[rows])
        groups.append(longer)
        found.append((rows, longer[rows], size))
    return found
