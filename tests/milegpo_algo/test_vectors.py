"""Every worked advantage, and every worked intermediate value, to 1e-9."""

import numpy as np
import pytest

from milegpo_algo import GOAL_NAME, Rollouts, estimator_names, make_estimator
from milegpo_algo.estimators.graphgpo import GraphGPO
from milegpo_algo.estimators.milegpo import MileGPO
from milegpo_algo.estimators.progpo import ProGPO
from milegpo_algo.milestones import Landscape
from milegpo_algo.returns import normalise, state_groups
from tests.milegpo_algo.toy_rollouts import vector_cases

EXPECTED = [
    pytest.param(case, convention, label, id=f"{case['name']}-{convention}-{label}")
    for case in vector_cases()
    for convention, labels in case["expected"].items()
    for label in labels
]
CLOSE = {"rtol": 0.0, "atol": 1e-9}


def worked(case, convention, label):
    expected = case["expected"][convention][label]
    estimator = make_estimator(expected["estimator"], convention=convention, **expected["settings"])
    return Rollouts.from_steps(case["records"]), estimator, expected


@pytest.mark.parametrize(("case", "convention", "label"), EXPECTED)
def test_advantages_are_the_worked_ones(case, convention, label):
    rollouts, estimator, expected = worked(case, convention, label)
    np.testing.assert_allclose(estimator(rollouts), expected["advantages"], **CLOSE)


@pytest.mark.parametrize(("case", "convention", "label"), EXPECTED)
def test_step_values_are_the_worked_ones(case, convention, label):
    rollouts, estimator, expected = worked(case, convention, label)
    found = {}
    if isinstance(estimator, GraphGPO):
        returns = estimator.step_returns(rollouts)
        found["step_returns"] = returns
        found["step_advantages"] = normalise(returns, *state_groups(rollouts), estimator.norm)
    if isinstance(estimator, ProGPO):
        found["peer"] = estimator.peer(rollouts)
        found["transition"] = estimator.transition(rollouts)
    if isinstance(estimator, MileGPO):
        land = Landscape.survey(rollouts)
        credit = estimator.credit(rollouts, land, estimator.targets(land))
        found["r_g"], found["r_m"] = credit.graph_return, credit.mixed_return
        found["a_g"], found["a_mix"] = credit.graph_advantage, credit.mixed_advantage
    for name, values in found.items():
        if name in expected:
            np.testing.assert_allclose(values, expected[name], **CLOSE, err_msg=name)


@pytest.mark.parametrize(
    ("case", "convention", "label"), [p for p in EXPECTED if p.values[2] == "milegpo/alfworld/pcc"]
)
def test_milestones_and_traps_are_the_worked_ones(case, convention, label):
    rollouts, estimator, expected = worked(case, convention, label)
    land = Landscape.survey(rollouts)
    found = estimator.targets(land)
    values = {
        "milestone_scores": np.where(found.candidates, found.scores, np.nan),
        "trap_scores": np.where(found.traps, found.trap_scores, np.nan),
        "branch_credit": found.branch,
        "progress": found.progress,
        "kept": found.retained,
        "calibrated": found.calibrated,
        "goal_distance": land.graph.goal_distance,
        "phi_plus": found.milestone_potential,
        "phi_minus": found.trap_potential,
    }
    names = [*rollouts.states, *(GOAL_NAME for _ in rollouts.tasks)]
    tasks = [rollouts.tasks[t] for t in land.graph.node_task]
    node = {key: at for at, key in enumerate(zip(tasks, names, strict=True))}
    for task, tables in expected["tasks"].items():
        for name, table in tables.items():
            for state, value in table.items():
                got = values[name][node[task, state]]
                np.testing.assert_allclose(got, value, **CLOSE, err_msg=f"{task} {name} {state}")
    scored = np.flatnonzero(~np.isnan(values["milestone_scores"]))
    assert len(scored) == sum(len(t["milestone_scores"]) for t in expected["tasks"].values())
    trapped = np.flatnonzero(~np.isnan(values["trap_scores"]))
    assert len(trapped) == sum(len(t["trap_scores"]) for t in expected["tasks"].values())


def test_every_worked_estimator_is_registered():
    worked_names = {
        expected["estimator"]
        for case in vector_cases()
        for labels in case["expected"].values()
        for expected in labels.values()
    }
    assert worked_names <= set(estimator_names())
