"""Our environments as Gymnasium's vector environments, with a task for every slot.

    envs = gym.make_vec("milegpo/ALFWorld-v0", num_envs=8, autoreset_mode="Disabled")
    observations, infos = envs.reset(options={"task": [id, ...]})        # one task a slot

The classes are Gymnasium's own: ``SyncVectorEnv`` in this process, ``AsyncVectorEnv`` with a
process for every environment, started by "spawn", where the environment wants processes.
Observations are a tuple of texts, infos Gymnasium's arrays. What is added is that `options["task"]`
may be a sequence with an entry for every slot, also beside Gymnasium's "reset_mask".

Autoreset draws its next task at random, as Gymnasium resets without options then. So where tasks
matter use "Disabled", or the pools (`milegpo_envs.pool`): these also survive broken games, and let
finished slots wait.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import gymnasium as gym
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

import milegpo_envs
from milegpo_envs.pool import ChoosesItsPool, MakeEnv

Texts = tuple[str, ...]


class TaskOfSlot(gym.Wrapper[Any, Any, Any, Any]):
    """Picks the slot's own entry out of ``options["task"]``, if that is not one text for all."""

    def __init__(self, env: gym.Env[Any, Any], slot: int, slots: int) -> None:
        super().__init__(env)
        self._slot, self._slots = slot, slots

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset to the slot's task."""
        if options is not None and "task" in options and not isinstance(options["task"], str):
            tasks = list(options["task"])
            if len(tasks) != self._slots:
                raise ValueError(f"{len(tasks)} tasks for {self._slots} slots: give one for each.")
            options = {**options, "task": tasks[self._slot]}
        return self.env.reset(seed=seed, options=options)


# Any: what gym.make takes.
def make_vector(
    env_id: str,
    num_envs: int = 1,
    *,
    autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    processes: bool | None = None,
    wrappers: Sequence[Callable[[gym.Env[Any, Any]], gym.Env[Any, Any]]] = (),
    **settings: Any,
) -> VectorEnv[Texts, Texts, Any]:
    """Make a vector environment; ``gym.make_vec`` comes here.

    Args:
        env_id: a registered id.
        num_envs: number of slots.
        autoreset_mode: Gymnasium's "NextStep", "SameStep" or "Disabled".
        processes: whether every environment has a process; None asks the environment (see
            ``pool.ChoosesItsPool``).
        wrappers: put around each environment, in this order.
        settings: arguments of ``gym.make``.
    """
    makers = [
        MakeEnv(env_id, settings, (*wrappers, partial(TaskOfSlot, slot=slot, slots=num_envs)))
        for slot in range(num_envs)
    ]
    if processes is None:
        env = makers[0]()
        base = env.unwrapped
        processes = isinstance(base, ChoosesItsPool) and base.wants_processes
        env.close()
    if processes:
        return AsyncVectorEnv(
            makers, shared_memory=False, context="spawn", autoreset_mode=autoreset_mode
        )
    return SyncVectorEnv(makers, autoreset_mode=autoreset_mode)


def __getattr__(name: str) -> Callable[..., VectorEnv[Texts, Texts, Any]]:
    """A registered id is an attribute: ``gym.register`` wants "module:attribute" to make it."""
    if name not in milegpo_envs.ENTRY_POINTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return partial(make_vector, name)
