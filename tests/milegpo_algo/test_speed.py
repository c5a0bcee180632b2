"""Credit is cheap: bounds several times above what was measured, in CPU time of this process."""

import time
import tracemalloc
from functools import partial
from hashlib import blake2b

import pytest

from milegpo_algo import Rollouts, StepEstimator, estimator_names, make_estimator
from milegpo_algo.data.checks import intern
from tests.milegpo_algo import slow_reference as slow
from tests.milegpo_algo.toy_rollouts import random_records

STEP_LEVEL = sorted(set(estimator_names()) - {"ppo"})


def quickest(run, repeats=5):
    spent = []
    for _ in range(repeats):
        begun = time.process_time()
        run()
        spent.append(time.process_time() - begun)
    return min(spent)


def iteration(tasks):
    """Eight walks a task of about 25 steps over 30 states."""
    return random_records(0, tasks=tasks, group=8, horizon=50, states=30)


def test_milegpo_is_twenty_times_faster_than_plain_python():
    records = iteration(16)
    fast = quickest(partial(make_estimator("milegpo"), Rollouts.from_steps(records)))
    plain = quickest(partial(slow.milegpo, records, number=float), 1)
    assert plain > 20 * fast


def test_numbering_texts_costs_less_than_three_times_their_hash():
    texts = [f"{i % 900} ".ljust(600, "x") for i in range(12_800)]
    fresh = [text[:1] + text[1:] for text in texts]  # Python remembers no hash of these
    hashed = quickest(lambda: [blake2b(text.encode(), digest_size=16) for text in texts])
    assert quickest(partial(intern, fresh), 1) < 3 * hashed


@pytest.mark.parametrize("name", STEP_LEVEL)
def test_time_and_memory_grow_with_the_steps_only(name):
    estimator = make_estimator(name)
    assert isinstance(estimator, StepEstimator)
    few, many = (Rollouts.from_steps(iteration(tasks)) for tasks in (60, 600))
    ratio = len(many) / len(few)
    bound = 3 * ratio * quickest(partial(estimator, few)) + 0.02
    assert quickest(partial(estimator, many)) < bound
    tracemalloc.start()
    estimator(many)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1000 * len(many)  # bytes: 1 GB for a million steps


@pytest.mark.parametrize("name", STEP_LEVEL)
def test_one_very_long_trajectory_is_no_trap(name):
    def chain(steps):
        return Rollouts.from_columns(
            task_id=["q"] * steps,
            trajectory_id=["1"] * steps,
            step=list(range(steps)),
            state=[str(t) for t in range(steps)],
            action=["on"] * steps,
            next_state=[str(t + 1) for t in range(steps)],
            reward=[0.0] * (steps - 1) + [10.0],
            valid=[True] * steps,
            success=[True] * steps,
        )

    estimator = make_estimator(name)
    short, long = (partial(estimator, chain(steps)) for steps in (3_000, 30_000))
    assert quickest(long, 2) < 30 * quickest(short) + 0.01
