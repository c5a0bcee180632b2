"""The parts of an advantage add up to it, whatever the estimator and its settings."""

import numpy as np
import pytest

from milegpo_algo import StepEstimator, estimator_names, make_estimator
from milegpo_algo.breakdown import breakdown
from milegpo_algo.estimator import CONVENTIONS, RECIPES
from tests.milegpo_algo.toy_rollouts import fork_records, random_records, rollouts

STEPWISE = [n for n in estimator_names() if issubclass(type(make_estimator(n)), StepEstimator)]
FURTHER = {"hgpo": {"base_group": True}, "milegpo": {"stage": "md", "step_weight": 0.5}}


@pytest.mark.parametrize("name", STEPWISE)
@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("seed", range(4))
def test_parts_add_up_to_the_advantage(name, convention, seed):
    steps = rollouts(random_records(seed))
    recipes = [None, *(r for r in RECIPES if r in type(make_estimator(name)).recipes)]
    variants = [{"recipe": r} for r in recipes] + [FURTHER.get(name, {"penalty": 1.0})]
    for variant in variants:
        estimator = make_estimator(name, convention=convention, **variant)
        terms = breakdown(estimator, steps)
        total = sum(term.values for term in terms if term.part)
        np.testing.assert_allclose(total, estimator(steps), rtol=0, atol=1e-9)
        assert all(term.values.shape == (len(steps),) for term in terms)


def test_terms_say_what_a_step_was_compared_with():
    # Out of S of the fork: trajectories 1 and 2 succeed in 3 and 2 steps, 3 fails.
    steps = rollouts(fork_records())
    terms = {term.name: term.values for term in breakdown(make_estimator("graphgpo"), steps)}
    assert terms["distance that remains"].tolist()[:3] == [2.0, 1.0, 0.0]  # A, B, goal
    assert terms["steps compared at the state"][0] == 3.0
    assert terms["scores compared"][0] == 3.0
    assert terms["score"].tolist() == [10.0] * 5 + [0.0] * 3
