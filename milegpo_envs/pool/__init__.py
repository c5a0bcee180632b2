"""Many environments in lockstep: what a rollout loop is handed.

    pool = make_pool(MakeEnv("milegpo/ALFWorld-v0", wrappers=(Prompted,)), size=128)
    starts = pool.reset(task_ids)                     # slot i plays task_ids[i]
    answers = pool.step({slot: reply, ...})           # raw replies in, Gymnasium's five values out

``Pool`` is the interface. Its environments live in this process (``local``), in worker processes
(``processes``) or in Ray actors, here or on other machines (``on_ray``); what a slot answers is the
same everywhere. ``make_pool`` chooses.
"""

from milegpo_envs.pool.choice import KINDS, ChoosesItsPool, make_pool
from milegpo_envs.pool.interface import Info, Make, Pool, PoolFailed, Start, Step
from milegpo_envs.pool.local import EnvPool
from milegpo_envs.pool.make import MakeEnv
from milegpo_envs.pool.processes import ProcessPool

__all__ = [
    "KINDS",
    "ChoosesItsPool",
    "EnvPool",
    "Info",
    "Make",
    "MakeEnv",
    "Pool",
    "PoolFailed",
    "ProcessPool",
    "Start",
    "Step",
    "make_pool",
]
