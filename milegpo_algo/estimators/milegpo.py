"""MileGPO: GraphGPO's distance credit, shaped by milestones of success and traps of failure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from milegpo_algo import milestones as ms
from milegpo_algo.data import BoolArray, FloatArray, Rollouts
from milegpo_algo.estimator import EpisodeEstimator, Preset, register, setting
from milegpo_algo.returns import normalise, penalties, state_groups


@dataclass(frozen=True, eq=False)
class Targets:
    """Milestones and traps of all tasks, how they were scored, and their potentials.

    Attributes:
        candidates: May be a milestone.  [V]
        scores: S0, 0 where no candidate.  [V]
        contrast: c(e).  [E]
        branch: b(v).  [V]
        local_progress: psi(e).  [E]
        progress: psi_bar(v).  [V]
        by_progress: Retained because psi_bar(v) > 0.  [V]
        by_coverage: Retained because m(v) >= theta_m.  [V]
        by_branch: Retained because b(v) > 0, where kappa_bc lets that count.  [V]
        calibrated: S_pcc.  [V]
        traps: Kept traps.  [V]
        trap_scores: S-, 0 where no kept trap.  [V]
        milestone_weights: What Phi+ weights a milestone with at this stage.  [V]
        trap_weights: What Phi- weights a trap with.  [V]
        milestone_potential: Phi+.  [V]
        trap_potential: Phi-.  [V]
    """

    candidates: BoolArray
    scores: FloatArray
    contrast: FloatArray
    branch: FloatArray
    local_progress: FloatArray
    progress: FloatArray
    by_progress: BoolArray
    by_coverage: BoolArray
    by_branch: BoolArray
    calibrated: FloatArray
    traps: BoolArray
    trap_scores: FloatArray
    milestone_weights: FloatArray
    trap_weights: FloatArray
    milestone_potential: FloatArray
    trap_potential: FloatArray

    @property
    def retained(self) -> BoolArray:
        """Candidates that calibration keeps.  [V]."""
        kept: BoolArray = self.by_progress | self.by_coverage | self.by_branch
        return kept


@dataclass(frozen=True, eq=False)
class Credit:
    """What a step's advantage is made of; every array is [N].

    Attributes:
        milestone_rise: delta+.
        trap_rise: delta-.
        penalty: Taken from both returns.
        graph_return: r^G - pen.
        mixed_return: r^M - pen.
        graph_advantage: A^G.
        mixed_advantage: A^mix.
        step: A^G + eta (A^mix - A^G).
        episode: Norm_q(Z).
    """

    milestone_rise: FloatArray
    trap_rise: FloatArray
    penalty: FloatArray
    graph_return: FloatArray
    mixed_return: FloatArray
    graph_advantage: FloatArray
    mixed_advantage: FloatArray
    step: FloatArray
    episode: FloatArray


@register("milegpo")
@dataclass(frozen=True, kw_only=True)
class MileGPO(EpisodeEstimator):
    """A = step_weight * [A^G + eta (A^mix - A^G)] + episode_weight * Norm_q(Z), one value per step.

    A^G = Norm_{q,s}(r^G), r^G = c gamma_G^d(s', g), 0 where the goal g is out of reach (unlike
    GraphGPO). A^mix = Norm_{q,s}(r^M), r^M = r^G + c lambda (delta+ - delta-), normalised
    separately. Both returns lose the penalty on a malformed row. delta+ = max(gamma_Phi w+ Phi+(s')
    - w+ Phi+(s), 0) is the rise in the potential Phi+(s) = max over milestones v of weight(v)
    omega^d(s, v); delta- likewise over traps.

    Milestones are states that successes visit; traps are states only failures visit, again and
    again. The weights: stage "md": 1 for every milestone and trap. "rcs": the score, relative to
    the task's largest. "pcc": milestone scores calibrated by branch contrast and local progress
    first; traps as in "rcs". See `milegpo_algo.milestones`.

    eta = 0 is the graph term alone. A state left once gives a step term of 0; a group without
    success has r^G = 0, and only its traps and penalties tell steps apart.

    p+(v) is held against p+ of the whole task, so a task needs one start; one_start = False lets
    several pass.

    Conventions: only the episode term differs, see `EpisodeEstimator`.
    """

    recipes: ClassVar[Mapping[str, Preset]] = {
        "alfworld": {},
        "webshop": {
            "norm": "mean",
            "coverage_threshold": 0.5,
            "discount": 0.5,
            "retain_branches": True,
            "eta": 1.0,
        },
    }

    stage: Literal["md", "rcs", "pcc"] = setting("pcc", choices=("md", "rcs", "pcc"))
    norm: Literal["mean_std", "mean"] = setting("mean_std", choices=("mean_std", "mean"))
    eta: float = setting(0.20)
    step_weight: float = setting(1.0)
    episode_weight: float = setting(1.0)
    scale: float = setting(10.0)  # c
    gamma_goal: float = setting(0.20, at_least=0.0, at_most=1.0)  # gamma_G
    omega: float = setting(0.20, above=0.0, below=1.0)
    gamma_potential: float = setting(1.0, at_least=0.0)  # gamma_Phi
    shaping_weight: float = setting(0.25)  # lambda
    milestone_weight: float = setting(1.0)  # w+
    trap_weight: float = setting(0.25)  # w-
    success_weight: float = setting(1.0, at_least=0.0)  # w_s
    coverage_weight: float = setting(1.0, at_least=0.0)  # w_m
    connectivity_weight: float = setting(0.25, at_least=0.0)  # w_c
    failure_weight: float = setting(1.0, at_least=0.0)  # w_f
    loop_weight: float = setting(0.25, at_least=0.0)  # w_l
    min_support: int = setting(1, at_least=1)
    min_trap_visits: int = setting(2, at_least=1)
    min_trap_score: float = setting(0.10)
    distance_weight: float = setting(1.0)  # a_d
    gain_weight: float = setting(1.0)  # a_s
    excess_weight: float = setting(1.0)  # a_f
    branch_weight: float = setting(1.0, at_least=0.0)  # w_bc
    progress_weight: float = setting(1.0, at_least=0.0)  # w_pg
    calibration_weight: float = setting(1.0, at_least=0.0)  # w_pcc
    coverage_threshold: float = setting(1.1)  # theta_m
    discount: float = setting(0.0, at_least=0.0)  # rho
    retain_branches: bool = setting(False)  # kappa_bc
    one_start: bool = setting(True)

    def compute(self, rollouts: Rollouts) -> FloatArray:
        """One advantage per step.  [N]."""
        land = ms.Landscape.survey(rollouts)
        credit = self.credit(rollouts, land, self.targets(land))
        return self.total(credit)

    def check(self, rollouts: Rollouts) -> None:
        """Refuse a task with two starts, unless they are allowed."""
        if self.one_start:
            rollouts.require_one_start()

    def total(self, credit: Credit) -> FloatArray:
        """A, from its parts.  [N]."""
        return self.step_weight * credit.step + self.episode_weight * credit.episode

    def credit(self, rollouts: Rollouts, land: ms.Landscape, targets: Targets) -> Credit:
        """Both returns, both normalised terms, and the episode term, before the outer weights."""
        graph = land.graph
        rise = self._rise(targets.milestone_potential, self.milestone_weight, land)
        fall = self._rise(targets.trap_potential, self.trap_weight, land)
        lost = penalties(rollouts, self.penalty)
        distance = graph.goal_distance[graph.target]
        near = np.where(np.isfinite(distance), self.gamma_goal**distance, 0.0)
        graph_return = self.scale * near - lost
        mixed_return = graph_return + self.scale * self.shaping_weight * (rise - fall)
        group, count = state_groups(rollouts)
        graph_advantage = normalise(graph_return, group, count, self.norm)
        mixed_advantage = normalise(mixed_return, group, count, self.norm)
        return Credit(
            milestone_rise=rise,
            trap_rise=fall,
            penalty=lost,
            graph_return=graph_return,
            mixed_return=mixed_return,
            graph_advantage=graph_advantage,
            mixed_advantage=mixed_advantage,
            step=graph_advantage + self.eta * (mixed_advantage - graph_advantage),
            episode=self.episode_term(rollouts, self.norm),
        )

    def targets(self, land: ms.Landscape) -> Targets:
        """Find, score and weight milestones and traps."""
        candidates = ms.milestone_candidates(land, self.min_support)
        scores = ms.milestone_scores(
            land,
            candidates,
            success_weight=self.success_weight,
            coverage_weight=self.coverage_weight,
            connectivity_weight=self.connectivity_weight,
        )
        traps, trap_scores = self._traps(land)
        contrast = ms.branch_contrast(land)
        local = ms.local_progress(
            land,
            distance_weight=self.distance_weight,
            gain_weight=self.gain_weight,
            excess_weight=self.excess_weight,
        )
        branch, progress = ms.branch_credit(land, contrast), ms.progress(land, local)
        by_progress = candidates & (progress > 0.0)
        by_coverage = candidates & (ms.coverage(land) >= self.coverage_threshold - ms.NOISE)
        by_branch = candidates & (branch > 0.0) & self.retain_branches
        calibrated = ms.calibrate(
            scores,
            by_progress | by_coverage | by_branch,
            self.branch_weight * branch + self.progress_weight * progress,
            calibration_weight=self.calibration_weight,
            discount=self.discount,
        )
        chosen = calibrated if self.stage == "pcc" else scores
        milestone_weights = self._weights(chosen, candidates, land)
        trap_weights = self._weights(trap_scores, traps, land)
        return Targets(
            candidates=candidates,
            scores=scores,
            contrast=contrast,
            branch=branch,
            local_progress=local,
            progress=progress,
            by_progress=by_progress,
            by_coverage=by_coverage,
            by_branch=by_branch,
            calibrated=calibrated,
            traps=traps,
            trap_scores=trap_scores,
            milestone_weights=milestone_weights,
            trap_weights=trap_weights,
            milestone_potential=land.graph.potential(milestone_weights, self.omega),
            trap_potential=land.graph.potential(trap_weights, self.omega),
        )

    def _traps(self, land: ms.Landscape) -> tuple[BoolArray, FloatArray]:
        candidates = ms.trap_candidates(land, self.min_trap_visits)
        scores = ms.trap_scores(
            land,
            candidates,
            failure_weight=self.failure_weight,
            loop_weight=self.loop_weight,
        )
        traps = candidates & (scores >= self.min_trap_score - ms.NOISE)
        return traps, np.where(traps, scores, 0.0)

    def _weights(self, scores: FloatArray, members: BoolArray, land: ms.Landscape) -> FloatArray:
        if self.stage == "md":
            return members.astype(np.float64)
        return ms.relative(scores, land.graph.node_task, len(land.successes))

    def _rise(self, potential: FloatArray, weight: float, land: ms.Landscape) -> FloatArray:
        before, after = potential[land.graph.source], potential[land.graph.target]
        return np.maximum(weight * (self.gamma_potential * after - before), 0.0)
