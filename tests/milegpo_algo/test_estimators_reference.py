"""The fast estimators against the slow, obvious ones, on worked cases and random walks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from milegpo_algo import Rollouts, advantages, make_estimator
from milegpo_algo.estimators.ppo import PPO
from tests.milegpo_algo import slow_reference as slow
from tests.milegpo_algo.toy_rollouts import path, random_records, vector_cases

CLOSE = {"rtol": 0.0, "atol": 1e-9}

REFERENCES = {
    "grpo": (("grpo", {}), slow.grpo, {}),
    "grpo/mean": (("grpo", {"norm": "mean"}), slow.grpo, {"norm": "mean"}),
    "rloo": (("rloo", {}), slow.rloo, {}),
    "gigpo": (("gigpo", {}), slow.gigpo, {}),
    "gigpo/mean": (("gigpo", {"recipe": "webshop"}), slow.gigpo, {"norm": "mean"}),
    "hgpo": (("hgpo", {}), slow.hgpo, {}),
    "hgpo/mean": (("hgpo", {"recipe": "webshop"}), slow.hgpo, {"norm": "mean"}),
    "hgpo/base": (("hgpo", {"base_group": True}), slow.hgpo, {"base_group": True}),
    "graphgpo": (("graphgpo", {}), slow.graphgpo, {}),
    "graphgpo/webshop": (
        ("graphgpo", {"recipe": "webshop"}),
        slow.graphgpo,
        {"norm": "mean", "omega": 0.2},
    ),
    "graphgpo/sokoban": (("graphgpo", {"recipe": "sokoban"}), slow.graphgpo, {"omega": 0.8}),
    "graphgpo/step": (("graphgpo", {"episode_weight": 0.0}), slow.graphgpo, {"episode_weight": 0}),
    "graphgpo/cost": (
        ("graphgpo", {"omega": 0.5, "action_cost": {"to A": 3.0, "to end": 0.5}}),
        slow.graphgpo,
        {"omega": 0.5, "cost": lambda action: {"to A": 3.0, "to end": 0.5}.get(action, 1.0)},
    ),
    "milegpo/alfworld": (("milegpo", {"recipe": "alfworld"}), slow.milegpo, {}),
    "milegpo/alfworld/rcs": (("milegpo", {"stage": "rcs"}), slow.milegpo, {"stage": "rcs"}),
    "milegpo/alfworld/md": (("milegpo", {"stage": "md"}), slow.milegpo, {"stage": "md"}),
    "milegpo/webshop": (
        ("milegpo", {"recipe": "webshop"}),
        slow.milegpo,
        {"recipe": slow.WEBSHOP},
    ),
    "milegpo/webshop/rcs": (
        ("milegpo", {"recipe": "webshop", "stage": "rcs"}),
        slow.milegpo,
        {"recipe": slow.WEBSHOP, "stage": "rcs"},
    ),
    "milegpo/webshop/md": (
        ("milegpo", {"recipe": "webshop", "stage": "md"}),
        slow.milegpo,
        {"recipe": slow.WEBSHOP, "stage": "md"},
    ),
}


@st.composite
def walks(draw):
    """Several tasks over the same few state names, every trajectory from S, rows shuffled."""
    records = []
    for task in range(draw(st.integers(1, 3))):
        outcome = draw(st.sampled_from(["fail", "succeed", "mixed"]))
        for trajectory in range(draw(st.integers(1, 5))):
            states = "S" + draw(st.text("SABCD", min_size=1, max_size=7))
            success = outcome == "succeed" or (outcome == "mixed" and draw(st.booleans()))
            steps = len(states) - (not success)
            malformed = [at for at in range(steps) if draw(st.integers(0, 4)) == 0]
            rewards = None
            if draw(st.integers(0, 2)) == 0:
                few = st.sampled_from([0.0, 0.1, 0.3, 1.0, -0.5])
                rewards = draw(st.lists(few, min_size=steps, max_size=steps))
            records += path(
                f"q{task}",
                str(trajectory),
                states,
                success=success,
                malformed=malformed,
                rewards=rewards,
            )
    return draw(st.permutations(records))


def check(records, label, convention):
    (name, chosen), reference, arguments = REFERENCES[label]
    found = advantages(Rollouts.from_steps(records), name, convention=convention, **chosen)
    np.testing.assert_allclose(found, reference(records, convention, **arguments), **CLOSE)


@pytest.mark.parametrize("convention", ["paper", "verl-agent"])
@pytest.mark.parametrize("label", REFERENCES)
@settings(max_examples=60, deadline=None)
@given(records=walks())
def test_fast_is_slow_on_random_walks(label, convention, records):
    check(records, label, convention)


@pytest.mark.parametrize("convention", ["paper", "verl-agent"])
@pytest.mark.parametrize("label", REFERENCES)
def test_fast_is_slow_on_worked_cases_and_longer_walks(label, convention):
    for case in vector_cases():
        check(case["records"], label, convention)
    check(random_records(0, tasks=2, group=8, horizon=25, states=12), label, convention)


@pytest.mark.parametrize("norm", ["mean_std", "mean"])
@settings(max_examples=60, deadline=None)
@given(records=walks())
def test_progpo_is_its_slow_reading(norm, records):
    found = advantages(Rollouts.from_steps(records), "progpo", norm=norm)
    np.testing.assert_allclose(found, slow.progpo(records, norm), **CLOSE)


@settings(max_examples=60, deadline=None)
@given(records=walks(), seed=st.integers(0, 100))
def test_progpo_borrows_from_the_nearest_states(records, seed):
    rng = np.random.default_rng(seed)
    embeddings = {state: rng.normal(size=4) for state in "SABCD"}
    found = advantages(Rollouts.from_steps(records), "progpo", embeddings=embeddings)
    np.testing.assert_allclose(found, slow.progpo(records, embeddings=embeddings), **CLOSE)


@pytest.mark.parametrize("across", [False, True])
@settings(max_examples=60, deadline=None)
@given(records=walks(), seed=st.integers(0, 100), gamma=st.sampled_from([1.0, 0.9]))
def test_ppo_is_its_slow_reading(across, records, seed, gamma):
    rng = np.random.default_rng(seed)
    values = [rng.normal(size=rng.integers(1, 4)) for _ in records]
    ppo = make_estimator("ppo", gamma=gamma, gae_lambda=0.8, bootstrap_across_steps=across)
    assert isinstance(ppo, PPO)
    rollouts = Rollouts.from_steps(records)
    raw, white = slow.ppo(records, values, gamma, 0.8, across)
    for found, wanted in ((ppo.gae(rollouts, values), raw), (ppo(rollouts, values), white)):
        assert [len(row) for row in found] == [len(row) for row in wanted]
        np.testing.assert_allclose(np.concatenate(found), np.concatenate(wanted), **CLOSE)
