import gymnasium as gym
import pytest

import milegpo_envs
from baselines.demonstrations import demonstrate, expert_for, experts
from milegpo_envs.errors import UnknownName


def test_experts_are_found_in_the_environments_folders():
    assert set(experts()) == set(milegpo_envs.ENTRY_POINTS)
    with pytest.raises(UnknownName, match="milegpo/Sokoban-v0"):
        expert_for("milegpo/Nope-v0")


@pytest.mark.parametrize("observation", ["image", "both"])
def test_an_expert_of_texts_is_not_shown_pictures(observation):
    env = gym.make("milegpo/Sokoban-v0", observation=observation)
    episodes = demonstrate(
        env,
        expert_for("milegpo/Sokoban-v0"),
        env.unwrapped.task_ids()[:1],
        noise=0.0,
        seed=0,
        style="compact",
        history=0,
    )
    with pytest.raises(ValueError, match="--model"):
        next(episodes)
