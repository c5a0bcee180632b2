"""What the shop's environments share: settings, tasks, steps and info, in text or in a browser."""

import os
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from milegpo_envs.errors import UnknownName, unknown_name
from milegpo_envs.prompts import Template
from milegpo_envs.spaces import TextSpace
from milegpo_envs.state import state_id
from milegpo_envs.tasks import asked_task
from milegpo_envs.webshop.actions import Move, read_action
from milegpo_envs.webshop.canonical import CANONICAL
from milegpo_envs.webshop.catalogue import Size
from milegpo_envs.webshop.content import View
from milegpo_envs.webshop.goals import SPLITS, Goal
from milegpo_envs.webshop.opening import OpenShop, open_shop
from milegpo_envs.webshop.prompt import PROMPTS
from milegpo_envs.webshop.render import RENDERINGS
from milegpo_envs.webshop.rules import RULES
from milegpo_envs.webshop.shop import Shop

REWARD = 10.0  # on success
LONGEST = 2**20  # characters of an observation; only an address with an endless query is longer


class Receipt(NamedTuple):
    """How a purchase turned out. parts: breakdown of the score, see `reward`."""

    success: bool
    score: float
    parts: dict[str, object]


class ShopEnv(gym.Env[str, str]):
    """A customer with a goal. Subclasses say where the shop is: `WebShopEnv` describes it all."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  # Gymnasium's own declaration

    def __init__(
        self,
        data: str | os.PathLike[str] | None = None,
        mode: str = "fixed",
        seed: int = 0,
        human_goals: bool = False,
        observation: str = "text_rich",
        state: str = "page",
        split: str | None = None,
        products: int | None = None,
        size: Size = "small",
    ) -> None:
        for kind, value, valid in (
            ("mode", mode, tuple(RULES)),
            ("observation", observation, tuple(RENDERINGS)),
            ("state", state, tuple(CANONICAL)),
        ):
            if value not in valid:
                raise unknown_name(kind, value, valid)
        if split is not None and split not in SPLITS:
            raise unknown_name("split", split, tuple(SPLITS))
        self._open = open_shop(
            None if data is None else os.fspath(data), mode, seed, human_goals, products, size
        )
        self._tasks = self._open.split(split)
        self.observation_mode = observation
        self._render = RENDERINGS[observation]
        self.state_kind = state
        self._begun = False
        self.observation_space = TextSpace(LONGEST)
        self.action_space = TextSpace()

    @property
    def prompt_templates(self) -> Mapping[str, Template]:
        """How a step of this environment is shown to a model."""
        return PROMPTS[self.observation_mode]

    @property
    def shop(self) -> Shop:
        """The shop, for experts, sites and reports."""
        return self._open.shop

    @property
    def opened(self) -> OpenShop:
        """The shop with its goals, for experts and sites."""
        return self._open

    @property
    def goal(self) -> Goal:
        """The goal of the task; after `reset`."""
        return self._open.goals[self._index]

    @property
    @abstractmethod
    def view(self) -> View:
        """The page as it is before the customer; after `reset`."""

    @abstractmethod
    def _begin(self, index: int) -> None:
        """Enter the shop with a goal."""

    @abstractmethod
    def _turn(self, move: Move) -> str | None:
        """Make a move; the reason if the page does not offer it."""

    @abstractmethod
    def _state(self, observation: str) -> object:
        """The canonical state, of the kind that `state_kind` names."""

    @abstractmethod
    def _offered(self) -> list[str]:
        """The page's clicks, and the entry for any query where it has a search bar; sorted."""

    @abstractmethod
    def _receipt(self) -> Receipt | None:
        """How the purchase turned out, None before it."""

    @property
    def source(self) -> str:
        """Where the products come from: "generated" or "folder", which may hold official ones."""
        return "folder" if self.shop.catalogue.name.startswith("official/") else "generated"

    @property
    def coverage(self) -> None:
        """Of how many goals these are: a shop of another size has other ones."""

    def task_ids(self) -> tuple[str, ...]:
        """The tasks of the split, by goal index."""
        return self._open.task_ids(self._tasks)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begin a task: `options["task"]`, or one drawn by the seed.

        Raises:
            UnknownName: for a task that is not in the split, or an option other than "task".
        """
        super().reset(seed=seed)
        task = asked_task(options, self.np_random, self._tasks)
        self._index = self._index_of(task)
        self._begin(self._index)
        self._begun = True
        return self._answer(None, self._receipt())

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Search or click."""
        if not self._begun:
            raise gym.error.ResetNeeded("Call reset() before step().")
        problem = self._act(action)
        receipt = self._receipt()
        observation, info = self._answer(problem, receipt)
        paid = receipt is not None and problem is None and receipt.success
        return observation, REWARD if paid else 0.0, receipt is not None, False, info

    def _act(self, action: object) -> str | None:
        """Turn the page; the reason if there is nothing to do."""
        if not isinstance(action, str):
            return "not text"
        move = read_action(action)
        return "not an action" if move is None else self._turn(move)

    def _answer(self, problem: str | None, receipt: Receipt | None) -> tuple[str, dict[str, Any]]:
        observation = self._render(self.view)[:LONGEST]
        state = self._state(observation)
        return observation, {
            "task_id": self._open.task_id(self._index),
            "goal_index": self._index,
            "state_id": state_id(state),
            "state": state,
            "admissible_actions": self._offered(),
            "action_valid": problem is None,
            "invalid_reason": problem,
            "success": receipt is not None and receipt.success,
            "score": 0.0 if receipt is None else receipt.score,
            "reward_parts": {} if receipt is None else receipt.parts,
            "max_reward": self._open.max_reward(self._index),
        }

    def _index_of(self, task: object) -> int:
        """The goal's index, from an index or an id."""
        index = None
        if isinstance(task, int | np.integer) and not isinstance(task, bool):
            index = int(task)
        elif isinstance(task, str):
            index = self._open.index_of(task)
        if index is None or index not in self._tasks:
            first, last = self._tasks[0], self._tasks[-1]
            raise UnknownName(
                f"Unknown task {task!r:.200}. Valid: goal indices {first} to {last}, or ids "
                f"{self._open.task_id(first)!r} to {self._open.task_id(last)!r}."
            )
        return index
