"""Everything behind one task's MileGPO numbers, as frozen data for people and reports.

    for step in explain(rollouts, "milegpo", task="q", recipe="webshop").steps:
        print(step.state, "->", step.next_state, step.milestone_rise, step.advantage)

Nothing is computed here that the estimator does not compute.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from milegpo_algo.data import GOAL_NAME, RolloutError, Rollouts
from milegpo_algo.estimator import Json, UnknownEstimator, make_estimator
from milegpo_algo.estimators.milegpo import Credit, MileGPO, Targets
from milegpo_algo.milestones import Landscape, coverage


@dataclass(frozen=True)
class StateReport:
    """One state of the task, or its goal.

    Attributes:
        state: Its id, `GOAL_NAME` for the goal.
        trajectories: |T(v)|, trajectories that visit it.
        successes: |T+(v)|.
        visits: Repeated ones included.
        success_share: p+(v).
        goal_distance: d(v, g), inf where no observed path leads to success.
        candidate: Whether it may be a milestone.
        coverage: m(v).
        score: S0(v), 0 for other states.
        branch_credit: b(v).
        progress: psi_bar(v).
        kept_because: "progress", "coverage", "branch"; empty for a state that is not retained.
        calibrated: S_pcc(v).
        milestone_weight: Its weight in Phi+ at the chosen stage.
        trap: Whether it is a kept trap.
        trap_score: S-(v), 0 for other states.
        trap_weight: Its weight in Phi-.
        milestone_potential: Phi+(v).
        trap_potential: Phi-(v).
    """

    state: str
    trajectories: int
    successes: int
    visits: int
    success_share: float
    goal_distance: float
    candidate: bool
    coverage: float
    score: float
    branch_credit: float
    progress: float
    kept_because: tuple[str, ...]
    calibrated: float
    milestone_weight: float
    trap: bool
    trap_score: float
    trap_weight: float
    milestone_potential: float
    trap_potential: float

    @property
    def kept(self) -> bool:
        """Whether calibration retains it."""
        return bool(self.kept_because)


@dataclass(frozen=True)
class BranchReport:
    """One observed edge e = (state, next state).

    Attributes:
        state: Where it begins.
        next_state: Where it ends; `GOAL_NAME` where a success ends.
        trajectories: |T(e)|.
        successes: |T+(e)|.
        success_share: p+(e).
        contrast: c(e), against the other edges that leave `state`.
        local_progress: psi(e).
    """

    state: str
    next_state: str
    trajectories: int
    successes: int
    success_share: float
    contrast: float
    local_progress: float


@dataclass(frozen=True)
class StepReport:
    """One step and what its advantage is made of.

    Attributes:
        row: Its place in the rollouts as given.
        trajectory: Id of its trajectory.
        step: Place in the trajectory.
        state: Id of the state before.
        action: What was done.
        next_state: Id of the state after; `GOAL_NAME` where a success ends.
        success: Of the trajectory.
        valid: False for a malformed reply.
        goal_distance: d(s', g).
        milestone_rise: delta+.
        trap_rise: delta-.
        penalty: Taken from both returns.
        graph_return: r^G - penalty.
        mixed_return: r^M - penalty.
        graph_advantage: A^G.
        mixed_advantage: A^mix.
        step_term: A^G + eta (A^mix - A^G).
        episode_term: Norm_q(Z).
        advantage: A.
    """

    row: int
    trajectory: str
    step: int
    state: str
    action: str
    next_state: str
    success: bool
    valid: bool
    goal_distance: float
    milestone_rise: float
    trap_rise: float
    penalty: float
    graph_return: float
    mixed_return: float
    graph_advantage: float
    mixed_advantage: float
    step_term: float
    episode_term: float
    advantage: float


@dataclass(frozen=True)
class Explanation:
    """One task under one estimator.

    Attributes:
        task: Its id.
        settings: Every setting of the estimator.
        trajectories: How many rollouts the task has.
        success_share: p+.
        states: By first appearance, the goal last if any trajectory reached it.
        branches: Observed edges.
        steps: By trajectory, then by time.
    """

    task: str
    settings: dict[str, Json]
    trajectories: int
    success_share: float
    states: tuple[StateReport, ...]
    branches: tuple[BranchReport, ...]
    steps: tuple[StepReport, ...]

    @property
    def milestones(self) -> tuple[StateReport, ...]:
        """States with a weight in Phi+, the heaviest first."""
        found = [state for state in self.states if state.milestone_weight > 0.0]
        return tuple(sorted(found, key=lambda state: -state.milestone_weight))

    @property
    def traps(self) -> tuple[StateReport, ...]:
        """Kept traps, the heaviest first."""
        found = [state for state in self.states if state.trap]
        return tuple(sorted(found, key=lambda state: -state.trap_weight))


def explain(
    rollouts: Rollouts,
    name: str = "milegpo",
    *,
    task: str,
    convention: str = "paper",
    recipe: str | None = None,
    **settings: object,
) -> Explanation:
    """Open up one task.

    Args:
        rollouts: The task's rollouts, among others or alone.
        name: An estimator with milestones.
        task: Id of the task.
        convention: As for `make_estimator`.
        recipe: As for `make_estimator`.
        **settings: As for `make_estimator`.

    Raises:
        RolloutError: There is no such task.
        UnknownEstimator: The estimator has no milestones to explain.
    """
    estimator = make_estimator(name, convention=convention, recipe=recipe, **settings)
    if not isinstance(estimator, MileGPO):
        raise UnknownEstimator(f"only 'milegpo' can be explained, not {name!r}")
    if task not in rollouts.tasks:
        known = ", ".join(map(repr, rollouts.tasks[:5]))
        raise RolloutError(f"no task {task!r} among the {len(rollouts.tasks)} given: {known}, ...")
    estimator.check(rollouts)
    at = rollouts.tasks.index(task)
    rows, part = rollouts.slice_tasks(at, at + 1)
    land = Landscape.survey(part)
    targets = estimator.targets(land)
    credit = estimator.credit(part, land, targets)
    return Explanation(
        task=task,
        settings=estimator.settings(),
        trajectories=len(part.trajectory_ids),
        success_share=float(land.success_share[0]),
        states=_states(part, land, targets),
        branches=_branches(part, land, targets),
        steps=tuple(
            _step(part, land, credit, at, row, advantage)
            for at, (row, advantage) in enumerate(
                zip(rows.tolist(), estimator.total(credit).tolist(), strict=True)
            )
        ),
    )


def _names(part: Rollouts) -> tuple[str, ...]:
    return (*part.states, GOAL_NAME)


def _states(part: Rollouts, land: Landscape, targets: Targets) -> tuple[StateReport, ...]:
    reasons = {
        "progress": targets.by_progress,
        "coverage": targets.by_coverage,
        "branch": targets.by_branch,
    }
    shares, nodes = coverage(land), land.nodes
    return tuple(
        StateReport(
            state=name,
            trajectories=int(nodes.total[v]),
            successes=int(nodes.success[v]),
            visits=int(nodes.visits[v]),
            success_share=float(nodes.share[v]),
            goal_distance=float(land.graph.goal_distance[v]),
            candidate=bool(targets.candidates[v]),
            coverage=float(shares[v]),
            score=float(targets.scores[v]),
            branch_credit=float(targets.branch[v]),
            progress=float(targets.progress[v]),
            kept_because=tuple(why for why, holds in reasons.items() if holds[v]),
            calibrated=float(targets.calibrated[v]),
            milestone_weight=float(targets.milestone_weights[v]),
            trap=bool(targets.traps[v]),
            trap_score=float(targets.trap_scores[v]),
            trap_weight=float(targets.trap_weights[v]),
            milestone_potential=float(targets.milestone_potential[v]),
            trap_potential=float(targets.trap_potential[v]),
        )
        for v, name in enumerate(_names(part))
        if nodes.total[v] > 0
    )


def _branches(part: Rollouts, land: Landscape, targets: Targets) -> tuple[BranchReport, ...]:
    names, graph, edges = _names(part), land.graph, land.edges
    first = np.sort(np.unique(graph.edge, return_index=True)[1])
    return tuple(
        BranchReport(
            state=names[graph.edge_source[e]],
            next_state=names[graph.edge_target[e]],
            trajectories=int(edges.total[e]),
            successes=int(edges.success[e]),
            success_share=float(edges.share[e]),
            contrast=float(targets.contrast[e]),
            local_progress=float(targets.local_progress[e]),
        )
        for e in graph.edge[first].tolist()
    )


def _step(
    part: Rollouts, land: Landscape, credit: Credit, at: int, row: int, advantage: float
) -> StepReport:
    target = land.graph.target[at]
    return StepReport(
        row=row,
        trajectory=part.trajectory_ids[part.trajectory[at]],
        step=int(part.step[at]),
        state=part.states[part.state[at]],
        action=part.actions[part.action[at]],
        next_state=_names(part)[target],
        success=bool(part.success[at]),
        valid=bool(part.valid[at]),
        goal_distance=float(land.graph.goal_distance[target]),
        milestone_rise=float(credit.milestone_rise[at]),
        trap_rise=float(credit.trap_rise[at]),
        penalty=float(credit.penalty[at]),
        graph_return=float(credit.graph_return[at]),
        mixed_return=float(credit.mixed_return[at]),
        graph_advantage=float(credit.graph_advantage[at]),
        mixed_advantage=float(credit.mixed_advantage[at]),
        step_term=float(credit.step[at]),
        episode_term=float(credit.episode[at]),
        advantage=advantage,
    )
