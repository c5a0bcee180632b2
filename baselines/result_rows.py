"""What rows of trained policies and of agents say alike: where, how, and by which code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from transformers import PreTrainedModel

from baselines.environments import Place
from baselines.evaluation import Played, summary
from baselines.runs import code_version, versions
from milegpo_envs.panels import Panel


def evaluated(
    place: Place,
    panel: Panel,
    played: Sequence[Played],
    *,
    seeds: Sequence[int],
    temperature: float,
    max_completion_length: int,
) -> dict[str, object]:
    """Return the part of a result row that describes an evaluation and its place.

    Args:
        place: environment, settings and prompts.
        panel: that was played.
        played: once per task and seed.
        seeds: of the replies.
        temperature: of the replies.
        max_completion_length: of a reply, in tokens.
    """
    return {
        "env_id": place.env_id,
        "env_settings": dict(place.settings),
        "protocol": {
            "horizon": place.horizon,
            "history": place.history,
            "prompt_style": place.style,
            "eval_temperature": temperature,
            "max_completion_length": max_completion_length,
        },
        "panel": {**panel.describe(), "data": panel.data},
        "eval_seeds": list(seeds),
        "versions": versions(),
        "code": code_version(),
        **summary(played),
    }


def engine(sampling: str, model: PreTrainedModel | None, place: Place) -> Mapping[str, object]:
    """Say what produced the replies and the steps.

    Args:
        sampling: "transformers", "vllm", or the address of an endpoint.
        model: that sampled, if it is in this process.
        place: whose environments were stepped.
    """
    return {
        "sampling": sampling,
        "device": None if model is None else str(model.device),
        "dtype": None if model is None else str(model.dtype).removeprefix("torch."),
        "threads": torch.get_num_threads(),
        "environment": str(place.settings.get("engine", "auto")),
    }
