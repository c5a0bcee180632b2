"""ProGPO: HGPO's comparison among peers, plus a step's progress in an estimated potential."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from milegpo_algo.data import FloatArray, IntArray, Rollouts
from milegpo_algo.estimator import Json, SettingError, StepEstimator, register, setting
from milegpo_algo.returns import (
    Moments,
    discounted_returns,
    history_groups,
    moments,
    normalise,
    penalties,
)

VARIANCE_EPSILON = 1e-3
WEIGHT_EPSILON = 1e-6
PEER_EPSILON = 1e-6


@register("progpo")
@dataclass(frozen=True, kw_only=True)
class ProGPO(StepEstimator):
    """A = A^h + transition_weight * eta * A^tr, one value per step.

    Peers: A^h = sum_k w_k a_k / (sum_k w_k + 1e-6), w_k = (k+1)^alpha, over the depths k = 1 ...
    history_length + 1; a_k = Norm(G) with ddof = 0 among the rows of a task whose last k states
    are equal; G_t = r_t + gamma G_{t+1}, minus the penalty of a malformed row. Groups of one or
    of zero spread are left out; an a_k of exactly 0 in another group counts.

    Transition: A^tr_t = V(t+1) - V(t), 0 on a trajectory's last step and where either has no V.
    V(t) is the average over depths with n_k >= 2 of the mean G of the row's group, weighted by
    n_k / (var_k + 1e-3). eta is `eta` where |A^h| > 1e-6, else `eta_alone`: a step without peers
    lives on its progress.

    Semantic expansion: with `embeddings`, a depth-1 group of fewer than `small_group` rows gains
    one member, the softmax-weighted mean G of the `neighbours` nearest states of the task by
    cosine. The peer term does not use it.

    No episode term. The conventions agree on everything here.
    """

    norm: Literal["mean_std", "mean"] = setting("mean_std", choices=("mean_std", "mean"))
    gamma: float = setting(0.95, at_least=0.0)
    history_length: int = setting(2, at_least=0)
    alpha: float = setting(1.0)
    transition_weight: float = setting(0.5)
    eta: float = setting(0.3)
    eta_alone: float = setting(1.0)
    embeddings: Mapping[str, Sequence[float] | FloatArray] | None = None
    neighbours: int = setting(5, at_least=1)
    small_group: int = setting(3, at_least=1)
    temperature: float = setting(1.0, above=0.0)

    def __call__(self, rollouts: Rollouts) -> FloatArray:
        """One advantage per step.  [N]."""
        peer = self.peer(rollouts)
        eta = np.where(np.abs(peer) > PEER_EPSILON, self.eta, self.eta_alone)
        return peer + self.transition_weight * eta * self.transition(rollouts)

    def settings(self) -> dict[str, Json]:
        """Every setting; of the embeddings only how many there are."""
        count = None if self.embeddings is None else f"{len(self.embeddings)} states"
        return {**super().settings(), "embeddings": count}

    def peer(self, rollouts: Rollouts) -> FloatArray:
        """A^h.  [N]."""
        returns = self._returns(rollouts)
        total, weights = np.zeros(len(rollouts)), np.zeros(len(rollouts))
        groups = history_groups(rollouts, self.history_length + 1)
        for k, (rows, group, count) in enumerate(groups, start=1):
            weight = float(k + 1) ** self.alpha
            spread = moments(returns[rows], group, count, ddof=0).std > 0.0
            item = normalise(returns[rows], group, count, self.norm, ddof=0)
            total[rows] += weight * item
            weights[rows] += np.where(spread[group], weight, 0.0)
        return total / (weights + WEIGHT_EPSILON)

    def transition(self, rollouts: Rollouts) -> FloatArray:
        """A^tr.  [N]."""
        potential = self.potential(rollouts)
        change = np.zeros(len(rollouts))
        before, after = rollouts.order[:-1], rollouts.order[1:]
        inside = rollouts.trajectory[before] == rollouts.trajectory[after]
        change[before[inside]] = (potential[after] - potential[before])[inside]
        return np.where(np.isnan(change), 0.0, change)

    def potential(self, rollouts: Rollouts) -> FloatArray:
        """V, NaN where a row has none.  [N]."""
        returns = self._returns(rollouts)
        total, weights = np.zeros(len(rollouts)), np.zeros(len(rollouts))
        groups = history_groups(rollouts, self.history_length + 1)
        for k, (rows, group, count) in enumerate(groups, start=1):
            found = moments(returns[rows], group, count, ddof=0)
            if k == 1 and self.embeddings is not None:
                found = self._borrow(found, rollouts, group)
            trust = np.where(found.size >= 2, found.size / (found.std**2 + VARIANCE_EPSILON), 0.0)
            total[rows] += (trust * found.mean)[group]
            weights[rows] += trust[group]
        return np.where(weights > 0.0, total / np.where(weights > 0.0, weights, 1.0), np.nan)

    def _returns(self, rollouts: Rollouts) -> FloatArray:
        return discounted_returns(rollouts, self.gamma) - penalties(rollouts, self.penalty)

    def _borrow(self, found: Moments, rollouts: Rollouts, group: IntArray) -> Moments:
        """Add to each small depth-1 group one member made of its nearest states' means."""
        count = len(found.size)
        state, task = np.empty((2, count), dtype=np.int64)
        state[group], task[group] = rollouts.state, rollouts.task
        vectors = self._unit_vectors([rollouts.states[i] for i in state.tolist()])
        extra, size = np.zeros(count), found.size.copy()
        for small in np.flatnonzero(found.size < self.small_group).tolist():
            others = np.flatnonzero(task == task[small])
            others = others[others != small]
            if len(others) == 0:
                continue
            cosine = vectors[others] @ vectors[small]
            nearest = np.lexsort((found.mean[others], -cosine))[: self.neighbours]
            weight = np.exp((cosine[nearest] - cosine.max()) / self.temperature)
            extra[small] = weight @ found.mean[others[nearest]] / weight.sum()
            size[small] += 1
        return _with_member(found, extra, size)

    def _unit_vectors(self, names: Sequence[str]) -> FloatArray:
        given = self.embeddings or {}
        for name in names:
            if name not in given:
                raise SettingError(f"embeddings: none for state {name!r}")
        vectors = np.array([given[name] for name in names], dtype=np.float64)
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / np.where(length > 0.0, length, 1.0)


def _with_member(found: Moments, extra: FloatArray, size: IntArray) -> Moments:
    """Moments (ddof = 0) after `extra` joins the groups whose size grew by one."""
    grew = size > found.size
    n = found.size.astype(np.float64)
    gap = np.where(grew, extra - found.mean, 0.0)
    variance = (n * found.std**2 + gap**2 * n / (n + 1.0)) / np.where(grew, n + 1.0, n)
    return replace(found, offset=found.offset + gap / (n + 1.0), std=np.sqrt(variance), size=size)
