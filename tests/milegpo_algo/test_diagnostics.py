"""Diagnostics, counted by hand on the fork and by brute force on random walks."""

from itertools import combinations

import numpy as np
import pytest

from milegpo_algo import Rollouts, StepEstimator, make_estimator
from milegpo_algo.diagnostics import Share, diagnose, rightly_ranked, tied_pairs
from tests.milegpo_algo.toy_rollouts import fork_records, path, random_records, rollouts


def diagnosis(records, recipe="webshop"):
    made = {name: make_estimator(name, recipe=recipe) for name in ("grpo", "graphgpo", "milegpo")}
    return diagnose(
        Rollouts.from_steps(records),
        graphgpo=made["graphgpo"],
        milegpo=made["milegpo"],
        estimators=made,
    )


def test_the_fork_by_hand():
    found = diagnosis(fork_records())
    # All three leave S, two leave A, two leave B; D is the failure's own.
    assert found.shared_states == Share(7, 8)
    # Pairs: S 3, A 1, B 1. Same action: two of S to A, two of B to the goal.
    # At S, to A and to B differ; at A, to B and to D differ.
    assert found.ties_any == Share(2, 5)
    assert found.ties == Share(0, 3)
    # GraphGPO ties the success and the failure that both go from S to A, and so does any shaping.
    assert found.corrected_any["pcc"] == Share(0, 1)
    assert found.corrected["pcc"] == Share(0, 0)
    assert found.corrected["pcc"].value is None
    # Candidates S, A, B: only B has evidence; S has all successes, A one of two.
    assert found.local_evidence == Share(1, 3)
    assert found.coverage_only == Share(2, 3)
    assert found.weak == Share(0, 3)
    assert found.degenerate_groups == Share(0, 1)
    assert found.effective_rows["grpo"] == Share(8, 8)


def test_shaping_corrects_the_tie_of_equal_distances():
    records = [
        *path("q", "1", "SA", success=True),
        *path("q", "2", "SA", success=True),
        *path("q", "3", "SB", success=True),
        *path("q", "4", "SBX"),
        *path("q", "5", "SBY"),
    ]
    found = diagnosis(records)
    # Through A twice in success, through B twice in failure: four pairs that differ in action.
    assert found.corrected["pcc"] == Share(4, 4)
    assert found.corrected["uniform"] == Share(0, 4)  # every milestone weighs the same
    assert found.corrected_any["pcc"] == Share(4, 6)  # and two where both go to B


@pytest.mark.parametrize("seed", range(8))
def test_counts_are_those_of_brute_force(seed):
    records = random_records(seed, group=6)
    found, data = diagnosis(records), Rollouts.from_steps(records)
    step = make_estimator("graphgpo", recipe="webshop", episode_weight=0.0)
    shaped = make_estimator("milegpo", recipe="webshop", eta=1.0, episode_weight=0.0)
    assert isinstance(step, StepEstimator)
    assert isinstance(shaped, StepEstimator)
    graph, mixed = step(data), shaped(data)  # differences within a group survive Norm "mean"
    ties, ties_any, right, right_any = ([0, 0] for _ in range(4))
    for i, j in combinations(range(len(data)), 2):
        if data.state[i] != data.state[j]:
            continue
        other = data.action[i] != data.action[j]
        tied = abs(graph[i] - graph[j]) <= 1e-6
        for counter, counts in ((ties_any, True), (ties, other)):
            counter[0] += tied and counts
            counter[1] += counts
        if tied and data.success[i] != data.success[j]:
            won, lost = (i, j) if data.success[i] else (j, i)
            for counter, counts in ((right_any, True), (right, other)):
                counter[0] += mixed[won] - mixed[lost] > 1e-6 and counts
                counter[1] += counts
    assert [found.ties.count, found.ties.total] == ties
    assert [found.ties_any.count, found.ties_any.total] == ties_any
    assert [found.corrected["pcc"].count, found.corrected["pcc"].total] == right
    assert [found.corrected_any["pcc"].count, found.corrected_any["pcc"].total] == right_any


def test_two_sets_pool_to_their_union():
    one = [{**record, "task_id": f"one {record['task_id']}"} for record in random_records(1)]
    two = random_records(2)
    assert diagnosis(one) + diagnosis(two) == diagnosis([*one, *two])


def test_pairs_are_counted_without_being_listed():
    values = np.zeros(200_000)  # 2e10 pairs
    assert tied_pairs(values, np.zeros(200_000, dtype=np.int64)).value == 1.0
    success = np.arange(200_000) % 2 == 0
    ranked = rightly_ranked(success.astype(float), success, np.zeros(200_000, dtype=np.int64))
    assert ranked == Share(10**10, 10**10)


def test_groups_that_teach_nothing_are_counted():
    records = [*path("a", "1", "SA"), *path("a", "2", "SB"), *fork_records()]
    found = diagnosis(records)
    assert found.degenerate_groups == Share(1, 2)
    assert found.effective_rows["grpo"] == Share(8, 10)


def test_no_success_at_all_still_reports():
    found = diagnosis(path("a", "1", "SA"))
    assert found.local_evidence == Share(0, 0)
    assert found.json()["weak"] == {"count": 0, "total": 0, "share": None}


def test_all_is_one_success():
    found = diagnosis([*path("q", "1", "SA", success=True)])
    assert found.corrected_any["rcs"] == Share(0, 0)
    assert len(rollouts(path("q", "1", "SA", success=True))) == 2
