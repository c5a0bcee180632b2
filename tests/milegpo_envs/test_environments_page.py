"""docs/environments.md: its environment keeps the contract, in a pool too."""

import re
import sys
from pathlib import Path

import gymnasium as gym
import pytest
from gymnasium.utils.env_checker import check_env

from milegpo_envs.pool import MakeEnv, make_pool
from milegpo_envs.wrappers import Prompted

PAGE = (Path(__file__).parents[2] / "docs" / "environments.md").read_text()


@pytest.fixture
def corridor(tmp_path, monkeypatch):
    first = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]
    (tmp_path / "corridor.py").write_text(first)
    monkeypatch.syspath_prepend(tmp_path)
    yield "corridor:me/Corridor-v0"
    gym.registry.pop("me/Corridor-v0", None)
    sys.modules.pop("corridor", None)


def test_gymnasium_accepts_the_environment(corridor):
    check_env(gym.make(corridor).unwrapped)


def test_the_way_to_the_door_is_a_success_and_a_wrong_action_costs_a_step(corridor):
    pool = make_pool(MakeEnv(corridor, {"split": "test"}, (Prompted,)), size=2)
    pool.reset(["test:0", "test:1"])  # the doors are at 0 and at 4, the player at 2
    for reply in ("left", "right"):
        said = f"<think>x</think><action>{reply}</action>"
        answers = pool.step(dict.fromkeys((0, 1), said))
    assert [answers[slot][4]["success"] for slot in (0, 1)] == [False, False]
    answers = pool.step({0: "<think>x</think><action>up</action>"})
    assert answers[0][4]["action_valid"] is False
    for _ in range(2):
        answers = pool.step({0: "<think>x</think><action>left</action>"})
    assert answers[0][1:3] == (10.0, True)
    assert answers[0][4]["success"] is True
    pool.close()
