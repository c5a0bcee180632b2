"""How to make an environment, as plain data that can travel to a worker."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym

import milegpo_envs  # noqa: F401  # registers the environments, also where this is unpickled
from milegpo_envs.spaces import Message

Wrap = Callable[[gym.Env[Any, Any]], gym.Env[Any, Any]]


@dataclass(frozen=True)
class MakeEnv:
    """Makes one environment when called.

        MakeEnv("milegpo/ALFWorld-v0", {"split": "train"}, (partial(Prompted, history=2),))

    env_id: a registered id; "module:id" imports the module that registers it first.
    settings: arguments of ``gym.make``.
    wrappers: put around in this order; classes and functions of a module, or partials of them, as
        others cannot be pickled.
    """

    env_id: str
    settings: Mapping[str, Any] = field(default_factory=dict)  # Any: what gym.make takes
    wrappers: tuple[Wrap, ...] = ()

    def __call__(self) -> gym.Env[list[Message], str]:
        """Make it."""
        env: gym.Env[Any, Any] = gym.make(self.env_id, **self.settings)
        for wrap in self.wrappers:
            env = wrap(env)
        return env
