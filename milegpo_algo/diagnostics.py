"""What stored rollouts say about credit, without training: shared states, ties, support, waste.

Counts, not only shares, so that iterations can be pooled. No clock, no files: `scripts.replay` has
both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np

from milegpo_algo.data import BoolArray, FloatArray, IntArray, Rollouts, compact
from milegpo_algo.estimator import Json, StepEstimator
from milegpo_algo.estimators.graphgpo import GraphGPO
from milegpo_algo.estimators.milegpo import MileGPO, Targets
from milegpo_algo.milestones import NOISE, Landscape, coverage
from milegpo_algo.returns import normalise, state_groups, tasks_with_spread

TIE = 1e-6
STAGES: Mapping[str, Literal["md", "rcs", "pcc"]] = {"uniform": "md", "rcs": "rcs", "pcc": "pcc"}


@dataclass(frozen=True)
class Share:
    """`count` out of `total`."""

    count: int = 0
    total: int = 0

    def __add__(self, other: Share) -> Share:
        return Share(self.count + other.count, self.total + other.total)

    def __sub__(self, other: Share) -> Share:
        return Share(self.count - other.count, self.total - other.total)

    @property
    def value(self) -> float | None:
        """The share, None of nothing."""
        return self.count / self.total if self.total else None

    def json(self) -> dict[str, Json]:
        """Both counts and the share."""
        return {"count": self.count, "total": self.total, "share": self.value}


@dataclass(frozen=True)
class Diagnosis:
    """Counts over the tasks of some rollouts; `a + b` pools two.

    A pair is two steps that left the same state of a task. "Any" counts all pairs, the others only
    those whose actions differ: equal actions mostly lead to the same state and tie by themselves.

    Attributes:
        shared_states: Steps that leave a state which more than one trajectory visits.
        ties: Pairs that GraphGPO ties, |difference of step terms| <= 1e-6.
        ties_any: The same of all pairs.
        corrected: Per stage of MileGPO, of the pairs that GraphGPO ties although one step is a
            success's and the other a failure's, those whose shaped return is larger by over 1e-6 on
            the success's side.
        corrected_any: The same of all pairs.
        local_evidence: Milestone candidates with positive progress or positive branch credit.
        coverage_only: Candidates without, but visited by theta_m of the successes.
        weak: The other candidates.
        positive_progress: Candidates with psi_bar > 0.
        positive_branch: Candidates with b > 0.
        degenerate_groups: Tasks whose trajectories have equal raw returns.
        effective_rows: Per estimator, steps whose |advantage| exceeds 1e-6.
    """

    shared_states: Share
    ties: Share
    ties_any: Share
    corrected: Mapping[str, Share]
    corrected_any: Mapping[str, Share]
    local_evidence: Share
    coverage_only: Share
    weak: Share
    positive_progress: Share
    positive_branch: Share
    degenerate_groups: Share
    effective_rows: Mapping[str, Share]

    def __add__(self, other: Diagnosis) -> Diagnosis:
        summed = {spec.name: _sum(self, other, spec.name) for spec in fields(self)}
        return Diagnosis(**summed)

    def json(self) -> dict[str, Json]:
        """Ready for JSON."""
        return {spec.name: _json(getattr(self, spec.name)) for spec in fields(self)}


def diagnose(
    rollouts: Rollouts,
    *,
    graphgpo: GraphGPO,
    milegpo: MileGPO,
    estimators: Mapping[str, StepEstimator],
) -> Diagnosis:
    """Measure one set of rollouts.

    Args:
        rollouts: Whole groups.
        graphgpo: Whose ties are counted.
        milegpo: Whose candidates and shaping are judged; its stage is ignored.
        estimators: Those whose effective rows are counted, by the name to report.
    """
    land = Landscape.survey(rollouts)
    targets = milegpo.targets(land)
    shared = land.nodes.total[land.graph.source] > 1
    merged = graphgpo.merged(rollouts)
    graph = normalise(graphgpo.step_returns(merged), *state_groups(merged), graphgpo.norm)
    with_action, _ = compact(rollouts.state * len(rollouts.actions) + rollouts.action)
    ties_any = tied_pairs(graph, rollouts.state)
    tied = tie_clusters(graph, rollouts.state)
    tied_with_action, _ = compact(tied * len(rollouts.actions) + rollouts.action)
    corrected, corrected_any = {}, {}
    for name, stage in STAGES.items():
        shaping = replace(milegpo, stage=stage)
        shaped = shaping.credit(rollouts, land, shaping.targets(land)).mixed_return
        corrected_any[name] = rightly_ranked(shaped, rollouts.success, tied)
        same = rightly_ranked(shaped, rollouts.success, tied_with_action)
        corrected[name] = corrected_any[name] - same
    effective = {
        name: _count(np.abs(estimator(rollouts)) > TIE) for name, estimator in estimators.items()
    }
    return Diagnosis(
        shared_states=_count(shared),
        ties=ties_any - tied_pairs(graph, with_action),
        ties_any=ties_any,
        corrected=corrected,
        corrected_any=corrected_any,
        **_support(land, targets, milegpo.coverage_threshold),
        degenerate_groups=_count(~tasks_with_spread(rollouts)),
        effective_rows=effective,
    )


def tied_pairs(values: FloatArray, group: IntArray) -> Share:
    """Pairs within a group whose values differ by at most 1e-6, of all pairs within a group."""
    line = _on_a_line(values, group)
    ordered = np.sort(line)
    up_to = np.searchsorted(ordered, ordered + TIE, side="right")
    size = np.bincount(group)
    pairs = int((size * (size - 1) // 2).sum())
    return Share(int((up_to - np.arange(1, len(ordered) + 1)).sum()), pairs)


def tie_clusters(values: FloatArray, group: IntArray) -> IntArray:
    """Number the runs of values within a group that steps of at most 1e-6 connect.  [N]."""
    order = np.lexsort((values, group))
    gap = (np.diff(values[order]) > TIE) | (np.diff(group[order]) != 0)
    cluster = np.empty(len(values), dtype=np.int64)
    cluster[order] = np.concatenate(([0], np.cumsum(gap)))
    return cluster


def rightly_ranked(values: FloatArray, success: BoolArray, group: IntArray) -> Share:
    """Of the pairs of a success's and a failure's row in a group, those the success leads."""
    line = _on_a_line(values, group)
    lost = np.sort(line[~success])
    count = int(group.max()) + 1
    failures = np.bincount(group[~success], minlength=count)
    before = np.cumsum(failures) - failures  # failures in earlier groups lie further down the line
    won = group[success]
    behind = np.searchsorted(lost, line[success] - TIE, side="left") - before[won]
    return Share(int(behind.sum()), int(failures[won].sum()))


def _on_a_line(values: FloatArray, group: IntArray) -> FloatArray:
    """Lay the groups one after another, further apart than any two of their values.  [N]."""
    low, high = float(values.min()), float(values.max())
    return (values - low) + group * (high - low + 1.0)


def _support(land: Landscape, targets: Targets, threshold: float) -> dict[str, Share]:
    chosen = targets.candidates
    progress, branch = targets.progress[chosen] > 0.0, targets.branch[chosen] > 0.0
    covered = coverage(land)[chosen] >= threshold - NOISE
    return {
        "local_evidence": _count(progress | branch),
        "coverage_only": _count(covered & ~(progress | branch)),
        "weak": _count(~(covered | progress | branch)),
        "positive_progress": _count(progress),
        "positive_branch": _count(branch),
    }


def _count(marked: BoolArray) -> Share:
    return Share(int(np.count_nonzero(marked)), len(marked))


def _sum(one: Diagnosis, two: Diagnosis, name: str) -> Any:
    a, b = getattr(one, name), getattr(two, name)
    if isinstance(a, Mapping):
        return {key: a[key] + b[key] for key in a}
    return a + b


def _json(value: Share | Mapping[str, Share]) -> Json:
    if isinstance(value, Share):
        return value.json()
    return {key: share.json() for key, share in value.items()}
