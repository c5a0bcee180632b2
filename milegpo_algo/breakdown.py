"""What each step's advantage is made of, for every estimator that gives one number a step.

    for term in breakdown(make_estimator("gigpo"), rollouts):
        print(term.name, term.formula, term.values)

An advantage is the sum of the terms that are `part` of it; the others are what those were computed
from, in that order. Nothing is computed here that the estimator does not compute. An estimator that
is not known here has its advantage as the only term.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch

import numpy as np

from milegpo_algo.data import FloatArray, IntArray, Rollouts
from milegpo_algo.estimator import EpisodeEstimator, StepEstimator
from milegpo_algo.estimators.gigpo import GiGPO
from milegpo_algo.estimators.graphgpo import GraphGPO
from milegpo_algo.estimators.grpo import GRPO
from milegpo_algo.estimators.hgpo import HGPO
from milegpo_algo.estimators.milegpo import MileGPO
from milegpo_algo.estimators.progpo import PEER_EPSILON, ProGPO
from milegpo_algo.estimators.rloo import RLOO
from milegpo_algo.graph import StateGraph
from milegpo_algo.milestones import Landscape
from milegpo_algo.returns import (
    SUM_NOISE,
    NormKind,
    discounted_returns,
    history_groups,
    moments,
    penalties,
    state_groups,
)


@dataclass(frozen=True, eq=False)
class Term:
    """One number per step.

    Attributes:
        name: In words.
        formula: In the symbols of the docs; empty for plain counts.
        values: NaN where a step has none, inf for a distance that does not exist.  [N]
        part: Whether the advantage is the sum of this and the other parts.
    """

    name: str
    formula: str
    values: FloatArray
    part: bool = False


def breakdown(estimator: StepEstimator, rollouts: Rollouts) -> list[Term]:
    """Take an estimator's numbers apart.

    Args:
        estimator: Any that gives one number a step.
        rollouts: Whole groups.

    Raises:
        RolloutError: The estimator cannot read these rollouts.
    """
    estimator.check(rollouts)
    return _terms(estimator, rollouts)


@singledispatch
def _terms(estimator: StepEstimator, rollouts: Rollouts) -> list[Term]:
    return [Term("advantage", "A", estimator(rollouts), part=True)]


@_terms.register
def _(estimator: GRPO, rollouts: Rollouts) -> list[Term]:
    return _episode(estimator, rollouts, estimator.norm, 1.0)


@_terms.register
def _(estimator: RLOO, rollouts: Rollouts) -> list[Term]:
    _, found = estimator.episode_moments(rollouts)
    return [
        *_episode_inputs(estimator, rollouts),
        Term("mean score of the task", "mean_q Z", found.mean[rollouts.task]),
        Term("members", "N", found.size[rollouts.task].astype(np.float64)),
        Term("score above the others", "N/(N-1) (Z - mean_q Z)", estimator(rollouts), part=True),
    ]


@_terms.register
def _(estimator: GiGPO, rollouts: Rollouts) -> list[Term]:
    returns = discounted_returns(rollouts, estimator.gamma) - penalties(rollouts, estimator.penalty)
    group, count = state_groups(rollouts)
    found = moments(returns, group, count, noise=SUM_NOISE)
    step = found.norm(returns, group, estimator.norm)
    return [
        *_returns(rollouts, estimator.penalty, returns),
        *_group(returns, group, count, estimator.norm, "G", "the state", noise=SUM_NOISE),
        Term("step term", "w Norm_{q,s}(G)", estimator.step_weight * step, part=True),
        *_episode(estimator, rollouts, estimator.norm, 1.0),
    ]


@_terms.register
def _(estimator: HGPO, rollouts: Rollouts) -> list[Term]:
    returns = discounted_returns(rollouts, estimator.gamma) - penalties(rollouts, estimator.penalty)
    shift = 1 if estimator.depth_weights == "k+1" else 0
    episode = estimator.episode_term(rollouts, estimator.norm)
    weights, terms, shares = np.zeros(len(rollouts)), [], []
    groups = history_groups(rollouts, estimator.history_length + 1)
    for k, (rows, group, count) in enumerate(groups, start=1):
        weight = float(k + shift) ** estimator.alpha
        found = moments(returns[rows], group, count, 0, SUM_NOISE)
        item = found.norm(returns[rows], group, estimator.norm)
        weights[rows] += np.where(item != 0.0, weight, 0.0)
        terms += _depth(len(rollouts), k, rows, found.mean[group], found.size[group], item)
        shares.append((k, rows, weight * item))
    if estimator.base_group:
        weights += episode != 0.0
    whole = (
        weights + 1e-6
        if estimator.depth_average == "epsilon"
        else np.where(weights > 0.0, weights, 1.0)
    )
    terms.append(Term("sum of the weights that count", "sum w_k", weights))
    for k, rows, share in shares:
        values = np.zeros(len(rollouts))
        values[rows] = share
        formula = f"w_{k} a_{k} / sum w"
        terms.append(Term(f"share of {_states(k)}", formula, values / whole, part=True))
    if estimator.base_group:
        terms.append(Term("episode share", "Norm_q(Z) / sum w", episode / whole, part=True))
    return [*_returns(rollouts, estimator.penalty, returns), *terms]


@_terms.register
def _(estimator: ProGPO, rollouts: Rollouts) -> list[Term]:
    returns = discounted_returns(rollouts, estimator.gamma) - penalties(rollouts, estimator.penalty)
    terms = []
    groups = history_groups(rollouts, estimator.history_length + 1)
    for k, (rows, group, count) in enumerate(groups, start=1):
        found = moments(returns[rows], group, count, 0, SUM_NOISE)
        item = found.norm(returns[rows], group, estimator.norm)
        terms += _depth(len(rollouts), k, rows, found.mean[group], found.size[group], item)
    peer, potential = estimator.peer(rollouts), estimator.potential(rollouts)
    eta = np.where(np.abs(peer) > PEER_EPSILON, estimator.eta, estimator.eta_alone)
    transition = estimator.transition(rollouts)
    weight = f"{estimator.transition_weight:g}"
    moved = estimator.transition_weight * eta * transition
    return [
        *_returns(rollouts, estimator.penalty, returns),
        *terms,
        Term("potential of the state", "V(t)", potential),
        Term("rise in potential", "A^tr = V(t+1) - V(t)", transition),
        Term("weight of progress", "eta", eta),
        Term("peer term", "A^h", peer, part=True),
        Term("progress term", f"{weight} eta A^tr", moved, part=True),
    ]


@_terms.register
def _(estimator: GraphGPO, rollouts: Rollouts) -> list[Term]:
    merged = estimator.merged(rollouts)
    graph = StateGraph.build(merged)
    returns = estimator.step_returns(merged)
    group, count = state_groups(merged)
    found = moments(returns, group, count)
    step = found.norm(returns, group, estimator.norm)
    power = "d(s')+1" if estimator.exponent == "d+1" else "d(s')"
    distance = estimator.distance(merged, graph)[graph.target]
    return [
        Term("distance that remains", "d(s')", distance),
        Term("penalty", "pen", penalties(rollouts, estimator.penalty)),
        Term("step return", f"r^G = c omega^({power}) - pen", returns),
        *_group(returns, group, count, estimator.norm, "r^G", "the state"),
        Term("step term", "w Norm_{q,s}(r^G)", estimator.step_weight * step, part=True),
        *_episode(estimator, merged, estimator.norm, estimator.episode_weight),
    ]


@_terms.register
def _(estimator: MileGPO, rollouts: Rollouts) -> list[Term]:
    land = Landscape.survey(rollouts)
    targets = estimator.targets(land)
    credit = estimator.credit(rollouts, land, targets)
    graph, (group, count) = land.graph, state_groups(rollouts)
    up, down = targets.milestone_potential, targets.trap_potential
    norm = estimator.norm
    return [
        Term("distance that remains", "d(s', g)", graph.goal_distance[graph.target]),
        Term("milestone potential before", "Phi+(s)", up[graph.source]),
        Term("milestone potential after", "Phi+(s')", up[graph.target]),
        Term("milestone rise", "delta+", credit.milestone_rise),
        Term("trap potential before", "Phi-(s)", down[graph.source]),
        Term("trap potential after", "Phi-(s')", down[graph.target]),
        Term("trap rise", "delta-", credit.trap_rise),
        Term("penalty", "pen", credit.penalty),
        Term("graph return", "r^G = c gamma_G^d(s',g) - pen", credit.graph_return),
        *_group(credit.graph_return, group, count, norm, "r^G", "the state"),
        Term("graph advantage", "A^G = Norm_{q,s}(r^G)", credit.graph_advantage),
        Term("shaped return", "r^M = r^G + c lambda (delta+ - delta-)", credit.mixed_return),
        *_group(credit.mixed_return, group, count, norm, "r^M", "the state"),
        Term("shaped advantage", "A^mix = Norm_{q,s}(r^M)", credit.mixed_advantage),
        Term(
            "graph part of the step term",
            "w_step (1 - eta) A^G",
            estimator.step_weight * (1.0 - estimator.eta) * credit.graph_advantage,
            part=True,
        ),
        Term(
            "shaped part of the step term",
            "w_step eta A^mix",
            estimator.step_weight * estimator.eta * credit.mixed_advantage,
            part=True,
        ),
        *_episode(estimator, rollouts, norm, estimator.episode_weight),
    ]


def _episode_inputs(estimator: EpisodeEstimator, rollouts: Rollouts) -> list[Term]:
    malformed = np.bincount(
        rollouts.trajectory[~rollouts.valid], minlength=len(rollouts.trajectory_ids)
    )
    scores, _ = estimator.episode_moments(rollouts)
    return [
        Term("return of the trajectory", "R_i", rollouts.env_return),
        Term("its malformed replies", "n_inv", malformed[rollouts.trajectory].astype(np.float64)),
        Term("score", "Z", scores),
    ]


def _episode(
    estimator: EpisodeEstimator, rollouts: Rollouts, norm: NormKind, weight: float
) -> list[Term]:
    _, found = estimator.episode_moments(rollouts)
    spread = found.std[rollouts.task]
    value = weight * estimator.episode_term(rollouts, norm)
    return [
        *_episode_inputs(estimator, rollouts),
        Term("mean score of the task", "mean_q Z", found.mean[rollouts.task]),
        *([Term("spread of scores", "std_q Z", spread)] if norm == "mean_std" else []),
        Term("scores compared", "", found.size[rollouts.task].astype(np.float64)),
        Term("episode term", "w Norm_q(Z)", value, part=True),
    ]


def _returns(rollouts: Rollouts, penalty: float, returns: FloatArray) -> list[Term]:
    return [
        Term("reward", "r_t", rollouts.reward),
        Term("penalty", "pen", penalties(rollouts, penalty)),
        Term("discounted return", "G_t = r_t + gamma G_{t+1} - pen", returns),
    ]


def _group(
    values: FloatArray,
    group: IntArray,
    count: int,
    norm: NormKind,
    symbol: str,
    place: str,
    noise: float = 0.0,
) -> list[Term]:
    found = moments(values, group, count, noise=noise)
    spread = Term(f"spread of {symbol} at {place}", f"std {symbol}", found.std[group])
    return [
        Term(f"mean of {symbol} at {place}", f"mean {symbol}", found.mean[group]),
        *([spread] if norm == "mean_std" else []),
        Term(f"steps compared at {place}", "", found.size[group].astype(np.float64)),
    ]


def _depth(
    steps: int, k: int, rows: IntArray, mean: FloatArray, size: IntArray, item: FloatArray
) -> list[Term]:
    """Of one depth of history; NaN on steps with fewer states so far."""
    columns = np.full((3, steps), np.nan)
    columns[:, rows] = mean, size, item
    return [
        Term(f"mean of G at {_states(k)}", "mean G", columns[0]),
        Term(f"steps compared at {_states(k)}", "", columns[1]),
        Term(f"comparison at {_states(k)}", f"a_{k} = Norm(G)", columns[2]),
    ]


def _states(k: int) -> str:
    return "equal state" if k == 1 else f"equal last {k} states"
