"""The environment contract as one check, for every environment's tests to call."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import gymnasium as gym

from milegpo_envs.state import state_id

KEYS: Mapping[str, type | tuple[type, ...]] = {
    "task_id": str,
    "state_id": str,
    "admissible_actions": list,
    "action_valid": bool,
    "invalid_reason": (str, type(None)),
    "success": bool,
    "score": float,
}
NONSENSE = "sing \N{SNOWMAN} \x00 <action>"


@contextmanager
def gymnasium_is_content() -> Iterator[None]:
    """Take what Gymnasium's checkers warn of for an error.

    Not what stands in the way of every environment of text, and not what other tests left open.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*no render modes.*")
        warnings.filterwarnings("ignore", message=".*different from the unwrapped version.*")
        warnings.filterwarnings("ignore", category=ResourceWarning)
        yield


def check_contract(env: gym.Env[str, str], task_id: str, actions: list[str]) -> None:
    """Play `actions`, which solve the task, from `env` as `gym.make` gave it, and check all."""
    infos = list(_played(env, task_id, actions))
    for (reward, terminated, info), last in infos:
        assert info["success"] is last
        assert terminated is last
        assert reward == (10.0 if last else 0.0)
    assert infos[-1][1], "the actions given do not solve the task"
    _check_nonsense(env, task_id)
    _check_routes(env, task_id, actions)


def check_info(info: Mapping[str, Any], task_id: str) -> None:
    """Check the keys, their types, and that the id hashes the readable state."""
    for key, kind in KEYS.items():
        assert isinstance(info[key], kind), (key, info[key])
    assert info["task_id"] == task_id
    assert info["admissible_actions"] == sorted(info["admissible_actions"])
    assert all(type(action) is str for action in info["admissible_actions"])
    assert info["action_valid"] is (info["invalid_reason"] is None)
    assert len(info["state_id"]) == 32
    assert state_id(json.loads(json.dumps(info["state"]))) == info["state_id"]


def _played(
    env: gym.Env[str, str], task_id: str, actions: list[str]
) -> Iterator[tuple[tuple[float, bool, dict[str, Any]], bool]]:
    observation, info = env.reset(options={"task": task_id})
    assert observation in env.observation_space
    check_info(info, task_id)
    assert info["success"] is False
    assert info["action_valid"] is True
    for count, action in enumerate(actions, start=1):
        before = info
        observation, reward, terminated, _, info = env.step(action)
        assert observation in env.observation_space
        assert info is not before
        assert info["action_valid"] is True, (action, before["admissible_actions"])
        check_info(info, task_id)
        yield (float(reward), terminated, info), count == len(actions)


def _check_nonsense(env: gym.Env[str, str], task_id: str) -> None:
    _, before = env.reset(options={"task": task_id})
    for action in ("", NONSENSE, "\ud800", "x" * 100_000):
        _, reward, terminated, truncated, info = env.step(action)
        check_info(info, task_id)
        assert info["action_valid"] is False
        assert info["state_id"] == before["state_id"]
        assert (reward, terminated, truncated) == (0.0, False, False)


def _check_routes(env: gym.Env[str, str], task_id: str, actions: list[str]) -> None:
    """The same actions give the same ids, with or without a stumble on the way."""
    _, info = env.reset(options={"task": task_id})
    straight = [info["state_id"], *(env.step(action)[4]["state_id"] for action in actions)]
    _, info = env.reset(options={"task": task_id})
    env.step(NONSENSE)
    assert [info["state_id"], *(env.step(action)[4]["state_id"] for action in actions)] == straight
