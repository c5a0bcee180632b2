"""What many ALFWorld environments cost: steps a second of pools, memory after many resets."""

import time
from collections.abc import Sequence
from functools import partial

import gymnasium as gym

import milegpo_envs  # noqa: F401  # registers the environment
from milegpo_envs.draws import Draws
from milegpo_envs.pool import MakeEnv, make_pool
from milegpo_envs.reports import resident
from milegpo_envs.wrappers import Prompted

SLOTS = 32


def steps_a_second(
    engine: str, size: str, ids: Sequence[str], steps: int, workers: int | None = None
) -> float:
    """Wall-clock steps a second of a pool of 32 prompted environments on random walks.

    workers: number of processes; None plays in this one.
    """
    make = MakeEnv("milegpo/ALFWorld-v0", {"engine": engine, "size": size}, (partial(Prompted),))
    kind = "local" if workers is None else "processes"
    pool = make_pool(make, SLOTS, kind=kind, workers=workers or 0)
    draws = Draws("bench/pools")
    tasks = [ids[i % len(ids)] for i in range(SLOTS)]
    infos = {i: info for i, (_, info) in enumerate(pool.reset(tasks))}
    seconds, count = 0.0, 0
    for _ in range(steps):
        chosen = {
            slot: f"<think></think><action>{draws.choice(info['admissible_actions'])}</action>"
            for slot, info in infos.items()
        }
        start = time.perf_counter()
        answers = pool.step(chosen)
        seconds += time.perf_counter() - start
        count += len(chosen)
        infos = {slot: a[4] for slot, a in answers.items() if not (a[2] or a[3])}
    pool.close()
    return count / seconds


def grown(engine: str, size: str, ids: Sequence[str], resets: int) -> float:
    """MB by which this process grows in so many resets, after one reset to each of these games.

    The first round fills the caches, which are bounded; what grows after it would grow on.
    """
    env = gym.make("milegpo/ALFWorld-v0", engine=engine, size=size)
    for task in ids:
        env.reset(options={"task": task})
    before = resident()
    for number in range(resets):
        env.reset(options={"task": ids[number % len(ids)]})
    env.close()
    return resident() - before
