"""GiGPO: group trajectories by task, then steps by state (arXiv:2505.10978)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from milegpo_algo.data import FloatArray, Rollouts
from milegpo_algo.estimator import EpisodeEstimator, Preset, register, setting
from milegpo_algo.returns import (
    SUM_NOISE,
    discounted_returns,
    normalise,
    penalties,
    state_groups,
)


@register("gigpo")
@dataclass(frozen=True, kw_only=True)
class GiGPO(EpisodeEstimator):
    """A = episode + step_weight * step, one value per step.

    episode: Norm_q(Z), a trajectory's score against its task group. step: Norm_{q,s}(G), the
        discounted return G_t = r_t + gamma * G_{t+1} (minus the penalty where this very reply is
        malformed) of a visit against all visits to the same state s of the task q; two visits by
        one trajectory are two members; 0 for a state seen once.
    step_weight = 0 is GRPO.

    Conventions: only the episode term differs, see `EpisodeEstimator`.
    """

    recipes: ClassVar[Mapping[str, Preset]] = {
        "alfworld": {"norm": "mean_std"},
        "webshop": {"norm": "mean"},
        "sokoban": {"norm": "mean"},
    }

    norm: Literal["mean_std", "mean"] = setting("mean_std", choices=("mean_std", "mean"))
    gamma: float = setting(0.95, at_least=0.0)
    step_weight: float = setting(1.0)

    def compute(self, rollouts: Rollouts) -> FloatArray:
        """One advantage per step.  [N]."""
        returns = discounted_returns(rollouts, self.gamma) - penalties(rollouts, self.penalty)
        step = normalise(returns, *state_groups(rollouts), self.norm, noise=SUM_NOISE)
        return self.episode_term(rollouts, self.norm) + self.step_weight * step
