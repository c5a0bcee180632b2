"""Memory grows with the steps only. Time is measured by ``scripts.bench estimators``, not here."""

import tracemalloc

import pytest

from milegpo_algo import Rollouts, StepEstimator, estimator_names, make_estimator
from tests.milegpo_algo.toy_rollouts import random_records

STEP_LEVEL = sorted(set(estimator_names()) - {"ppo"})


@pytest.mark.parametrize("name", STEP_LEVEL)
def test_memory_grows_with_the_steps_only(name):
    estimator = make_estimator(name)
    assert isinstance(estimator, StepEstimator)
    many = Rollouts.from_steps(random_records(0, tasks=600, group=8, horizon=50, states=30))
    tracemalloc.start()
    estimator(many)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1000 * len(many)  # bytes: 1 GB for a million steps
