"""GraphGPO: credit a step by the graph distance to success that remains after it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from milegpo_algo.data import FloatArray, Rollouts
from milegpo_algo.estimator import (
    BY_CONVENTION,
    EpisodeEstimator,
    Preset,
    SettingError,
    register,
    setting,
)
from milegpo_algo.graph import StateGraph, merge_similar
from milegpo_algo.returns import normalise, penalties, state_groups


@register("graphgpo")
@dataclass(frozen=True, kw_only=True)
class GraphGPO(EpisodeEstimator):
    """A = step_weight * Norm_{q,s}(r^G) + episode_weight * Norm_q(Z), one value per step.

    r^G = c * omega^(d(s') + 1), minus the penalty on a malformed row. d(v) is the least cost of a
    directed path from v to the goal of its task in the graph of all observed transitions, at cost
    1 per edge; a node that cannot reach it has d_max + 1, d_max the task's largest finite d; with
    no success in the group every node has 1. A state left once gives a step term of 0.

    Variants: episode_weight = 0 drops the episode term. `action_cost` (a mapping, where other
    actions cost 1, or a function of the action's text) prices edges; of several actions seen on
    one edge the cheapest counts. `embedder` turns state ids into vectors, one row each, and states
    of a task whose cosine exceeds `merge_above` become one, chains included; where ids are hashes
    it looks their text up itself. Dynamic sampling is the caller's: `tasks_with_spread` says which
    groups to keep.

    The graph assumes that a task has one start; one_start = False lets several pass.

    Conventions: besides the episode term, the exponent is d(s') + 1 in "paper" and d(s') in
    "verl-agent".
    """

    recipes: ClassVar[Mapping[str, Preset]] = {
        "alfworld": {"norm": "mean_std", "omega": 0.10},
        "webshop": {"norm": "mean", "omega": 0.20},
        "sokoban": {"norm": "mean_std", "omega": 0.80},
    }

    norm: Literal["mean_std", "mean"] = setting("mean_std", choices=("mean_std", "mean"))
    omega: float = setting(0.10, above=0.0)
    scale: float = setting(10.0)  # c
    exponent: Literal["d+1", "d", "convention"] = setting(BY_CONVENTION, choices=("d+1", "d"))
    step_weight: float = setting(1.0)
    episode_weight: float = setting(1.0)
    action_cost: Mapping[str, float] | Callable[[str], float] | None = None
    embedder: Callable[[Sequence[str]], FloatArray] | None = None
    merge_above: float = setting(0.95)
    one_start: bool = setting(True)

    def compute(self, rollouts: Rollouts) -> FloatArray:
        """One advantage per step.  [N]."""
        merged = self.merged(rollouts)
        step = normalise(self.step_returns(merged), *state_groups(merged), self.norm)
        episode = self.episode_term(merged, self.norm)
        return self.step_weight * step + self.episode_weight * episode

    def check(self, rollouts: Rollouts) -> None:
        """Refuse a task with two starts, unless they are allowed."""
        if self.one_start:
            rollouts.require_one_start()

    def merged(self, rollouts: Rollouts) -> Rollouts:
        """The rollouts as the graph sees them: similar states are one."""
        if self.embedder is None:
            return rollouts
        vectors = np.asarray(self.embedder(rollouts.states), dtype=np.float64)
        if vectors.ndim != 2 or len(vectors) != len(rollouts.states):
            raise SettingError(
                f"embedder: gave shape {vectors.shape} for {len(rollouts.states)} states"
            )
        return merge_similar(rollouts, vectors, self.merge_above)

    def step_returns(self, rollouts: Rollouts) -> FloatArray:
        """r^G - pen; of rollouts whose states are merged already.  [N]."""
        distance = self.distance(rollouts, graph := StateGraph.build(rollouts))[graph.target]
        power = distance + 1.0 if self.exponent == "d+1" else distance
        return self.scale * self.omega**power - penalties(rollouts, self.penalty)

    def distance(self, rollouts: Rollouts, graph: StateGraph) -> FloatArray:
        """d(v); d_max + 1 where v cannot reach the goal, 1 in a task without success.  [V]."""
        if self.action_cost is None:
            distance = graph.goal_distance
        else:
            edge_cost = np.full(len(graph.edge_source), np.inf)
            costs = _costs(rollouts.actions, self.action_cost)
            np.minimum.at(edge_cost, graph.edge, costs[rollouts.action])
            distance = graph.goal_cost(edge_cost)
        reached = np.isfinite(distance)
        largest = np.zeros(len(graph.goal_reached))
        np.maximum.at(largest, graph.node_task[reached], distance[reached])
        return np.where(reached, distance, largest[graph.node_task] + 1.0)


def _costs(
    actions: Sequence[str], given: Mapping[str, float] | Callable[[str], float]
) -> FloatArray:
    costs = np.ones(len(actions))
    for at, action in enumerate(actions):
        cost = given.get(action, 1.0) if isinstance(given, Mapping) else given(action)
        if not (math.isfinite(cost) and cost > 0.0):
            raise SettingError(f"action_cost: {cost!r} for {action!r}, not above 0")
        costs[at] = cost
    return costs
