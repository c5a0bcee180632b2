"""GraphGPO: credit a step by the graph distance to success that remains after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from milegpo_algo.data import FloatArray, Rollouts
from milegpo_algo.estimator import BY_CONVENTION, EpisodeEstimator, Preset, register, setting
from milegpo_algo.graph import StateGraph
from milegpo_algo.returns import normalise, penalties, state_groups


@register("graphgpo")
@dataclass(frozen=True, kw_only=True)
class GraphGPO(EpisodeEstimator):
    """A = step_weight * Norm_{q,s}(r^G) + episode_weight * Norm_q(Z), one value per step.

    r^G = c * omega^(d(s') + 1), minus the penalty on a malformed row. d(v) is the shortest directed
    distance of v to the goal of its task in the graph of all observed transitions; a node that
    cannot reach it has d_max + 1, d_max the task's largest finite distance; with no success in the
    group every node has 1. A state left once gives a step term of 0. episode_weight = 0 is the
    paper's variant without the episode term.

    Conventions: besides the episode term, the exponent is d(s') + 1 in "paper", d(s') in
        "verl-agent".
    """

    recipes: ClassVar[Mapping[str, Preset]] = {
        "alfworld": {"norm": "mean_std", "omega": 0.10},
        "webshop": {"norm": "mean", "omega": 0.20},
        "sokoban": {"norm": "mean_std", "omega": 0.80},
    }

    norm: Literal["mean_std", "mean"] = setting("mean_std", choices=("mean_std", "mean"))
    omega: float = setting(0.10, above=0.0)
    scale: float = setting(10.0)
    exponent: Literal["d+1", "d", "convention"] = setting(BY_CONVENTION, choices=("d+1", "d"))
    step_weight: float = setting(1.0)
    episode_weight: float = setting(1.0)

    def __call__(self, rollouts: Rollouts) -> FloatArray:
        """One advantage per step.  [N]."""
        step = normalise(self.step_returns(rollouts), *state_groups(rollouts), self.norm)
        episode = self.episode_term(rollouts, self.norm)
        return self.step_weight * step + self.episode_weight * episode

    def step_returns(self, rollouts: Rollouts) -> FloatArray:
        """r^G - pen.  [N]."""
        graph = StateGraph.build(rollouts)
        distance = finite_distance(graph)[graph.target]
        power = distance + 1.0 if self.exponent == "d+1" else distance
        return self.scale * self.omega**power - penalties(rollouts, self.penalty)


def finite_distance(graph: StateGraph) -> FloatArray:
    """d(v); d_max + 1 where v cannot reach the goal, 1 in a task without success.  [V]."""
    distance = graph.goal_distance
    reached = np.isfinite(distance)
    largest = np.zeros(len(graph.goal_reached))
    np.maximum.at(largest, graph.node_task[reached], distance[reached])
    return np.where(reached, distance, largest[graph.node_task] + 1.0)
