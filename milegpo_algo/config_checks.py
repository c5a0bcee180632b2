"""What a training run cannot be set to, and what to set instead; reads settings, changes none."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal, cast, get_args

Settings = Mapping[str, object]
Penalise = Literal["format", "admissible", "both"]

LOSSES_BY_TOKEN = ("dapo", "bnpo", "cispo", "vespo")
"""Loss types of TRL that average over tokens."""

LOSSES_BY_ROW = ("grpo", "sapo", "dr_grpo", "luspo")
"""Loss types of TRL that average over rows."""

MOST_EPISODES = 2**20
"""Episodes an iteration may have: all are in memory, some kilobytes for each of their steps."""

# Settings of GRPOConfig that have no meaning here, the value that is let through, and what to do
# instead.
_WITHOUT_MEANING: Mapping[str, tuple[object, str]] = {
    "gradient_accumulation_steps": (
        1,
        "set mini_batch_size (rows an optimizer step) and per_device_train_batch_size (rows a "
        "backward pass)",
    ),
    "reward_weights": (None, "rewards come from the environment"),
    "scale_rewards": ("group", "the estimator normalises; see estimator_settings"),
    "mask_truncated_completions": (False, "cut replies are trained on like any other"),
    "log_completions": (False, "every reply is in the episodes that rollout.collect returns"),
    "use_transformers_continuous_batching": (False, "rollout.hf_backend samples the replies"),
    "generation_kwargs": (None, "set temperature and max_completion_length"),
    "top_p": (1.0, "the loss needs log-probs of the whole distribution"),
    "top_k": (0, "the loss needs log-probs of the whole distribution"),
    "min_p": (None, "the loss needs log-probs of the whole distribution"),
    "repetition_penalty": (1.0, "the loss needs log-probs of the whole distribution"),
}

_CHOICES: Mapping[str, tuple[object, ...]] = {
    "importance_correction": (None, "none", "token_truncate"),
    "critic": ("separate", "shared"),
    "final_checkpoint": ("last", "best"),
    "rollout_halves": (1, 2),
    "penalise": get_args(Penalise),
    "loss_type": LOSSES_BY_TOKEN + LOSSES_BY_ROW,
}

_FROM_ONE = (
    "tasks_per_iteration",
    "num_generations",
    "num_iterations",
    "mini_batch_size",
    "max_prompt_tokens",
    "generation_rows",
    "dynamic_sampling_rounds",
    "max_completion_length",
    "per_device_train_batch_size",
)
_FROM_ZERO = (
    "learning_rate",
    "beta",
    "weight_decay",
    "max_grad_norm",
    "eval_temperature",
    "flat_patience",
    "trajectory_steps",
    "value_coefficient",
    "epsilon",
    "epsilon_high",
)
_ABOVE_ZERO = ("temperature", "critic_learning_rate")
_LIMITS = ("kl_limit", "importance_cap", "value_clip")


def check(settings: Settings) -> None:
    """Refuse settings without effect or sense.

    Raises:
        ValueError: names the setting, its value and the remedy.
    """
    _check_meaning(settings)
    _check_numbers(settings)
    top = 1 + _number(settings, "epsilon")
    if settings["delta"] is not None and not _number(settings, "delta") > top:
        raise ValueError(
            f"delta={settings['delta']}: the dual clip must be above the clip, 1 + epsilon = "
            f"{top}; None is no dual clip."
        )
    tasks, rollouts = (_number(settings, n) for n in ("tasks_per_iteration", "num_generations"))
    if tasks * rollouts > MOST_EPISODES:
        raise ValueError(
            f"tasks_per_iteration={tasks} and num_generations={rollouts} are "
            f"{tasks * rollouts:,} episodes an iteration, which no memory holds: at most "
            f"{MOST_EPISODES:,}. The papers play 16 tasks 8 times."
        )


def _check_meaning(settings: Settings) -> None:
    for name, (neutral, remedy) in _WITHOUT_MEANING.items():
        if settings[name] != neutral:
            raise ValueError(f"{name}={settings[name]!r} has no effect here: {remedy}.")
    for name, choices in _CHOICES.items():
        if settings[name] not in choices:
            valid = ", ".join(str(choice) for choice in choices if choice is not None)
            raise ValueError(f"{name}={settings[name]!r}: choose one of {valid}.")


def _check_numbers(settings: Settings) -> None:
    """Ranges, written so that what is not a number is in none of them."""
    for name in _FROM_ONE:
        if not _number(settings, name) >= 1:
            raise ValueError(f"{name}={settings[name]}: must be at least 1.")
    for name in _FROM_ZERO:
        if settings[name] is not None and not 0 <= _number(settings, name) < math.inf:
            raise ValueError(f"{name}={settings[name]}: must be a number, at least 0.")
    for name in _ABOVE_ZERO:
        if not 0 < _number(settings, name) < math.inf:
            raise ValueError(f"{name}={settings[name]}: must be a number above 0.")
    for name in _LIMITS:
        if not _number(settings, name) > 0:
            raise ValueError(f"{name}={settings[name]}: must be above 0.")
    if not math.isfinite(_number(settings, "entropy_coef")):
        raise ValueError(f"entropy_coef={settings['entropy_coef']}: must be a number; 0 is none.")
    if not 0 <= _number(settings, "seed") < 2**32:
        raise ValueError(f"seed={settings['seed']}: must be from 0 to {2**32 - 1}.")


def _number(settings: Settings, name: str) -> float:
    return cast(float, settings[name])
