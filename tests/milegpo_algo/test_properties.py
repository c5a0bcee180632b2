"""What holds for every registered estimator, and what the papers prove or define away."""

import dataclasses
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from milegpo_algo import (
    Rollouts,
    StepEstimator,
    TokenEstimator,
    advantages,
    estimator_names,
    make_estimator,
)
from milegpo_algo.estimators.milegpo import MileGPO
from milegpo_algo.milestones import Landscape
from milegpo_algo.returns import tasks_with_spread
from tests.milegpo_algo.toy_rollouts import fork_records, path, random_records, rollouts

CONVENTIONS = ("paper", "verl-agent")
SEEDS = st.integers(0, 2**32 - 1)
EVERY = pytest.mark.parametrize("name", estimator_names())
BOTH = pytest.mark.parametrize("convention", CONVENTIONS)

# These look beyond the comparison inside a group: PPO at its critic, ProGPO at its potential.
NOT_GROUP_RELATIVE = {"ppo", "progpo"}


def credit(records, name, **chosen):
    """One number per record; of a token-level estimator the row's last token, values by hash."""
    estimator = make_estimator(name, **chosen)
    found = Rollouts.from_steps(records)
    if isinstance(estimator, StepEstimator):
        return estimator(found)
    assert isinstance(estimator, TokenEstimator)
    values = [np.array([0.1 * record["step"], 1.0]) for record in records]
    return np.array([row[-1] for row in estimator(found, values)])


@EVERY
@BOTH
@settings(max_examples=25, deadline=None)
@given(seed=SEEDS)
def test_every_step_gets_one_finite_number(name, convention, seed):
    records = random_records(seed)
    found = credit(records, name, convention=convention)
    assert found.shape == (len(records),)
    assert found.dtype == np.float64
    assert np.isfinite(found).all()


@EVERY
@BOTH
@settings(max_examples=25, deadline=None)
@given(seed=SEEDS)
def test_row_order_does_not_matter(name, convention, seed):
    records = random_records(seed)
    order = np.random.default_rng(seed).permutation(len(records))
    found = credit([records[i] for i in order], name, convention=convention)
    wanted = credit(records, name, convention=convention)[order]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9)


@EVERY
@BOTH
@settings(max_examples=25, deadline=None)
@given(seed=SEEDS)
def test_names_do_not_matter(name, convention, seed):
    records = random_records(seed)
    renamed = [
        {
            **record,
            "task_id": record["task_id"][::-1] + "'",
            "trajectory_id": "z" * (9 - int(record["trajectory_id"])),
            "state": f"{ord(record['state'][0]) * 7919 % 101} {record['task_id']}",
            "next_state": f"{ord(record['next_state'][0]) * 7919 % 101} {record['task_id']}",
        }
        for record in records
    ]
    found = credit(renamed, name, convention=convention)
    wanted = credit(records, name, convention=convention)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", sorted(set(estimator_names()) - {"ppo"}))
@BOTH
@settings(max_examples=25, deadline=None)
@given(seed=SEEDS)
def test_tasks_do_not_touch_each_other(name, convention, seed):
    records = random_records(seed)
    whole = credit(records, name, convention=convention)
    for task in {record["task_id"] for record in records}:
        rows = [i for i, record in enumerate(records) if record["task_id"] == task]
        alone = credit([records[i] for i in rows], name, convention=convention)
        np.testing.assert_allclose(alone, whole[rows], rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", sorted(set(estimator_names()) - NOT_GROUP_RELATIVE))
@BOTH
@pytest.mark.parametrize("success", [True, False])
@pytest.mark.parametrize("malformed", [(), (1,)])
def test_equal_rewards_on_equal_paths_give_exactly_zero(name, convention, success, malformed):
    # 0.1 seven times over: its mean in floating point is not 0.1.
    same = [
        path("q", str(i), "SABC", success=success, malformed=malformed, rewards=rewards)
        for i, rewards in enumerate([[0.1, 0.2, 0.1, 0.3][: 3 + success]] * 7)
    ]
    if convention == "verl-agent" and malformed:
        return  # rows of one trajectory differ there, by its definition
    np.testing.assert_array_equal(credit(list(chain(*same)), name, convention=convention), 0.0)


def test_progpo_is_zero_where_nothing_was_earned():
    same = [r for i in range(5) for r in path("q", str(i), "SABC")]
    np.testing.assert_array_equal(credit(same, "progpo"), 0.0)


@EVERY
def test_many_tasks_in_blocks_are_the_same_as_at_once(name, monkeypatch):
    records = random_records(3, tasks=9)
    whole = credit(records, name)
    split = Rollouts.blocks
    monkeypatch.setattr(Rollouts, "blocks", lambda self: split(self, 7))
    assert len(list(Rollouts.from_steps(records).blocks())) > 3
    np.testing.assert_allclose(credit(records, name), whole, rtol=0, atol=1e-12)


# ------------------------------------------------------------------ identities


@BOTH
@pytest.mark.parametrize("norm", ["mean_std", "mean"])
@settings(max_examples=25, deadline=None)
@given(seed=SEEDS)
def test_without_their_step_term_gigpo_graphgpo_and_milegpo_are_grpo(convention, norm, seed):
    found = Rollouts.from_steps(random_records(seed))
    grpo = advantages(found, "grpo", convention=convention, norm=norm)
    for name in ("gigpo", "graphgpo", "milegpo"):
        other = advantages(found, name, convention=convention, norm=norm, step_weight=0.0)
        np.testing.assert_array_equal(other, grpo)


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS)
def test_rloo_is_grpo_with_mean_times_n_over_n_minus_one(seed):
    found = Rollouts.from_steps(random_records(seed))
    group = np.bincount(found.trajectory_task)[found.task]
    wanted = advantages(found, "grpo", norm="mean") * group / np.maximum(group - 1, 1)
    np.testing.assert_allclose(advantages(found, "rloo"), wanted, rtol=0, atol=1e-12)


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS)
def test_without_history_hgpo_is_gigpos_step_term(seed):
    found = Rollouts.from_steps(random_records(seed))
    hgpo = advantages(found, "hgpo", norm="mean", history_length=0)
    gigpo = advantages(found, "gigpo", norm="mean") - advantages(found, "grpo", norm="mean")
    np.testing.assert_allclose(hgpo, gigpo, rtol=0, atol=1e-9)


