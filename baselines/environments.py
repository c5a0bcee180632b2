"""Where an experiment takes place: an environment with its settings, its pool and its panels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import gymnasium as gym
import yaml

import milegpo_envs
from milegpo_envs.errors import unknown_name
from milegpo_envs.panels import Panel, named_panel, panel_of, panel_sources
from milegpo_envs.pool import KINDS, Make, Pool, make_pool
from milegpo_envs.wrappers import Prompted


@dataclass(frozen=True)
class Workers:
    """Where the environments of a pool live; see ``milegpo_envs.pool.make_pool``. Moves no result.

    kind: "auto", "local", "processes" or "ray".
    number: of processes or actors; 0 leaves it to the environment and the machine.
    timeout: seconds a worker has for one call, before its episodes end as errors.
    address: of a Ray cluster, such as "auto"; None starts one here.
    """

    kind: str = "auto"
    number: int = 0
    timeout: float = 300.0
    address: str | None = None

    def __post_init__(self) -> None:
        """Refuse what no pool can be made of, before anything is built.

        Raises:
            UnknownName: there is no such kind.
            ModuleNotFoundError: Ray is asked for and not installed; the text says the command.
        """
        if self.kind not in KINDS:
            raise unknown_name("kind of pool", self.kind, KINDS)
        if self.number < 0 or self.timeout <= 0:
            raise ValueError("Workers count from 0, and their time-out is above 0 seconds.")
        if self.kind == "ray":
            import milegpo_envs.pool.on_ray  # noqa: F401  # says what to install

    def pool(self, make: Make, size: int) -> Pool:
        """Make a pool of ``size`` environments."""
        return make_pool(
            make,
            size,
            kind=self.kind,
            workers=self.number,
            timeout=self.timeout,
            address=self.address,
        )


@dataclass(frozen=True)
class Place:
    """An environment as an experiment uses it.

    env_id: a registered id.
    settings: arguments of ``gym.make`` other than the split.
    horizon: steps an episode may take; None is the registered number.
    history: observation/action pairs in a prompt.
    style: of the prompts.
    workers: where a pool's environments live; most in this process, unless told.
    """

    env_id: str
    settings: Mapping[str, Any] = field(default_factory=dict)  # Any: what gym.make takes
    horizon: int | None = None
    history: int = 2
    style: str = "papers"
    workers: Workers = field(default_factory=Workers)

    def __post_init__(self) -> None:
        """Refuse ids that are not ours, and episodes without an end, before anything is built."""
        if self.env_id not in milegpo_envs.ENTRY_POINTS:
            raise unknown_name("environment", self.env_id, milegpo_envs.ENTRY_POINTS)
        if self.horizon is not None and self.horizon < 1:  # -1 is gymnasium's for no limit
            raise ValueError(f"horizon={self.horizon}: an episode has at least 1 step.")

    def env(self, split: str) -> gym.Env[str, str]:
        """Make the text environment of a split.

        Raises:
            EnvError: a name in the settings is unknown, or data are missing.
            ValueError: the environment has no such setting.
        """
        try:
            env: gym.Env[str, str] = gym.make(
                self.env_id, max_episode_steps=self.horizon, split=split, **self.settings
            )
        except TypeError as error:
            reason = str(error).partition(" was raised from")[0]
            raise ValueError(
                f"{self.env_id} cannot be made with the settings {dict(self.settings)}: {reason}. "
                "Give its own with env_settings, or a recipe of it with --config."
            ) from error
        return env

    def prompted(self, split: str) -> Prompted:
        """Make the environment of a split that speaks to a chat model."""
        return Prompted(self.env(split), history=self.history, style=self.style)

    def pool(self, split: str, size: int) -> Pool:
        """Make a pool of ``size`` prompted environments."""
        return self.workers.pool(partial(self.prompted, split), size)

    def panel(self, split: str, size: int | None = None) -> Panel:
        """Choose the tasks of a split that policies are compared on; all of them by default.

        The named panel of that split, or a plain slice where none of that name fits.
        """
        name = f"{self.env_id.removeprefix('milegpo/').split('-')[0].lower()}/{split}"
        source = panel_sources().get(name)
        if source is not None and source.takes(self.settings):
            return named_panel(name, size, **self.settings)
        env = self.env(split)
        panel = panel_of(env, name if size is None else f"{name}:{size}", size)
        env.close()
        return panel


def read_settings(items: Sequence[str]) -> dict[str, Any]:
    """Read ``["size=small", "task_types=[a, b]"]``; values are YAML.

    Raises:
        ValueError: an item has no "=", or its value is not YAML.
    """
    settings: dict[str, Any] = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not equals:
            raise ValueError(f"env_settings: {item!r} is not of the form key=value.")
        try:
            settings[key.strip()] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise ValueError(f"env_settings: {item!r} is not YAML: {error}") from error
    return settings
