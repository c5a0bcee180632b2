"""Noisy expert episodes, as pairs of chat messages and the reply to learn.

With probability ``noise`` a step takes a random action from the prompt's list instead of the
expert's, and that is also what the reply says: a policy that imitates such episodes knows what to
do, and does it too seldom, which is what reinforcement learning can mend. Experts see what the
policy sees and no more. An environment's folder declares its own in the module `experts`.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import gymnasium as gym

from milegpo_envs.errors import unknown_name
from milegpo_envs.parts import offering, part
from milegpo_envs.spaces import Message
from milegpo_envs.wrappers import Prompted


class Expert(Protocol):
    """A player that reads observations and says what it is after."""

    def reset(self, observation: str, admissible: Sequence[str]) -> None:
        """Begin an episode with its first observation."""
        ...

    def act(self, observation: str, admissible: Sequence[str]) -> str:
        """Return the next action."""
        ...

    @property
    def intention(self) -> str:
        """Say in a few words what the last action of ``act`` is for."""
        ...


@functools.cache
def experts() -> Mapping[str, Callable[[], Expert]]:
    """Environment id -> expert to imitate, from `EXPERTS` of the environments' folders."""
    found: dict[str, Callable[[], Expert]] = {}
    for name in offering("experts"):
        found.update(part(name, "experts").EXPERTS)
    return found


def expert_for(env_id: str) -> Expert:
    """Make the expert of an environment.

    Raises:
        UnknownName: no expert is known for it; start from a trained model instead.
    """
    if env_id not in experts():
        raise unknown_name("expert for", env_id, experts())
    return experts()[env_id]()


@dataclass(frozen=True)
class Demonstration:
    """One step to imitate: the prompt and the whole reply."""

    messages: list[Message]
    reply: str


class _Watched(gym.Wrapper[str, str, str, str]):
    """Remembers the last observation and info, which a prompt hides."""

    observation: str = ""
    admissible: tuple[str, ...] = ()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        if not isinstance(observation, str):
            raise ValueError(
                "Experts read text, and this environment shows pictures: give a model to start "
                "from (--model), or take observation='text'."
            )
        self.observation = observation
        self.admissible = tuple(info["admissible_actions"])
        return self.observation, info

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.observation, reward, terminated, truncated, info = self.env.step(action)
        self.admissible = tuple(info["admissible_actions"])
        return self.observation, float(reward), terminated, truncated, info


def demonstrate(
    env: gym.Env[str, str],
    expert: Expert,
    task_ids: Sequence[str],
    *,
    noise: float,
    seed: int,
    style: str,
    history: int,
) -> Iterator[tuple[list[Demonstration], bool]]:
    """Play each task once.

    Args:
        env: text environment, not yet ``Prompted``.
        expert: to imitate.
        task_ids: one episode each, in this order.
        noise: probability of a random action from the prompt's list in place of the expert's.
        seed: of the noise; with a task's id it decides that episode alone.
        style: of the prompts.
        history: of the prompts.

    Yields:
        The steps of an episode and whether it succeeded.

    Raises:
        ValueError: the environment shows pictures.
    """
    watched = _Watched(env)
    prompted = Prompted(watched, history=history, style=style)
    hidden = prompted.template.hidden
    for task_id in task_ids:
        draws = random.Random(f"{seed}/{task_id}")
        messages, _ = prompted.reset(options={"task": task_id})
        expert.reset(watched.observation, watched.admissible)
        steps: list[Demonstration] = []
        over, success = False, False
        while not over:
            action = expert.act(watched.observation, watched.admissible)
            if draws.random() < noise:
                action = draws.choice([a for a in watched.admissible if a not in hidden])
            reply = f"<think>{expert.intention}</think><action>{action}</action>"
            steps.append(Demonstration(messages, reply))
            messages, _, terminated, truncated, info = prompted.step(reply)
            over, success = terminated or truncated, bool(info["success"])
        yield steps, success
