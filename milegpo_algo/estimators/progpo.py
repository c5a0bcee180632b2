"""ProGPO: HGPO's comparison among peers, plus a step's progress in an estimated potential."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from milegpo_algo.data import BoolArray, FloatArray, IntArray, Rollouts
from milegpo_algo.estimator import Json, SettingError, StepEstimator, register, setting
from milegpo_algo.returns import (
    SUM_NOISE,
    Moments,
    discounted_returns,
    history_groups,
    moments,
    penalties,
)

VARIANCE_EPSILON = 1e-3
WEIGHT_EPSILON = 1e-6
PEER_EPSILON = 1e-6


@dataclass(frozen=True, eq=False)
class _Depth:
    """The rows with k states so far, the group of each, their G, and the groups' moments."""

    rows: IntArray
    group: IntArray
    returns: FloatArray
    found: Moments


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

    def compute(self, rollouts: Rollouts) -> FloatArray:
        """One advantage per step.  [N]."""
        depths = self._depths(rollouts)
        peer = self._peer(depths)
        eta = np.where(np.abs(peer) > PEER_EPSILON, self.eta, self.eta_alone)
        transition = self._transition(rollouts, self._potential(rollouts, depths))
        return peer + self.transition_weight * eta * transition

    def settings(self) -> dict[str, Json]:
        """Every setting; of the embeddings only how many there are."""
        count = None if self.embeddings is None else f"{len(self.embeddings)} states"
        return {**super().settings(), "embeddings": count}

    def peer(self, rollouts: Rollouts) -> FloatArray:
        """A^h.  [N]."""
        return self._peer(self._depths(rollouts))

    def potential(self, rollouts: Rollouts) -> FloatArray:
        """V, NaN where a row has none.  [N]."""
        return self._potential(rollouts, self._depths(rollouts))

    def transition(self, rollouts: Rollouts) -> FloatArray:
        """A^tr.  [N]."""
        return self._transition(rollouts, self.potential(rollouts))

    def _depths(self, rollouts: Rollouts) -> list[_Depth]:
        returns = discounted_returns(rollouts, self.gamma) - penalties(rollouts, self.penalty)
        groups = history_groups(rollouts, self.history_length + 1)
        return [
            _Depth(rows, group, returns[rows], moments(returns[rows], group, count, 0, SUM_NOISE))
            for rows, group, count in groups
        ]

    def _peer(self, depths: Sequence[_Depth]) -> FloatArray:
        total, weights = np.zeros((2, len(depths[0].rows)))
        for k, depth in enumerate(depths, start=1):
            weight = float(k + 1) ** self.alpha
            item = depth.found.norm(depth.returns, depth.group, self.norm)
            total[depth.rows] += weight * item
            weights[depth.rows] += np.where(depth.found.std > 0.0, weight, 0.0)[depth.group]
        return total / (weights + WEIGHT_EPSILON)

    def _potential(self, rollouts: Rollouts, depths: Sequence[_Depth]) -> FloatArray:
        total, weights = np.zeros((2, len(rollouts)))
        for k, depth in enumerate(depths, start=1):
            found = depth.found
            if k == 1 and self.embeddings is not None:
                found = self._borrow(found, rollouts)
            trust = np.where(found.size >= 2, found.size / (found.std**2 + VARIANCE_EPSILON), 0.0)
            total[depth.rows] += (trust * found.mean)[depth.group]
            weights[depth.rows] += trust[depth.group]
        return np.where(weights > 0.0, total / np.where(weights > 0.0, weights, 1.0), np.nan)

    def _transition(self, rollouts: Rollouts, potential: FloatArray) -> FloatArray:
        change = np.zeros(len(rollouts))
        before, after = rollouts.order[:-1], rollouts.order[1:]
        inside = rollouts.trajectory[before] == rollouts.trajectory[after]
        change[before[inside]] = (potential[after] - potential[before])[inside]
        return np.where(np.isnan(change), 0.0, change)

    def _borrow(self, found: Moments, rollouts: Rollouts) -> Moments:
        """Add to each small depth-1 group one member made of its nearest states' means."""
        visited = found.size > 0
        vectors = self._unit_vectors(rollouts.states, visited)
        extra, size = np.zeros(len(visited)), found.size.copy()
        bounds = np.flatnonzero(np.diff(rollouts.state_task)) + 1
        for states in np.split(np.arange(len(visited)), bounds):  # task by task
            known = states[visited[states]]
            if len(known) < 2:
                continue
            for small in known[found.size[known] < self.small_group].tolist():
                others = known[known != small]
                cosine = vectors[others] @ vectors[small]
                nearest = np.lexsort((found.mean[others], -cosine))[: self.neighbours]
                weight = np.exp((cosine[nearest] - cosine.max()) / self.temperature)
                extra[small] = weight @ found.mean[others[nearest]] / weight.sum()
                size[small] += 1
        return _with_member(found, extra, size)

    def _unit_vectors(self, states: Sequence[str], visited: BoolArray) -> FloatArray:
        given = self.embeddings or {}
        needed = [states[at] for at in np.flatnonzero(visited).tolist()]
        for name in needed:
            if name not in given:
                raise SettingError(f"embeddings: none for state {name!r}")
        found = np.array([given[name] for name in needed], dtype=np.float64)
        length = np.linalg.norm(found, axis=1, keepdims=True)
        vectors = np.zeros((len(states), found.shape[1]))
        vectors[visited] = found / np.where(length > 0.0, length, 1.0)
        return vectors


def _with_member(found: Moments, extra: FloatArray, size: IntArray) -> Moments:
    """Moments (ddof = 0) after `extra` joins the groups whose size grew by one."""
    grew = size > found.size
    n = np.maximum(found.size, 1).astype(np.float64)
    gap = np.where(grew, extra - found.mean, 0.0)
    variance = (n * found.std**2 + gap**2 * n / (n + 1.0)) / np.where(grew, n + 1.0, n)
    return replace(found, offset=found.offset + gap / (n + 1.0), std=np.sqrt(variance), size=size)
