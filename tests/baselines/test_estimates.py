import numpy as np
import pytest
from scipy import stats

from baselines.estimates import bootstrap, improvement, interquartile_mean, interval, mean

SCORES = np.random.default_rng(3).integers(0, 4, (3, 12)) / 3
OTHERS = np.random.default_rng(4).integers(0, 4, (4, 12)) / 3


def test_the_interquartile_mean_drops_a_quarter_at_each_end():
    # 0 0 1 2 3 4 9 9: without 0 0 and 9 9 the mean of 1 2 3 4.
    assert interquartile_mean(np.array([[9.0, 0.0, 1.0, 4.0], [2.0, 3.0, 0.0, 9.0]])) == 2.5


def test_improvement_is_the_mann_whitney_statistic_over_the_pairs():
    theirs = np.mean(
        [
            stats.mannwhitneyu(SCORES[:, task], OTHERS[:, task]).statistic / (3 * 4)
            for task in range(12)
        ]
    )
    assert improvement(SCORES, OTHERS) == pytest.approx(theirs)


def test_improvement_counts_ties_half():
    # Pairs of runs on the only task: 1 > 0 and 1 = 1, so (1 + 1/2) / 2.
    assert improvement(np.array([[1.0]]), np.array([[0.0], [1.0]])) == 0.75
    assert improvement(SCORES, SCORES) == 0.5
    assert improvement(SCORES, OTHERS) == pytest.approx(1 - improvement(OTHERS, SCORES))


@pytest.mark.parametrize("estimate", [mean, interquartile_mean])
def test_estimates_of_a_stack_are_those_of_its_matrices(estimate):
    stack = np.stack([SCORES, SCORES[::-1] ** 2])
    np.testing.assert_allclose(estimate(stack), [estimate(SCORES), estimate(SCORES[::-1] ** 2)])


def test_a_bootstrap_draws_runs_of_each_task_on_its_own():
    # Two runs, one task: a resample holds 0, 1/2 or 1 with probability 1/4, 1/2, 1/4.
    assert interval(np.array([[0.0], [1.0]])) == (0.0, 1.0)
    # Of 400 tasks each drawn on its own, the mean has a spread of sqrt(1/8/400) = 0.018.
    low, high = interval(np.array([np.zeros(400), np.ones(400)]))
    assert high - low == pytest.approx(2 * 1.96 * 0.0177, rel=0.1)


def test_a_bootstrap_does_not_depend_on_how_many_are_drawn_at_once(monkeypatch):
    whole = bootstrap(improvement, SCORES, OTHERS, resamples=300)
    assert whole == bootstrap(improvement, SCORES, OTHERS, resamples=300)
    one = bootstrap(mean, SCORES, resamples=300)
    monkeypatch.setattr("baselines.estimates._AT_ONCE", 7)
    assert one == pytest.approx(bootstrap(mean, SCORES, resamples=300))


def test_a_single_run_has_no_interval():
    assert bootstrap(improvement, SCORES, OTHERS[:1]) is None
