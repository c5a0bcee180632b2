import gymnasium as gym
import pytest

import milegpo_envs  # noqa: F401  # registers the environments
from milegpo_envs.webshop.experts import ReadingExpert
from milegpo_envs.webshop.shortest import shortest_purchase


def play(env, task):
    observation, info = env.reset(options={"task": task})
    expert = ReadingExpert()
    expert.reset(observation, info["admissible_actions"])
    over = False
    while not over:
        action = expert.act(observation, info["admissible_actions"])
        assert expert.intention
        observation, _, terminated, truncated, info = env.step(action)
        assert info["action_valid"], action
        over = terminated or truncated
    return info["success"]


@pytest.mark.parametrize("observation", ["text_rich", "text"])
def test_a_reader_buys_the_right_thing_more_often_than_not(observation):
    env = gym.make("milegpo/WebShop-v0", observation=observation, products=300)
    assert sum(play(env, task) for task in range(40)) > 20


def test_the_shortest_purchase_is_worth_the_maximum():
    env = gym.make("milegpo/WebShop-v0", products=300)
    for task in range(40):
        env.reset(options={"task": task})
        actions = shortest_purchase(env.unwrapped.opened, task)
        for action in actions:
            *_, info = env.step(action)
        assert info["success"]
        assert info["score"] == info["max_reward"] == 1.0
        assert len(actions) == 3 + len(env.unwrapped.goal.option_values)
