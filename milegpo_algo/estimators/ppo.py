"""PPO: token advantages from a learned critic (arXiv:1707.06347, GAE arXiv:1506.02438)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from milegpo_algo.data import FloatArray, IntArray, Rollouts
from milegpo_algo.estimator import SettingError, TokenEstimator, register, setting
from milegpo_algo.returns import discounted_sums, moments, penalties

VARIANCE_EPSILON = 1e-8


@register("ppo")
@dataclass(frozen=True, kw_only=True)
class PPO(TokenEstimator):
    """A = whiten(GAE), one value per response token; compares nothing within task groups.

    delta_j = r_j + gamma v_{j+1} - v_j and GAE_j = delta_j + gamma lambda GAE_{j+1} run over the
    response tokens of a row, v the critic's values; nothing is bootstrapped past the last token.
    The reward stands on that token: the trajectory's return R_i, minus the penalty if this row is
    malformed. Whitening is over all tokens given: (GAE - mean) / sqrt(var + 1e-8), ddof = 1; one
    token, or equal ones, give 0.

    bootstrap_across_steps: the tokens of a trajectory's rows form one sequence, and a row's last
    token has its own step's raw reward r_t (minus the penalty) instead of R_i, which would count
    once per step.

    The conventions agree on everything here.
    """

    gamma: float = setting(1.0, at_least=0.0)
    gae_lambda: float = setting(1.0, at_least=0.0)
    bootstrap_across_steps: bool = setting(False)

    def __call__(self, rollouts: Rollouts, values: Sequence[FloatArray]) -> list[FloatArray]:
        """Whitened advantages, one array per row, each as long as the row's `values`."""
        raw = self.gae(rollouts, values)
        tokens = np.concatenate(raw)
        everything = np.zeros(len(tokens), dtype=np.int64)
        found = moments(tokens, everything, 1)
        white = found.centre(tokens, everything) / np.sqrt(found.std[0] ** 2 + VARIANCE_EPSILON)
        return np.split(white, np.cumsum([len(row) for row in raw])[:-1])

    def targets(self, rollouts: Rollouts, values: Sequence[FloatArray]) -> list[FloatArray]:
        """GAE + v: the returns that the critic is fitted to, one array per row."""
        found = self.gae(rollouts, values)
        return [gae + value for gae, value in zip(found, values, strict=True)]

    def gae(self, rollouts: Rollouts, values: Sequence[FloatArray]) -> list[FloatArray]:
        """Advantages before whitening, one array per row; plus `values`, the critic's targets."""
        lengths = _token_counts(rollouts, values)
        order = rollouts.order
        ends = np.cumsum(lengths[order])
        if self.bootstrap_across_steps:
            rewards = rollouts.reward
            start = np.concatenate(([0], ends))[rollouts.start]
        else:
            rewards = rollouts.env_return
            start = np.concatenate(([0], ends))
        rewards = rewards - penalties(rollouts, self.penalty)
        value = np.concatenate([np.asarray(values[row], dtype=np.float64) for row in order])
        delta = -value
        delta[ends - 1] += rewards[order]
        following = np.concatenate((value[1:], [0.0]))
        following[start[1:] - 1] = 0.0
        delta += self.gamma * following
        flat = discounted_sums(delta, start, self.gamma * self.gae_lambda)
        pieces = np.split(flat, ends[:-1])
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        return [pieces[at] for at in place]


def _token_counts(rollouts: Rollouts, values: Sequence[FloatArray]) -> IntArray:
    if len(values) != len(rollouts):
        raise SettingError(f"values: {len(values)} arrays for {len(rollouts)} rows")
    for row, tokens in enumerate(values):
        if np.ndim(tokens) != 1 or len(tokens) == 0:
            raise SettingError(f"values: row {row} needs one value per response token, at least 1")
        if not np.isfinite(tokens).all():
            raise SettingError(f"values: row {row} holds a value that is not finite")
    return np.array([len(tokens) for tokens in values], dtype=np.int64)
