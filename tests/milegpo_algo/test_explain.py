"""What explain says about the worked fork, and that it says what the estimator does."""

import dataclasses
import json

import numpy as np
import pytest

from milegpo_algo import GOAL_NAME, RolloutError, Rollouts, UnknownEstimator, advantages
from milegpo_algo.explain import explain
from tests.milegpo_algo.toy_rollouts import fork_records, path, random_records, rollouts


def test_the_fork_is_explained():
    found = explain(rollouts(fork_records()), "milegpo", task="q", recipe="alfworld")
    states = {report.state: report for report in found.states}
    assert found.trajectories == 3
    assert found.success_share == pytest.approx(2 / 3)
    # B: both successes and nobody else: gain 1/3, coverage 1, three of four edges: 0.25.
    assert states["B"].score == pytest.approx(1 / 3 + 1 + 0.25)
    assert states["B"].kept_because == ("progress",)
    assert states["B"].branch_credit == 1.0
    assert states["B"].calibrated == pytest.approx(4.75)  # times 1 + b + psi_bar = 3
    assert not states["A"].kept
    assert states["S"].milestone_potential == pytest.approx(0.2)  # one edge from B
    assert states["D"].goal_distance == float("inf")
    assert states[GOAL_NAME].progress == 1.0
    assert [report.state for report in found.milestones] == ["B"]
    assert found.traps == ()
    branches = {(b.state, b.next_state): b for b in found.branches}
    # S -> A: 1 of 2, S -> B: 1 of 1, so contrast 1/2; A -> B against A -> D is the largest, 1.
    assert branches["S", "B"].contrast == pytest.approx(0.5)
    assert branches["A", "D"].contrast == -1.0


def test_webshop_keeps_by_coverage_and_branch():
    found = explain(rollouts(fork_records()), task="q", recipe="webshop")
    states = {report.state: report for report in found.states}
    assert states["B"].kept_because == ("progress", "coverage", "branch")
    assert states["S"].kept_because == ("coverage",)


@pytest.mark.parametrize("convention", ["paper", "verl-agent"])
@pytest.mark.parametrize("stage", ["md", "rcs", "pcc"])
def test_its_steps_are_the_estimators(stage, convention):
    records = random_records(7)
    found = Rollouts.from_steps(records)
    wanted = advantages(found, "milegpo", stage=stage, convention=convention)
    seen = 0
    for task in found.tasks:
        for step in explain(found, task=task, stage=stage, convention=convention).steps:
            record = records[step.row]
            assert step.state == record["state"]
            assert step.trajectory == record["trajectory_id"]
            assert step.advantage == pytest.approx(wanted[step.row], abs=1e-12)
            mixed = step.graph_return + 2.5 * (step.milestone_rise - step.trap_rise)
            assert step.mixed_return == pytest.approx(mixed, abs=1e-12)
            seen += 1
    assert seen == len(records)


def test_loops_are_shown_as_traps():
    records = [
        *path("q", "1", "SA", success=True),
        *path("q", "2", "SXYXY"),
        *path("q", "3", "SZW"),
    ]
    found = explain(rollouts(records), task="q")
    assert {report.state for report in found.traps} == {"X", "Y"}
    assert all(report.visits == 2 for report in found.traps)


def test_an_explanation_is_frozen_data_that_goes_to_json():
    found = explain(rollouts(fork_records()), task="q")
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.steps[0].advantage = 0.0
    assert json.loads(json.dumps(dataclasses.asdict(found)))["task"] == "q"
    assert not any(
        isinstance(value, np.generic) for step in found.steps for value in vars(step).values()
    )


def test_what_cannot_be_explained_is_said():
    with pytest.raises(RolloutError, match=r"no task 'p' among the 1 given: 'q'"):
        explain(rollouts(fork_records()), task="p")
    with pytest.raises(UnknownEstimator, match="only 'milegpo' can be explained, not 'grpo'"):
        explain(rollouts(fork_records()), "grpo", task="q")
