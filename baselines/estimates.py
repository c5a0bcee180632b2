"""Estimates from few runs: interquartile mean, probability of improvement, bootstrap intervals.

As in Agarwal et al. 2021, "Deep reinforcement learning at the edge of the statistical precipice"
(arXiv:2108.13264). Scores are matrices of runs x tasks, each entry a task's score averaged over the
evaluation seeds. Intervals are of a stratified bootstrap: for each task on its own, as many runs as
there are are drawn with replacement; tasks are not resampled. So an interval speaks of this panel
and of other training seeds.

The authors' package draws from numpy's global generator whatever ``random_state`` it is given;
here the generator's seed is 0 and the same scores have the same interval.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import trim_mean

RESAMPLES = 5000
_AT_ONCE = 200  # so that resamples of a large panel fit into memory
Scores = NDArray[np.float64]
Interval = tuple[float, float]


def mean(scores: Scores) -> Scores:
    """Return the mean of scores (..., runs, tasks) over runs and tasks."""
    return np.asarray(scores.mean(axis=(-2, -1)))


def interquartile_mean(scores: Scores) -> Scores:
    """Return the mean of the middle half of all entries of scores (..., runs, tasks)."""
    flat = scores.reshape(*scores.shape[:-2], -1)
    return np.asarray(trim_mean(flat, 0.25, axis=-1))


def improvement(scores: Scores, others: Scores) -> Scores:
    """Return P(X > Y) + P(X = Y) / 2 for a run of each on one task, averaged over tasks.

    The Mann-Whitney statistic over the number of pairs; 0.5 where nothing tells the two apart.

    Args:
        scores: (..., runs, tasks).
        others: (..., other runs, the same tasks).
    """
    differences = np.sign(scores[..., :, None, :] - others[..., None, :, :])
    return np.asarray((differences.mean(axis=(-3, -2, -1)) + 1.0) / 2.0)


def interval(scores: Scores) -> Interval | None:
    """Return the 95 % interval of the mean of scores (runs, tasks); None for a single run."""
    return bootstrap(mean, scores)


def bootstrap(
    estimate: Callable[..., Scores], *samples: Scores, resamples: int = RESAMPLES
) -> Interval | None:
    """Return the 95 % percentile interval of an estimate; None where a sample is a single run.

    Args:
        estimate: of samples like those given, with an axis of resamples before them.
        samples: each (runs, tasks), drawn from independently of each other.
        resamples: how many.
    """
    if any(len(sample) < 2 for sample in samples):
        return None
    rng = np.random.default_rng(0)
    found = []
    for start in range(0, resamples, _AT_ONCE):
        number = min(_AT_ONCE, resamples - start)
        drawn = [
            sample[
                rng.integers(len(sample), size=(number, *sample.shape)), np.arange(sample.shape[1])
            ]
            for sample in samples
        ]
        found.append(estimate(*drawn))
    low, high = np.percentile(np.concatenate(found), [2.5, 97.5])
    return float(low), float(high)
