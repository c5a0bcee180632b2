"""Step-level credit for language-model agents.

    from milegpo_algo import Rollouts, advantages

    rollouts = Rollouts.from_steps(records)
    advantages(rollouts, "milegpo", recipe="webshop", convention="paper", stage="rcs")

Importing this package needs numpy and scipy only; the trainer lives in `milegpo_algo.trainer`.
"""

from milegpo_algo import estimators as _estimators  # noqa: F401  registers the estimators
from milegpo_algo.data import GOAL, GOAL_NAME, RolloutError, Rollouts
from milegpo_algo.estimator import (
    Estimator,
    SettingError,
    StepEstimator,
    TokenEstimator,
    UnknownEstimator,
    UnknownSetting,
    advantages,
    estimator_names,
    make_estimator,
)

__all__ = [
    "GOAL",
    "GOAL_NAME",
    "Estimator",
    "RolloutError",
    "Rollouts",
    "SettingError",
    "StepEstimator",
    "TokenEstimator",
    "UnknownEstimator",
    "UnknownSetting",
    "advantages",
    "estimator_names",
    "make_estimator",
]
