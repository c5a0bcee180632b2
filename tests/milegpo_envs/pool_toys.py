"""Houses that misbehave, made from module level so that worker processes can make them too."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import gymnasium as gym

from milegpo_envs.pool import Info, MakeEnv, Pool, Step
from milegpo_envs.spaces import Message
from milegpo_envs.wrappers import Prompted
from tests.toys import HOUSE_ID, TASKS, House, solution, well_formed

TASK_IDS = tuple(TASKS)
MAKE = MakeEnv(f"tests.toys:{HOUSE_ID}", wrappers=(partial(Prompted, style="compact"),))


def failing(fails_on: str) -> MakeEnv:
    return MakeEnv(f"tests.toys:{HOUSE_ID}", {"fails_on": fails_on}, (Prompted,))


class Moody(House):
    """Obeys more commands than a house: "hang", "die", "exit", "raise odd", "info"."""

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if action == "hang":
            time.sleep(600)
        if action == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if action == "exit":
            os._exit(7)
        if action == "raise odd":
            raise OddError(1, 2)
        observation, reward, terminated, truncated, info = super().step(action)
        if action == "info":
            info["unpicklable"] = lambda: None
        return observation, reward, terminated, truncated, {**info, "pid": os.getpid()}


class HangsAtReset(House):
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        if (options or {}).get("task") == "reach-attic":
            time.sleep(600)
        return super().reset(seed=seed, options=options)


class OddError(Exception):
    """Cannot be unpickled: its constructor wants two arguments."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


def moody() -> gym.Env[list[Message], str]:
    return Prompted(Moody())


def hangs_at_reset() -> gym.Env[list[Message], str]:
    return Prompted(HangsAtReset())


def cannot_be_made() -> gym.Env[list[Message], str]:
    raise OddError(3, 4)


def suicidal() -> gym.Env[list[Message], str]:
    os._exit(9)


class Untransportable:
    """Pickles, but raises where it is unpickled."""

    def __call__(self) -> gym.Env[list[Message], str]:
        return moody()

    def __reduce__(self) -> tuple[Any, ...]:
        return _refuse, ("no such setting here",)


def _refuse(text: str) -> None:
    raise ValueError(text)


def played(pool: Pool, tasks: Sequence[str]) -> list[list[tuple[list[Message], Info] | Step]]:
    """All answers of every slot, while each follows its solution with a stumble on the way."""
    answers: list[list[Any]] = [[start] for start in pool.reset(tasks)]
    plans = {slot: [*solution(task), "dance"] for slot, task in enumerate(tasks)}
    plans = {slot: [plan[0], "dance", *plan[1:]] for slot, plan in plans.items()}
    while plans:
        replies = {slot: well_formed(plan.pop(0)) for slot, plan in plans.items()}
        for slot, step in pool.step(replies).items():
            answers[slot].append(step)
            if step[2] or step[3]:
                del plans[slot]
    return answers
