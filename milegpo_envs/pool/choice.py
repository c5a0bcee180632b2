"""One call for every kind of pool."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from milegpo_envs.errors import unknown_name
from milegpo_envs.pool.interface import Make, Pool
from milegpo_envs.pool.local import EnvPool
from milegpo_envs.pool.processes import ProcessPool, StartMethod

KINDS = ("auto", "local", "processes", "ray")


@runtime_checkable
class ChoosesItsPool(Protocol):
    """An environment that says where it should run; others run in this process."""

    @property
    def wants_processes(self) -> bool:
        """Whether it is so slow, or so particular about threads, that it belongs in processes."""
        ...


def make_pool(
    make: Make,
    size: int,
    *,
    workers: int = 0,
    kind: str = "auto",
    timeout: float = 300.0,
    max_restarts: int = 3,
    start_method: StartMethod = "spawn",
    address: str | None = None,
    options: Mapping[str, Any] | None = None,  # Any: what Ray takes
) -> Pool:
    """Make a pool of ``size`` slots.

    Args:
        make: makes one environment; anywhere but in this process it must be picklable, see
            ``MakeEnv``.
        size: number of slots.
        workers: number of processes or actors; 0 is one for each CPU that this process may use.
        kind: "local", "processes" or "ray". "auto" is processes where ``workers`` says so or the
            environment wants them (see ``ChoosesItsPool``), else local.
        timeout: seconds a worker has for one call.
        max_restarts: of a worker, in a row.
        start_method: of processes.
        address: of a Ray cluster; None is the local one.
        options: of Ray's actors.

    Raises:
        UnknownName: there is no such kind.
        PoolFailed: ``make`` cannot be pickled.
    """
    if kind not in KINDS:
        raise unknown_name("kind of pool", kind, KINDS)
    if workers < 0:
        raise ValueError(f"workers counts from 0; it cannot be {workers}.")
    if kind == "auto":
        if workers == 0:
            first = make()
            base = first.unwrapped
            if not (isinstance(base, ChoosesItsPool) and base.wants_processes):
                spare = [first]
                return EnvPool(lambda: spare.pop() if spare else make(), size)
            first.close()
        kind = "processes"
    if kind == "local":
        return EnvPool(make, size)
    workers = workers or len(os.sched_getaffinity(0))
    if kind == "processes":
        return ProcessPool(
            make,
            size,
            workers,
            timeout=timeout,
            max_restarts=max_restarts,
            start_method=start_method,
        )
    from milegpo_envs.pool.on_ray import RayPool  # optional

    return RayPool(
        make,
        size,
        workers,
        timeout=timeout,
        max_restarts=max_restarts,
        address=address,
        options=options,
    )
