"""Cost of the browser environment: wall-clock, as most of it is spent in Chromium's processes."""

import os
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import median

import gymnasium as gym

from milegpo_envs.reports import Cell
from milegpo_envs.webshop.base_env import ShopEnv
from milegpo_envs.webshop.shortest import shortest_purchase

TASKS = 10


def browser_rows(products: int) -> tuple[tuple[Cell, ...], ...]:
    """Play shortest purchases in Chromium.

    Args:
        products: of the generated shop.

    Raises:
        DataMissing: there is no browser; says how to get it.
    """
    env = gym.make("milegpo/WebShopBrowser-v0", products=products)
    base = env.unwrapped
    assert isinstance(base, ShopEnv)
    seconds: defaultdict[str, list[float]] = defaultdict(list)

    def timed(kind: str, run: Callable[[], object]) -> None:
        start = time.perf_counter()
        run()
        seconds[kind].append(time.perf_counter() - start)

    timed("start", lambda: base.reset(options={"task": 0}))
    memory = _family_memory()
    for task in range(TASKS):
        timed("reset", lambda task=task: base.reset(options={"task": task}))  # type: ignore[misc]
        for action in shortest_purchase(base.opened, task):
            timed("step", lambda action=action: base.step(action))  # type: ignore[misc]
    timed("close", base.close)
    return (
        ("start with the first reset, s", median(seconds["start"])),
        ("reset, ms", 1000 * median(seconds["reset"])),
        ("step, ms", 1000 * median(seconds["step"])),
        ("close, s", median(seconds["close"])),
        ("memory of Chromium and its driver, MB", memory),
    )


def _family_memory() -> float:
    """Proportional share of memory of all processes begun by this one, in MB (Linux)."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text(errors="replace").rpartition(") ")[2].split()
        except OSError:  # it has ended
            continue
        parents[int(entry.parent.name)] = int(fields[1])
    family = {os.getpid()}
    for _ in parents:
        grown = family | {child for child, parent in parents.items() if parent in family}
        if grown == family:
            break
        family = grown
    kilobytes = 0
    for member in family - {os.getpid()}:
        try:
            rollup = Path(f"/proc/{member}/smaps_rollup").read_text(encoding="ascii")
        except OSError:
            continue
        kilobytes += next(int(x.split()[1]) for x in rollup.splitlines() if x.startswith("Pss:"))
    return kilobytes / 1024
