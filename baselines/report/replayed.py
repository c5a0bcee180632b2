"""Playing stored actions again, to see what rollouts do not hold: observations, states, the truth.

Every state id that comes up has to be the recorded one; where one is not, or the environment cannot
be made here, the report falls back on the prompts, and says so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym

from baselines.environments import Place
from milegpo_envs.errors import EnvError
from milegpo_envs.parts import offering, part
from milegpo_envs.reports import Truth


@dataclass(frozen=True)
class Seen:
    """A state as its environment shows it; truth is None where the environment offers none."""

    observation: str
    admissible: tuple[str, ...]
    state: str
    truth: Truth | None


@dataclass(frozen=True)
class Walk:
    """One trajectory: the actions that were sent, and the state ids before and after each."""

    actions: Sequence[str]
    states: Sequence[str]


class Mismatch(Exception):
    """A stored episode did not come out as recorded."""


class Stage:
    """The environment of a run, made when first needed.

    Args:
        row: the run's result row, which names the environment; None if there is none.
    """

    def __init__(self, row: Mapping[str, Any] | None) -> None:
        self._row = row
        self._envs: dict[str, gym.Env[Any, str]] = {}

    def close(self) -> None:
        """Free the environments."""
        for env in self._envs.values():
            env.close()

    def play(self, task: str, walks: Sequence[Walk]) -> dict[str, Seen]:
        """Play the trajectories of a task again; what was seen in each state, by its id.

        Raises:
            Mismatch: the environment is not known or not to be made here, or does something else;
                the text says which.
        """
        if self._row is None or "env_id" not in self._row:
            raise Mismatch("no result row says which environment it was")
        problem = "no split is known"
        for split in self._splits():
            try:
                env = self._env(split)
                env.reset(options={"task": task})
            except (EnvError, ValueError, OSError, ImportError) as error:
                problem = str(error)
                continue
            try:
                return self._walk(env, task, walks)
            except EnvError as error:
                raise Mismatch(str(error)) from error
        raise Mismatch(problem)

    def _walk(self, env: gym.Env[Any, str], task: str, walks: Sequence[Walk]) -> dict[str, Seen]:
        folder = str(self._row["env_id"] if self._row else "").removeprefix("milegpo/")
        name = folder.split("-")[0].lower()
        truth_of = part(name, "report").truth if name in offering("report") else None
        seen: dict[str, Seen] = {}
        for walk in walks:
            observation, info = env.reset(options={"task": task})
            for at, expected in enumerate(walk.states):
                if info["state_id"] != expected:
                    raise Mismatch(f"state {at} of a rollout of {task} is another one here")
                if expected not in seen:
                    truth = truth_of(env, info) if truth_of else None
                    seen[expected] = _seen(observation, info, truth)
                if at < len(walk.actions):
                    observation, _, _, _, info = env.step(walk.actions[at])
        return seen

    def _env(self, split: str) -> gym.Env[Any, str]:
        assert self._row is not None
        if split not in self._envs:
            place = Place(str(self._row["env_id"]), dict(self._row.get("env_settings") or {}))
            self._envs[split] = place.env(split)
        return self._envs[split]

    def _splits(self) -> list[str]:
        """Splits that the row's panels name, the training one first."""
        assert self._row is not None
        found = []
        for key in ("train_panel", "panel"):
            panel = self._row.get(key) or {}
            name = str(panel.get("name", "")).split(":")[0]
            if "/" in name:
                found.append(name.rsplit("/", 1)[1])
        return list(dict.fromkeys(found))


def _seen(observation: object, info: Mapping[str, Any], truth: Truth | None) -> Seen:
    state = json.dumps(info["state"], indent=1, ensure_ascii=False, sort_keys=True)
    if isinstance(observation, Mapping):
        observation = observation.get("text")
    text = observation if isinstance(observation, str) else "(a picture; see the state)"
    return Seen(text, tuple(info.get("admissible_actions", ())), state, truth)
