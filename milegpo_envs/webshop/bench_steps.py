"""Cost of steps in the text environment, of whole environments, and of one more of them."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import gymnasium as gym

from milegpo_envs.reports import Stopwatch, resident
from milegpo_envs.webshop.actions import Search, read_action
from milegpo_envs.webshop.shortest import shortest_purchase
from milegpo_envs.webshop.text_env import WebShopEnv

TASKS = 200
ENVIRONMENTS = 1000


@dataclass(frozen=True)
class StepCosts:
    """Mean CPU milliseconds of a step, info, clickables and state id included, by kind of step.

    look: opening a product, choosing, turning back. reset: ms. memory: kB of one more environment
    that is in the middle of a task.
    """

    reset: float
    search: float
    look: float
    purchase: float
    memory: float


def step_costs(products: int, cache: Path) -> StepCosts:
    """Play shortest purchases on a generated shop, with looks at all parts of the product.

    Args:
        products: how many.
        cache: what $MILEGPO_CACHE is for the time being.
    """
    with _cache_at(cache):
        env = gym.make("milegpo/WebShop-v0", products=products)
    base = env.unwrapped
    assert isinstance(base, WebShopEnv)
    tasks = [i * len(base.opened.goals) // TASKS for i in range(TASKS)]
    plans = {task: _walk(base, task) for task in tasks}
    watches = {kind: Stopwatch() for kind in ("reset", "search", "look", "purchase")}
    counts = dict.fromkeys(watches, 0)
    for task in tasks:
        with watches["reset"]:
            env.reset(options={"task": task})
        counts["reset"] += 1
        for action in plans[task]:
            kind = _kind(action)
            with watches[kind]:
                base.step(action)
            counts[kind] += 1
    ms: Mapping[str, float] = {k: 1000 * w.seconds / counts[k] for k, w in watches.items()}
    with _cache_at(cache):
        memory = _memory(products, plans[tasks[0]][:2])
    return StepCosts(ms["reset"], ms["search"], ms["look"], ms["purchase"], memory)


def _walk(env: WebShopEnv, task: int) -> list[str]:
    *before, buy = shortest_purchase(env.opened, task)
    looks = [f"click[{part}]" for part in ("description", "features", "reviews")]
    return [*before, *(a for look in looks for a in (look, "click[< prev]")), buy]


def _kind(action: str) -> str:
    if isinstance(read_action(action), Search):
        return "search"
    return "purchase" if action == "click[buy now]" else "look"


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
