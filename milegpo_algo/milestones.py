"""MileGPO's milestones and traps: discovery, reliability, progress-contrastive calibration.

Pure functions of one block-diagonal graph; an array [V] has one value per node of all tasks, [E]
one per edge. Every "largest" is the task's own. Differences of shares that are only rounding noise
count as 0, so that no ratio of noise to noise becomes a score.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from milegpo_algo.data import BoolArray, FloatArray, IntArray, Rollouts
from milegpo_algo.graph import Evidence, StateGraph

NOISE = 1e-12


@dataclass(frozen=True, eq=False)
class Landscape:
    """One iteration's graph with the evidence that MileGPO reads off it.

    Attributes:
        graph: Nodes and edges of all tasks.
        nodes: Trajectories through each node.  [V]
        edges: Trajectories through each edge.  [E]
        success_share: p+ of each task.  [T]
        successes: |T+| of each task.  [T]
        failures: |T-| of each task.  [T]
    """

    graph: StateGraph
    nodes: Evidence
    edges: Evidence
    success_share: FloatArray
    successes: IntArray
    failures: IntArray

    @classmethod
    def survey(cls, rollouts: Rollouts) -> Landscape:
        """Build the graph and count who passed where."""
        graph = StateGraph.build(rollouts)
        tasks = len(rollouts.tasks)
        total = np.bincount(rollouts.trajectory_task, minlength=tasks)
        won = rollouts.trajectory_task[rollouts.trajectory_success]
        successes = np.bincount(won, minlength=tasks)
        return cls(
            graph=graph,
            nodes=graph.node_evidence(rollouts),
            edges=graph.edge_evidence(rollouts),
            success_share=successes / total,
            successes=successes,
            failures=total - successes,
        )

    def is_goal(self) -> BoolArray:
        """Marks the goals.  [V]."""
        marked = np.zeros(len(self.graph.node_task), dtype=np.bool_)
        marked[self.graph.goals] = True
        return marked


def relative(values: FloatArray, task: IntArray, tasks: int) -> FloatArray:
    """Nonnegative values divided by the task's largest; 0 where that is 0."""
    largest = np.zeros(tasks)
    np.maximum.at(largest, task, values)
    return values / np.where(largest > 0.0, largest, 1.0)[task]


def success_gain(land: Landscape) -> FloatArray:
    """p+(v) - p+, which is also p- - p-(v).  [V]."""
    gain = land.nodes.share - land.success_share[land.graph.node_task]
    return without_noise(gain)


def without_noise(values: FloatArray) -> FloatArray:
    """The values, those within rounding of 0 replaced by 0."""
    return np.where(np.abs(values) <= NOISE, 0.0, values)


def coverage(land: Landscape) -> FloatArray:
    """m(v) = |T+(v)| / max(|T+|, 1).  [V]."""
    return land.nodes.success / np.maximum(land.successes, 1)[land.graph.node_task]


def connectivity(land: Landscape) -> FloatArray:
    """C(v) = (in + out degree) / the largest such sum among success-visited states.  [V]."""
    graph, size = land.graph, len(land.graph.node_task)
    degree = np.bincount(graph.edge_source, minlength=size)
    degree += np.bincount(graph.edge_target, minlength=size)
    compared = np.where((land.nodes.success > 0) & ~land.is_goal(), degree, 0)
    return relative(compared.astype(np.float64), graph.node_task, len(land.successes))


def milestone_candidates(land: Landscape, min_support: int) -> BoolArray:
    """States, not the goal, that at least `min_support` successes visit.  [V]."""
    return (land.nodes.success >= max(min_support, 1)) & ~land.is_goal()


def milestone_scores(
    land: Landscape,
    candidates: BoolArray,
    *,
    success_weight: float,
    coverage_weight: float,
    connectivity_weight: float,
) -> FloatArray:
    """S0(v) = w_s max(p+(v) - p+, 0) + w_m m(v) + w_c C(v) of candidates, 0 elsewhere.  [V]."""
    scores = (
        success_weight * np.maximum(success_gain(land), 0.0)
        + coverage_weight * coverage(land)
        + connectivity_weight * connectivity(land)
    )
    return np.where(candidates, scores, 0.0)


