"""A pool in Ray actors, on this machine or on the machines of a Ray cluster (``pip install ray``).

All machines need this package, and data at the same paths. Ray starts the actors, moves the
messages and notices dead machines; nothing of that is done here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from milegpo_envs.pool.interface import Make, Start, Step
from milegpo_envs.pool.processes import pickled_maker
from milegpo_envs.pool.shard import Answer, Shard, Verb
from milegpo_envs.pool.sharded import ShardedPool, WorkerDied

try:
    import ray
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "A pool on Ray needs ray. Run: pip install 'milegpo[ray]'", name=error.name
    ) from error


class RayPool(ShardedPool):
    """A pool in Ray actors.

    Args:
        make: makes one environment, and can be pickled: ``MakeEnv``, or a function of a module.
        size: number of slots.
        workers: number of actors, at most.
        timeout, max_restarts: see ``ShardedPool``.
        address: of the cluster, as ``ray.init`` takes it; None uses the Ray that this process is
            connected to, or else starts one here.
        options: of each actor, as ``ray.remote`` takes them: ``num_cpus`` (1 by default),
            ``resources``, ``scheduling_strategy``, ``runtime_env``.
    """

    def __init__(
        self,
        make: Make,
        size: int,
        workers: int,
        *,
        timeout: float = 300.0,
        max_restarts: int = 3,
        address: str | None = None,
        options: Mapping[str, Any] | None = None,  # Any: what Ray takes
    ) -> None:
        pickled = pickled_maker(make)
        if not ray.is_initialized():
            ray.init(address=address, include_dashboard=False)
        actors = ray.remote(Shard).options(**{"num_cpus": 1, **(options or {})})
        super().__init__(
            lambda index: RayWorker(actors.remote(pickled), index),
            size,
            workers,
            timeout,
            max_restarts,
        )


class RayWorker:
    """The parent's end of an actor; see ``sharded.Worker``."""

    def __init__(self, actor: Any, index: int) -> None:  # Any: Ray's handles are made at run time
        self._actor = actor
        self._index = index
        self._coming = actor.ready.remote()

    def send(self, verb: Verb, slots: Mapping[int, str]) -> None:
        """See ``Worker.send``."""
        self._coming = getattr(self._actor, verb).remote(dict(slots))

    def receive(self, seconds: float) -> Answer[Start | Step] | None:
        """See ``Worker.receive``."""
        try:
            return cast("Answer[Start | Step]", ray.get(self._coming, timeout=seconds))
        except ray.exceptions.GetTimeoutError:
            return None
        except (ray.exceptions.RayActorError, ray.exceptions.RaySystemError) as error:
            raise WorkerDied(f"worker {self._index} on Ray: {error}") from error

    def alive(self) -> bool:
        """See ``Worker.alive``."""
        try:
            ray.get(self._actor.ready.remote(), timeout=10.0)
        except (ray.exceptions.GetTimeoutError, ray.exceptions.RayActorError):
            return False
        return True

    def stop(self) -> None:
        """See ``Worker.stop``."""
        ray.kill(self._actor)
