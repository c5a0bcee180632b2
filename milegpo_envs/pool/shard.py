"""The slots that one worker plays: what runs inside a worker process or a Ray actor.

A shard is alone in its process. What it answers can be pickled, always: exceptions that cannot are
replaced, and log records travel to the parent as text, so that a traceback is found in one log.
"""

from __future__ import annotations

import logging
import pickle
import traceback
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from milegpo_envs.pool.interface import Make, PoolFailed, Start, Step
from milegpo_envs.pool.local import EnvPool

Verb = Literal["reset", "step", "close"]
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class Answer(Generic[T_co]):
    """What a worker says to a call.

    results: by slot, in the order asked. raised: the slot at which the call was broken off, and
    what the caller is to blame for; later slots have no result. log: warnings, with tracebacks.
    """

    results: Mapping[int, T_co]
    raised: tuple[int, Exception] | None
    log: tuple[str, ...]


class Shard:
    """A pool of one slot for every slot of the parent's pool that this worker plays."""

    def __init__(self, pickled: bytes) -> None:
        make: Make = pickle.loads(pickled)
        self._make = make
        self._pools: dict[int, EnvPool] = {}
        self._lines = _Lines()
        pool_logger = logging.getLogger(__package__)
        pool_logger.propagate = False
        pool_logger.addHandler(self._lines)

    def ready(self) -> Answer[Start]:
        """Tell the parent that this worker has started."""
        return Answer({}, None, ())

    def reset(self, tasks: Mapping[int, str]) -> Answer[Start]:
        """Start a task in each of these slots."""
        results: dict[int, Start] = {}
        for slot, task_id in tasks.items():
            pool = self._pools.setdefault(slot, EnvPool(self._make, 1))
            try:
                (results[slot],) = pool.reset([task_id])
            except Exception as error:  # the caller's, and raised where the caller is
                return Answer(results, (slot, portable(error)), self._lines.taken())
        return Answer(results, None, self._lines.taken())

    def step(self, replies: Mapping[int, str]) -> Answer[Step]:
        """Send a reply to each of these slots."""
        results: dict[int, Step] = {}
        for slot, reply in replies.items():
            try:
                results[slot] = self._pools[slot].step({0: reply})[0]
            except Exception as error:  # the caller's, and raised where the caller is
                return Answer(results, (slot, portable(error)), self._lines.taken())
        return Answer(results, None, self._lines.taken())

    def close(self, _: Mapping[int, str]) -> Answer[Start]:
        """Close all environments, even if closing one raises."""
        try:
            with ExitStack() as stack:
                for pool in self._pools.values():
                    stack.callback(pool.close)
        except Exception as error:  # raised where the caller is
            return Answer({}, (0, portable(error)), self._lines.taken())
        return Answer({}, None, self._lines.taken())


def portable(error: Exception) -> Exception:
    """The exception with its traceback as a note, or a stand-in for one that cannot be pickled."""
    error.add_note(f"In a worker:\n{''.join(traceback.format_exception(error))}")
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # an exception's own __reduce__ and __init__ can raise anything
        stand_in = PoolFailed(f"{type(error).__name__}: {error}")
        stand_in.__notes__ = error.__notes__
        return stand_in
    return error


class _Lines(logging.Handler):
    """Keeps records as text until they are taken."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._kept: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one."""
        self._kept.append(self.format(record))

    def taken(self) -> tuple[str, ...]:
        """Hand over what was kept."""
        kept, self._kept = tuple(self._kept), []
        return kept
