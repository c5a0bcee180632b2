"""HGPO: group steps by the last one, two, ... states, and trust longer histories more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from milegpo_algo.data import FloatArray, Rollouts
from milegpo_algo.estimator import BY_CONVENTION, EpisodeEstimator, Preset, register, setting
from milegpo_algo.returns import (
    SUM_NOISE,
    discounted_returns,
    history_groups,
    normalise,
    penalties,
)


@register("hgpo")
@dataclass(frozen=True, kw_only=True)
class HGPO(EpisodeEstimator):
    """A = sum_k w_k a_k / sum_k w_k over the depths k = 1 ... history_length + 1.

    a_k = Norm(G) with ddof = 0 among the rows of a task whose last k states are equal, G_t = r_t +
    gamma * G_{t+1} minus the penalty of a malformed row. Rows with fewer than k states so far,
    groups of one, and an a_k of exactly 0 are left out; a row with nothing left gets 0. No episode
    term, unless `base_group`: then Norm_q(Z) joins as one more item of weight 1, left out when
    exactly 0.

    Conventions: "paper" has w_k = k^alpha and divides by their sum; "verl-agent" has (k+1)^alpha
    and adds 1e-6 to the sum. With `base_group` the episode term differs too, see
    `EpisodeEstimator`.
    """

    recipes: ClassVar[Mapping[str, Preset]] = {
        "alfworld": {"norm": "mean_std"},
        "webshop": {"norm": "mean"},
    }

    norm: Literal["mean_std", "mean"] = setting("mean_std", choices=("mean_std", "mean"))
    gamma: float = setting(0.95, at_least=0.0)
    history_length: int = setting(2, at_least=0)
    alpha: float = setting(1.0)
    base_group: bool = setting(False)
    depth_weights: Literal["k", "k+1", "convention"] = setting(BY_CONVENTION, choices=("k", "k+1"))
    depth_average: Literal["exact", "epsilon", "convention"] = setting(
        BY_CONVENTION, choices=("exact", "epsilon")
    )

    def compute(self, rollouts: Rollouts) -> FloatArray:
        """One advantage per step.  [N]."""
        returns = discounted_returns(rollouts, self.gamma) - penalties(rollouts, self.penalty)
        total, weights = np.zeros(len(rollouts)), np.zeros(len(rollouts))
        shift = 1 if self.depth_weights == "k+1" else 0
        groups = history_groups(rollouts, self.history_length + 1)
        for k, (rows, group, count) in enumerate(groups, start=1):
            weight = float(k + shift) ** self.alpha
            item = normalise(returns[rows], group, count, self.norm, ddof=0, noise=SUM_NOISE)
            total[rows] += weight * item
            weights[rows] += np.where(item != 0.0, weight, 0.0)
        if self.base_group:
            episode = self.episode_term(rollouts, self.norm)
            total += episode
            weights += episode != 0.0
        if self.depth_average == "epsilon":
            return total / (weights + 1e-6)
        return total / np.where(weights > 0.0, weights, 1.0)
