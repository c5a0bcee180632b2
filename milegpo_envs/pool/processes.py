"""A pool in worker processes of this machine.

Workers are started by an explicit method, are daemons, leave Ctrl-C to the parent, and end with it
even when it is killed. They do not import the caller's main module again (with it, torch), unless
`make` is defined there.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, SpawnContext
from types import ModuleType
from typing import Literal, cast

from milegpo_envs.pool.interface import Make, PoolFailed, Start, Step
from milegpo_envs.pool.shard import Answer, Shard, Verb, portable
from milegpo_envs.pool.sharded import ShardedPool, WorkerDied

StartMethod = Literal["spawn", "forkserver"]

_GUARD = (
    "Where a script makes a pool and `make` is defined in the script itself, workers import the "
    "script again: put what it runs under `if __name__ == '__main__':`, or define `make` in a "
    "module."
)


class ProcessPool(ShardedPool):
    """A pool in worker processes.

    Args:
        make: makes one environment, and can be pickled: ``MakeEnv``, or a function of a module.
        size: number of slots.
        workers: number of processes, at most.
        timeout, max_restarts: see ``ShardedPool``.
        start_method: of multiprocessing; "fork" is not offered, as it copies held locks.

    Raises:
        PoolFailed: ``make`` cannot be pickled.
    """

    def __init__(
        self,
        make: Make,
        size: int,
        workers: int,
        *,
        timeout: float = 300.0,
        max_restarts: int = 3,
        start_method: StartMethod = "spawn",
    ) -> None:
        context = (
            multiprocessing.get_context("spawn")
            if start_method == "spawn"
            else multiprocessing.get_context("forkserver")
        )
        pickled = pickled_maker(make)
        super().__init__(
            lambda index: ProcessWorker(context, pickled, index),
            size,
            workers,
            timeout,
            max_restarts,
        )


def pickled_maker(make: Make) -> bytes:
    """Pickle what makes environments, or say what to use instead."""
    try:
        return pickle.dumps(make)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise PoolFailed(
            f"Workers are sent `make` pickled, and this one cannot be: {error}. Use "
            "milegpo_envs.pool.MakeEnv, a function of a module, or a functools.partial of one; "
            "no lambda, no function inside a function."
        ) from error


class ProcessWorker:
    """The parent's end of a worker process; see ``sharded.Worker``."""

    def __init__(
        self, context: SpawnContext | ForkServerContext, pickled: bytes, index: int
    ) -> None:
        self._index = index
        self._connection, theirs = context.Pipe()
        self._process = context.Process(
            target=serve, args=(theirs, pickled), name=f"pool-worker-{index}", daemon=True
        )
        self._ready = False
        with theirs, _without_main(needed=b"__main__" in pickled):
            try:
                self._process.start()
            except RuntimeError as error:  # multiprocessing's, in a worker that imports the script
                raise PoolFailed(_GUARD) from error

    @property
    def pid(self) -> int | None:
        """The process id."""
        return self._process.pid

    def send(self, verb: Verb, slots: Mapping[int, str]) -> None:
        """See ``Worker.send``."""
        try:
            self._connection.send((verb, dict(slots)))
        except OSError as error:
            raise WorkerDied(self._end()) from error

    def receive(self, seconds: float) -> Answer[Start | Step] | None:
        """See ``Worker.receive``."""
        if not self._connection.poll(seconds):
            return None
        try:
            answer = cast("Answer[Start | Step]", self._connection.recv())
        except (EOFError, OSError) as error:
            raise WorkerDied(self._end()) from error
        self._ready = True
        return answer

    def alive(self) -> bool:
        """See ``Worker.alive``."""
        return self._process.is_alive() and not wait([self._process.sentinel], 0)

    def stop(self) -> None:
        """See ``Worker.stop``."""
        self._process.kill()
        self._process.join()
        self._exit_code()
        with contextlib.suppress(ValueError):  # its exit code will never be known here
            self._process.close()
        self._connection.close()

    def _exit_code(self) -> int | None:
        """Return how the process ended, or None where that is unknown a second later.

        Whoever asks the operating system first (a thread that lists multiprocessing's children is
        enough) is told, and hands it on a moment later or never.
        """
        deadline = time.monotonic() + 1.0
        while (code := self._process.exitcode) is None and time.monotonic() < deadline:
            self._process.join(0.05)
            time.sleep(0.001)
        return code

    def _end(self) -> str:
        """Say how the process ended."""
        code = self._exit_code()
        if code is not None and code < 0:
            return f"worker {self._index} was killed by {signal.Signals(-code).name}"
        how = "closed its pipe" if code is None else f"ended with exit code {code}"
        guard = "" if self._ready else f" before it was ready (see its output). {_GUARD}"
        return f"worker {self._index} {how}{guard}"


def serve(connection: Connection, pickled: bytes) -> None:
    """Answer calls until told to close or until the parent is gone: the worker's main function."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the parent decides
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        shard = Shard(pickled)
    except Exception as error:  # an import or a setting; raised where the caller is
        connection.send(Answer({}, (0, portable(error)), ()))
        return
    calls: dict[Verb, Callable[[Mapping[int, str]], Answer[Start] | Answer[Step]]] = {
        "reset": shard.reset,
        "step": shard.step,
        "close": shard.close,
    }
    connection.send(shard.ready())
    while True:
        try:
            verb, slots = connection.recv()
        except (EOFError, OSError):  # the parent let go
            return
        connection.send_bytes(_written(calls[verb](slots)))


def _written(answer: Answer[Start] | Answer[Step]) -> bytes:
    try:
        return pickle.dumps(answer)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        error.add_note("An environment's info holds what cannot be sent to another process.")
        return pickle.dumps(Answer({}, (0, portable(error)), answer.log))


def _end_with_parent() -> None:
    """Even while an environment hangs."""
    parent = multiprocessing.parent_process()
    assert parent is not None  # this is a worker
    wait([parent.sentinel])
    os._exit(1)


@contextlib.contextmanager
def _without_main(needed: bool) -> Iterator[None]:
    """Show multiprocessing an empty main module, as workers import the one that they are shown."""
    if needed:
        yield
        return
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
