"""Cost of steps in the text environment, of whole environments, and of one more of them."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import gymnasium as gym

from milegpo_envs.reports import Advance, Stopwatch, resident
from milegpo_envs.webshop.actions import Search, click, read_action
from milegpo_envs.webshop.shop import BUY
from milegpo_envs.webshop.shortest import shortest_purchase
from milegpo_envs.webshop.text_env import WebShopEnv

TASKS = 200
ENVIRONMENTS = 1000


@dataclass(frozen=True)
class StepCosts:
    """Mean CPU milliseconds of a step, info, clickables and state id included, by kind of step.

    search: of a new query, a whole title as a rule; again: of one searched before. click: opening a
    product, choosing. mean: of all steps of a purchase. memory: kB of one more environment that is
    in the middle of a task.
    """

    reset: float
    search: float
    again: float
    click: float
    purchase: float
    mean: float
    memory: float


def step_costs(products: int, cache: Path, advance: Advance | None = None) -> StepCosts:
    """Play shortest purchases on a generated shop.

    Args:
        products: how many.
        cache: what $MILEGPO_CACHE is for the time being.
        advance: called with the purchases made.
    """
    with _cache_at(cache):
        env = gym.make("milegpo/WebShop-v0", products=products)
    base = env.unwrapped
    assert isinstance(base, WebShopEnv)
    goals = base.opened.goals
    tasks = [i * len(goals) // TASKS for i in range(TASKS)]
    walks = {task: _walk(base, task) for task in _said(tasks, advance, "purchases planned")}
    watches = {kind: Stopwatch() for kind in ("reset", "search", "again", "click", "purchase")}
    for task in _said(tasks, advance, "purchases"):
        with watches["reset"]:
            base.reset(options={"task": task})
        for action in walks[task]:
            with watches[_kind(action)]:
                base.step(action)
    for task in tasks:
        base.reset(options={"task": task})
        with watches["again"]:
            base.step(walks[task][0])
    counts = Counter(_kind(action) for task in tasks for action in walks[task])
    seconds = {kind: watch.seconds for kind, watch in watches.items()}
    with _cache_at(cache):
        memory = _memory(products, walks[tasks[0]][:2])
    return StepCosts(
        reset=1000 * seconds["reset"] / TASKS,
        search=1000 * seconds["search"] / TASKS,
        again=1000 * seconds["again"] / TASKS,
        click=1000 * seconds["click"] / counts["click"],
        purchase=1000 * seconds["purchase"] / TASKS,
        mean=1000 * sum(seconds[kind] for kind in counts) / counts.total(),
        memory=memory,
    )


def _said(tasks: Sequence[int], advance: Advance | None, what: str) -> Iterator[int]:
    """The tasks, one after the other; says how many are done."""
    for done, task in enumerate(tasks, 1):
        yield task
        if advance is not None:
            advance(done, len(tasks), what)


def _walk(env: WebShopEnv, task: int) -> list[str]:
    """The shortest purchase, by a query that nobody made: the planner's own are remembered."""
    search, *rest = shortest_purchase(env.opened, task)
    return [f"{search[:-1]} qqq]", *rest]


def _kind(action: str) -> str:
    if isinstance(read_action(action), Search):
        return "search"
    return "purchase" if action == click(BUY) else "click"


def _memory(products: int, beginning: list[str]) -> float:
    """KB that one more environment takes, found from many."""
    before = resident()
    envs = [gym.make("milegpo/WebShop-v0", products=products) for _ in range(ENVIRONMENTS)]
    for env in envs:
        env.reset(options={"task": 0})
        for action in beginning:
            env.step(action)
    return 1024 * (resident() - before) / len(envs)


@contextmanager
def _cache_at(folder: Path) -> Iterator[None]:
    """Let shops find what was built before under a folder."""
    known = os.environ.get("MILEGPO_CACHE")
    os.environ["MILEGPO_CACHE"] = str(folder)
    try:
        yield
    finally:
        if known is None:
            del os.environ["MILEGPO_CACHE"]
        else:
            os.environ["MILEGPO_CACHE"] = known