def test_milegpo_with_eta_zero_is_graphgpo_where_every_state_reaches_the_goal():
    records = [
        *path("q", "1", "SAB", success=True),
        *path("q", "2", "SB", success=True),
        *path("q", "3", "SABS", malformed=[1]),
    ]
    graph = advantages(rollouts(records), "graphgpo", omega=0.2, exponent="d")
    mile = advantages(rollouts(records), "milegpo", eta=0.0)
    np.testing.assert_allclose(mile, graph, rtol=0, atol=1e-12)


# ------------------------------------------------------------------ MileGPO's propositions


@pytest.mark.parametrize("recipe", ["alfworld", "webshop"])
@pytest.mark.parametrize("stage", ["md", "rcs", "pcc"])
@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, eta=st.floats(0.0, 1.0))
def test_milegpos_propositions(recipe, stage, seed, eta):
    found = Rollouts.from_steps(random_records(seed))
    base = make_estimator("milegpo", recipe=recipe, stage=stage, episode_weight=0.0)
    assert isinstance(base, MileGPO)
    land = Landscape.survey(found)
    parts = base.credit(found, land, base.targets(land))
    graph, mixed = parts.graph_advantage, parts.mixed_advantage

    at = {value: dataclasses.replace(base, eta=value)(found) for value in (0.0, 1.0, eta)}
    np.testing.assert_array_equal(at[0.0], graph)
    np.testing.assert_allclose(at[1.0], mixed, rtol=0, atol=1e-12)
    line = at[0.0] + eta * (at[1.0] - at[0.0])
    np.testing.assert_allclose(at[eta], line, rtol=0, atol=1e-9)

    shaping = parts.mixed_return - parts.graph_return
    assert (shaping >= -0.625 - 1e-12).all()  # c lambda w- = 10 * 0.25 * 0.25
    assert (shaping <= 2.5 + 1e-12).all()  # c lambda w+ = 10 * 0.25 * 1

    if eta > 1e-6:
        for state in range(len(found.states)):
            rows = np.flatnonzero(found.state == state)
            tied = graph[rows][:, None] == graph[rows][None, :]
            above = mixed[rows][:, None] > mixed[rows][None, :] + 1e-9
            step = at[eta][rows]
            assert (step[:, None] > step[None, :])[tied & above].all()


def test_milegpo_breaks_the_tie_of_equal_distances_towards_the_safer_state():
    # A and B are both one step from the goal; everyone who went to A succeeded.
    records = [
        *path("q", "1", "SA", success=True),
        *path("q", "2", "SA", success=True),
        *path("q", "3", "SB", success=True),
        *path("q", "4", "SBX"),
        *path("q", "5", "SBX"),
    ]
    found = rollouts(records)
    first = {found.trajectory_ids[found.trajectory[i]]: i for i in np.flatnonzero(found.step == 0)}
    graph = advantages(found, "graphgpo", episode_weight=0.0)
    mile = advantages(found, "milegpo", episode_weight=0.0)
    assert graph[first["1"]] == graph[first["3"]]
    assert mile[first["1"]] > mile[first["3"]]


def test_a_state_left_once_has_no_step_term():
    found = rollouts(fork_records())
    once = np.flatnonzero((found.step == 2) & ~found.success)  # D, left by the failure only
    for name in ("gigpo", "graphgpo", "milegpo"):
        step = advantages(found, name) - advantages(found, "grpo")
        np.testing.assert_allclose(step[once], 0.0, atol=1e-12)


def test_dynamic_sampling_keeps_tasks_whose_returns_differ():
    records = [
        *path("even", "1", "SA", success=True),
        *path("even", "2", "SB", success=True),
        *path("mixed", "1", "SA", success=True),
        *path("mixed", "2", "SB"),
        *path("alone", "1", "SA", success=True),
    ]
    found = rollouts(records)
    kept = [name for name, keep in zip(found.tasks, tasks_with_spread(found), strict=True) if keep]
    assert kept == ["mixed"]


@pytest.mark.parametrize("name", ["grpo", "rloo", "gigpo", "hgpo", "graphgpo", "milegpo"])
def test_equal_sums_of_other_rewards_are_equal_scores(name):
    # 0.1 + 0.2 - 0.3 is 5.6e-17 in floating point, and must not count as a difference from 0.
    records = [
        *path("q", "1", "SABC", rewards=[0.1, 0.2, -0.3]),
        *path("q", "2", "SDEF", rewards=[0.0, 0.0, 0.0]),
    ]
    chosen = {"hgpo": {"base_group": True, "gamma": 1.0}, "gigpo": {"gamma": 1.0}}.get(name, {})
    np.testing.assert_array_equal(credit(records, name, **chosen)[[0, 3]], 0.0)
    assert not tasks_with_spread(rollouts(records)).any()