def trap_candidates(land: Landscape, min_visits: int) -> BoolArray:
    """States no success visits, with `min_visits` failures or a revisit by one of them.  [V]."""
    nodes = land.nodes
    often = (nodes.total >= min_visits) | (nodes.visits > nodes.total)
    candidates: BoolArray = (nodes.success == 0) & often & ~land.is_goal()
    return candidates


def trap_scores(
    land: Landscape, candidates: BoolArray, *, failure_weight: float, loop_weight: float
) -> FloatArray:
    """S-(v) = w_f max(p-(v) - p-, 0) + w_l f(v) L(v) of candidates, 0 elsewhere.

    f(v) = |T-(v)| / max(|T-|, 1), L(v) = revisits / |T(v)|.  [V].
    """
    nodes = land.nodes
    frequency = (nodes.total - nodes.success) / np.maximum(land.failures, 1)[land.graph.node_task]
    loops = (nodes.visits - nodes.total) / np.maximum(nodes.total, 1)
    scores = failure_weight * np.maximum(-success_gain(land), 0.0) + loop_weight * frequency * loops
    return np.where(candidates, scores, 0.0)


def sibling_contrast(land: Landscape) -> tuple[FloatArray, BoolArray]:
    """Compare each edge with its siblings, the other edges that leave the same state.

    Returns:
        c~(e) = p+(e) - mean p+ of the siblings, 0 without any [E]; whether there are any [E].
    """
    source, share = land.graph.edge_source, land.edges.share
    size = len(land.graph.node_task)
    siblings = np.bincount(source, minlength=size)[source] - 1
    others = np.bincount(source, share, minlength=size)[source] - share
    contrast = share - others / np.maximum(siblings, 1)
    return np.where(siblings > 0, without_noise(contrast), 0.0), siblings > 0


def best_incoming(land: Landscape, values: FloatArray) -> FloatArray:
    """Largest positive value over the edges into a node, else 0; `values` [E].  [V]."""
    best = np.zeros(len(land.graph.node_task))
    np.maximum.at(best, land.graph.edge_target, values)
    return best


def branch_contrast(land: Landscape) -> FloatArray:
    """c(e) = c~(e) / the largest |c~| of the task.  [E]."""
    contrast, _ = sibling_contrast(land)
    task = land.graph.node_task[land.graph.edge_source]
    return np.copysign(relative(np.abs(contrast), task, len(land.successes)), contrast)


def branch_credit(land: Landscape, contrast: FloatArray) -> FloatArray:
    """b(v) = largest positive c(e) over incoming e, else 0; `contrast` is c [E].  [V]."""
    return best_incoming(land, contrast)


def local_progress(
    land: Landscape, *, distance_weight: float, gain_weight: float, excess_weight: float
) -> FloatArray:
    """psi(e) = a_d [d(u,g) - d(v,g)] + a_s [p+(v) - p+] - a_f l(e) of e = (u, v).

    l(e) = max(p-(e) - mean p- of siblings, 0), or max(p-(v) - p-, 0) without siblings; an undefined
    difference of distances is 0.  [E].
    """
    graph = land.graph
    before = graph.goal_distance[graph.edge_source]
    after = graph.goal_distance[graph.edge_target]
    defined = np.isfinite(before) & np.isfinite(after)
    approach = np.where(defined, before, 0.0) - np.where(defined, after, 0.0)
    gain = success_gain(land)[graph.edge_target]
    contrast, has_siblings = sibling_contrast(land)
    excess = np.maximum(np.where(has_siblings, -contrast, -gain), 0.0)
    local = distance_weight * approach + gain_weight * gain - excess_weight * excess
    return without_noise(local)


def progress(land: Landscape, local: FloatArray) -> FloatArray:
    """psi_bar(v) = psi~(v) / the largest psi~ of the task, the goal's included.

    psi~(v) is the largest positive psi(e) over the edges into v that a success uses, else 0;
    `local` is psi [E].  [V].
    """
    useful = best_incoming(land, np.where(land.edges.success > 0, local, 0.0))
    return relative(useful, land.graph.node_task, len(land.successes))


def calibrate(
    scores: FloatArray,
    retained: BoolArray,
    evidence: FloatArray,
    *,
    calibration_weight: float,
    discount: float,
) -> FloatArray:
    """S_pcc = S0 (1 + w_pcc E) where retained, else rho S0.  [V]."""
    return scores * np.where(retained, 1.0 + calibration_weight * evidence, discount)
