"""`milegpo/WebShop-v0`: find and buy what an instruction asks for, in text."""

import os
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from milegpo_envs.errors import UnknownName, unknown_name
from milegpo_envs.prompts import Template
from milegpo_envs.spaces import TextSpace
from milegpo_envs.state import state_id
from milegpo_envs.webshop.actions import ANY_SEARCH, click, read_action
from milegpo_envs.webshop.canonical import CANONICAL
from milegpo_envs.webshop.catalogue import Size
from milegpo_envs.webshop.content import View, look
from milegpo_envs.webshop.goals import SPLITS, Goal
from milegpo_envs.webshop.opening import OpenShop, open_shop
from milegpo_envs.webshop.prompt import PROMPTS
from milegpo_envs.webshop.render import RENDERINGS
from milegpo_envs.webshop.rules import RULES
from milegpo_envs.webshop.shop import SEARCH_BUTTON, Done, Index, Page, Refused, Shop

REWARD = 10.0  # on success
LONGEST = 2**20  # characters of an observation; only an address with an endless query is longer


class WebShopEnv(gym.Env[str, str]):
    """Search a shop, look at products, choose options, buy (arXiv:2207.01206).

    ## Observations and actions

    Both are text. The instruction stands on every page. An action is `search[words]`, which works
    on every page, or `click[target]`, the target being among what can be clicked. Anything else
    changes nothing and costs the step. `info["admissible_actions"]` lists the clicks, and
    `search[<your query>]`, which stands for any query, where the page has a search bar.

    ## Rewards and ends

    A purchase terminates: with 10.0 if everything asked for is met, else with 0.0. How much is met
    is the `score`, from 0 to 1. The horizon (15 steps as registered) is Gymnasium's time limit and
    shows as `truncated`.

    ## Info

    The contract's keys (see `milegpo_envs`) and

        goal_index     int     place of the task's goal, as the official engine numbers sessions
        reward_parts   dict    breakdown of the last purchase (see `reward`), empty before it
        max_reward     float   score of the goal's own product with its best options

    `invalid_reason` is "not text", "not an action", "not on the page" or "the purchase is made".

    ## Tasks

    A task is a goal; its id names the shop, its goals and the goal's index. `reset(options={"task":
    x})` takes an id or an index (Python's or NumPy's integers); otherwise the task is a function of
    the seed. `task_ids()` lists the split's.

    Args:
        data: None for the generated shop, or a folder with the official files. mode: "fixed", or
        "official" with the official engine's faults (see `rules`, `goals`). seed: of prices and
        bounds in official mode, where they are drawn. human_goals: goals written by people instead
        of synthetic ones. observation: "text_rich", "text", "html" or "url" (see `render`). state:
        what tells states apart: "page", "observation" or "markov" (see `canonical`). split: "test",
        "validation", "train", or None for all goals. products: only the first so many. size: which
        of the official files: "small", "100k" or "full".

    Raises:
        UnknownName: for a value that is not among those above, or a split without goals.
        DataMissing: if `data` lacks files.

    ## Version history

    * v0: first release
    """

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
        self._canonical = CANONICAL[state]
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
    def page(self) -> Page:
        """The page the customer is on; after `reset`."""
        return self._page

    @property
    def view(self) -> View:
        """The page as laid out; after `reset`."""
        return look(self.shop, self._page, self.goal, str(self._index))

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
        for option in options or {}:
            if option != "task":
                raise unknown_name("option of reset", option, ("task",))
        task = (options or {}).get("task")
        if task is None:
            task = self._tasks[int(self.np_random.integers(2**62)) % len(self._tasks)]
        self._index = self._index_of(task)
        self._page: Page = Index()
        return self._answer(None)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Search or click."""
        if not hasattr(self, "_page"):
            raise gym.error.ResetNeeded("Call reset() before step().")
        problem = self._act(action)
        observation, info = self._answer(problem)
        over = isinstance(self._page, Done)
        paid = over and problem is None and info["success"]
        return observation, REWARD if paid else 0.0, over, False, info

    def _act(self, action: object) -> str | None:
        """Turn the page; the reason if there is nothing to do."""
        if not isinstance(action, str):
            return "not text"
        move = read_action(action)
        if move is None:
            return "not an action"
        try:
            self._page = self.shop.follow(self._page, move, self.goal)
        except Refused as refused:
            return str(refused)
        return None

    def _answer(self, problem: str | None) -> tuple[str, dict[str, Any]]:
        page = self._page
        observation = self._render(self.view)[:LONGEST]
        state = self._canonical(self.shop, page, observation)
        score = page.score if isinstance(page, Done) else None
        return observation, {
            "task_id": self._open.task_id(self._index),
            "goal_index": self._index,
            "state_id": state_id(state),
            "state": state,
            "admissible_actions": admissible(self.shop, page),
            "action_valid": problem is None,
            "invalid_reason": problem,
            "success": score is not None and score.success,
            "score": 0.0 if score is None else score.reward,
            "reward_parts": {} if score is None else score.parts(),
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


def admissible(shop: Shop, page: Page) -> list[str]:
    """The page's clicks, and the entry for any query where it has a search bar; sorted."""
    actions = [click(target) for target in shop.clickables(page) if target != SEARCH_BUTTON]
    if isinstance(page, Index):
        actions.append(ANY_SEARCH)
    return sorted(actions)
