"""Copies of environments, for searches that look ahead, and tasks that cannot be looked up."""

import copy
import pickle

import gymnasium as gym
import pytest

import milegpo_envs  # noqa: F401  # registers
from milegpo_envs.errors import UnknownName

SETTINGS = {
    "milegpo/ALFWorld-v0": {"size": "small"},
    "milegpo/Sokoban-v0": {},
    "milegpo/WebShop-v0": {"products": 50},
}


@pytest.fixture(params=SETTINGS)
def make(request):
    return lambda: gym.make(request.param, **SETTINGS[request.param]).unwrapped


def test_a_deep_copy_goes_its_own_way(make):
    env, alone = make(), make()
    _, info = env.reset(seed=1)
    alone.reset(seed=1)
    for at in range(4):
        actions = info["admissible_actions"]
        if not actions:  # bought
            break
        strayed, same = copy.deepcopy(env), copy.deepcopy(env)
        for action in actions[:3]:
            strayed.step(action)
        chosen = actions[at % len(actions)]
        *_, info = env.step(chosen)
        assert info == same.step(chosen)[4] == alone.step(chosen)[4]
    assert at >= 2


@pytest.mark.parametrize("env_id", SETTINGS)
def test_a_pickled_environment_goes_on_equally(env_id):
    env = gym.make(env_id, **SETTINGS[env_id])
    unborn = pickle.loads(pickle.dumps(env))
    observation, info = env.reset(seed=1)
    assert unborn.reset(seed=1) == (observation, info)
    for at in range(8):
        thawed = pickle.loads(pickle.dumps(env))
        if not info["admissible_actions"]:  # bought
            break
        action = info["admissible_actions"][3 * at % len(info["admissible_actions"])]
        expected = env.step(action)
        assert thawed.step(action) == expected
        info = expected[4]
    assert at >= 2
    assert thawed.reset() == env.reset()  # the next task is drawn from the same generator


@pytest.mark.parametrize("task", [["a"], {"a": 1}, b"a", ""])
def test_what_cannot_be_a_task_is_refused_as_one_that_is_not_there(make, task):
    with pytest.raises(UnknownName, match="Unknown task"):
        make().reset(options={"task": task})
