"""GRPO: compare a trajectory with the others of its task (arXiv:2402.03300)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from milegpo_algo.data import FloatArray, Rollouts
from milegpo_algo.estimator import EpisodeEstimator, register, setting


@register("grpo")
@dataclass(frozen=True, kw_only=True)
class GRPO(EpisodeEstimator):
    """A_t = Norm_q(Z), the same on every step of a trajectory.

    Z is the trajectory's return minus the penalties of its malformed replies, Norm subtracts the
    mean over the K trajectories of task q and, with "mean_std", divides by their standard deviation
    (ddof = 1) + 1e-6. A task whose scores are equal gets exactly 0.

    Conventions: see `EpisodeEstimator`. "paper" counts trajectories and gives a lone trajectory 0;
    "verl-agent" counts rows, charges a malformed reply to its own row only, and gives a lone row
    its score.
    """

    norm: Literal["mean_std", "mean"] = setting("mean_std", choices=("mean_std", "mean"))

    def compute(self, rollouts: Rollouts) -> FloatArray:
        """One advantage per step.  [N]."""
        return self.episode_term(rollouts, self.norm)
