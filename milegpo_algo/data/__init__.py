"""Rollouts as columns, the checks on what callers give, and Parquet."""

from milegpo_algo.data.checks import COLUMNS, BoolArray, FloatArray, RolloutError
from milegpo_algo.data.keys import IntArray, compact
from milegpo_algo.data.rollouts import GOAL, GOAL_NAME, Rollouts

__all__ = [
    "COLUMNS",
    "GOAL",
    "GOAL_NAME",
    "BoolArray",
    "FloatArray",
    "IntArray",
    "RolloutError",
    "Rollouts",
    "compact",
]
