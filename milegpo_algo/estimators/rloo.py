"""RLOO: compare a trajectory with the mean of the others of its task (arXiv:2402.14740)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from milegpo_algo.data import FloatArray, Rollouts
from milegpo_algo.estimator import EpisodeEstimator, register


@register("rloo")
@dataclass(frozen=True, kw_only=True)
class RLOO(EpisodeEstimator):
    """A_t = N/(N-1) * (Z - mean_q Z), which is Z minus the mean of the N - 1 others.

    N is what the convention counts: the trajectories of the task, or its rows. A group of one gets
    0 ("paper") or Z ("verl-agent"). Unlike GRPO there is no division by the spread, so the scale of
    the rewards stays.
    """

    def compute(self, rollouts: Rollouts) -> FloatArray:
        """One advantage per step.  [N]."""
        scores, found = self.episode_moments(rollouts)
        size = found.size[rollouts.task]
        others = size / np.maximum(size - 1, 1)
        centred = others * found.centre(scores, rollouts.task)
        return self.replace_singletons(centred, scores, size)
