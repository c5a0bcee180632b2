"""A pool spread over workers, whatever the workers are.

Slot i is played by worker i modulo their number, so that few tasks are spread too. One call of the
pool is one message to each worker concerned and one answer from each. A worker that ends, or gives
no answer in time, is stopped; its slots answer as broken games do, those not named in that call at
their next step; the next `reset` hires another. So results depend neither on the kind of workers
nor on their number.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, cast

from milegpo_envs.pool.interface import (
    Info,
    PoolFailed,
    Start,
    Step,
    broken_off,
    check_replies,
    check_size,
    check_tasks,
    never_started,
)
from milegpo_envs.pool.shard import Answer, Verb
from milegpo_envs.spaces import Message

_logger = logging.getLogger(__name__)

START_SECONDS = 300.0  # for a worker to start: imports on a busy machine, a place on a cluster
CLOSE_SECONDS = 10.0


class WorkerGone(Exception):
    """A worker cannot answer any more. The subclass is named in ``info["error"]``."""


class WorkerDied(WorkerGone):
    """It ended, or was ended."""


class Timeout(WorkerGone):
    """It gave no answer in time."""


class Worker(Protocol):
    """A worker as its pool sees it. It works off one call at a time."""

    def send(self, verb: Verb, slots: Mapping[int, str]) -> None:
        """Ask something, without waiting for the answer.

        Raises:
            WorkerGone: there is nobody to ask.
        """
        ...

    def receive(self, seconds: float) -> Answer[Start | Step] | None:
        """Wait for the answer to the last call; None if it has not come by then.

        The first answer, to no call, says that the worker is ready.

        Raises:
            WorkerGone: there is and will be none.
        """
        ...

    def alive(self) -> bool:
        """Tell whether the worker could answer now."""
        ...

    def stop(self) -> None:
        """End it at once, whatever it does."""
        ...


@dataclass
class _Slot:
    """What a slot last answered, and what became of its worker while it was playing."""

    playing: bool = False
    lost: WorkerGone | None = None
    messages: list[Message] = field(default_factory=list)
    info: Info = field(default_factory=dict)


class ShardedPool:
    """A pool over workers, which are started at the first ``reset`` that needs them.

    Args:
        hire: starts worker number i, without waiting until it is ready.
        size: number of slots.
        workers: number of workers, at most.
        timeout: seconds that a worker has for one call, with all of its slots.
        max_restarts: how often in a row a worker is replaced before ``reset`` raises; a round in
            which it stays alive, from one ``reset`` to the next, starts the count afresh.
    """

    def __init__(
        self,
        hire: Callable[[int], Worker],
        size: int,
        workers: int,
        timeout: float,
        max_restarts: int,
    ) -> None:
        check_size(size)
        if workers < 1:
            raise ValueError(f"A pool of workers has 1 or more, not {workers}.")
        if timeout <= 0:
            raise ValueError(f"The time-out is in seconds, above 0; it cannot be {timeout}.")
        self._hire = hire
        self._timeout = timeout
        self._max_restarts = max_restarts
        self._slots = [_Slot() for _ in range(size)]
        self._workers: list[Worker | None] = [None] * min(workers, size)
        self._losses: list[list[WorkerGone]] = [[] for _ in self._workers]  # in a row

    def __len__(self) -> int:
        """Count the slots."""
        return len(self._slots)

    def reset(self, task_ids: Sequence[str]) -> list[Start]:
        """See ``Pool.reset``."""
        check_tasks(task_ids, len(self))
        for slot in self._slots:
            slot.playing, slot.lost = False, None
        tasks = dict(enumerate(task_ids))
        self._staff(sorted({self._worker_of(index) for index in tasks}))
        answered, gone = self._ask("reset", tasks)
        starts = []
        for index, task_id in tasks.items():
            slot = self._slots[index]
            start = (
                cast(Start, answered[index])
                if index in answered
                else never_started(task_id, gone[self._worker_of(index)])
            )
            slot.messages, slot.info = start
            slot.playing = "error" not in slot.info
            starts.append(start)
        return starts

    def step(self, actions: Mapping[int, str]) -> dict[int, Step]:
        """See ``Pool.step``."""
        check_replies(actions, [slot.playing for slot in self._slots])
        answered, _ = self._ask(
            "step", {i: reply for i, reply in actions.items() if self._slots[i].lost is None}
        )
        steps = {}
        for index, reply in actions.items():
            slot = self._slots[index]
            if slot.lost is not None:
                steps[index] = broken_off(slot.messages, slot.info, reply, slot.lost)
                slot.playing, slot.lost = False, None
                continue
            messages, reward, terminated, truncated, info = cast(Step, answered[index])
            slot.messages, slot.info = messages, info
            slot.playing = not (terminated or truncated)
            steps[index] = messages, reward, terminated, truncated, info
        return steps

    def close(self) -> None:
        """See ``Pool.close``. Every worker is ended, even if closing an environment raises."""
        hired = {i: worker for i, worker in enumerate(self._workers) if worker is not None}
        try:
            raised = [
                answer.raised
                for answer in self._calls("close", {i: {} for i in hired}, CLOSE_SECONDS).values()
                if isinstance(answer, Answer) and answer.raised is not None
            ]
        finally:
            for index, worker in hired.items():
                worker.stop()
                self._workers[index] = None
            for slot in self._slots:
                slot.playing, slot.lost = False, None
            self._losses = [[] for _ in self._workers]
        for _, error in raised:
            raise error

    def _worker_of(self, slot: int) -> int:
        return slot % len(self._workers)

    def _staff(self, needed: Iterable[int]) -> None:
        """Have these workers there and ready."""
        hired = []
        for index in needed:
            worker = self._workers[index]
            if worker is not None and worker.alive():
                self._losses[index].clear()
                continue
            if worker is not None:
                self._lose(index, WorkerDied(f"worker {index} ended between two calls"))
            if len(self._losses[index]) > self._max_restarts:
                raise PoolFailed(
                    f"Worker {index} was lost {len(self._losses[index])} times in a row, the last "
                    f"time by {_said(self._losses[index][-1])}. The log has the others."
                )
            self._workers[index] = self._hire(index)
            hired.append(index)
        for index in hired:
            worker = self._workers[index]
            assert worker is not None
            try:
                answer = _in_time(worker.receive(START_SECONDS), index, START_SECONDS)
            except BaseException as error:
                self._abandon(hired)
                if isinstance(error, WorkerGone):
                    raise PoolFailed(f"A worker of a pool cannot be started: {error}.") from error
                raise
            if answer.raised is not None:
                self._abandon(hired)
                raise answer.raised[1]

    def _ask(
        self, verb: Verb, slots: Mapping[int, str]
    ) -> tuple[dict[int, Start | Step], dict[int, WorkerGone]]:
        """Spread a call over the workers: results by slot, and the workers lost with the reason."""
        calls: dict[int, dict[int, str]] = {}
        for index, text in slots.items():
            calls.setdefault(self._worker_of(index), {})[index] = text
        answered: dict[int, Start | Step] = {}
        gone: dict[int, WorkerGone] = {}
        raised = []
        for index, answer in self._calls(verb, calls, self._timeout).items():
            if isinstance(answer, WorkerGone):
                gone[index] = answer
                self._lose(index, answer)
                continue
            for text in answer.log:
                _logger.warning("Worker %d: %s", index, text)
            answered.update(answer.results)
            if answer.raised is not None:
                raised.append(answer.raised)
        if raised:
            raise min(raised, key=lambda slot_and_error: slot_and_error[0])[1]
        return answered, gone

    def _calls(
        self, verb: Verb, calls: Mapping[int, Mapping[int, str]], seconds: float
    ) -> dict[int, Answer[Start | Step] | WorkerGone]:
        """Call workers side by side. Interrupted, those that were called are given up."""
        answers: dict[int, Answer[Start | Step] | WorkerGone] = {}
        try:
            for index, slots in calls.items():
                try:
                    self._hired(index).send(verb, slots)
                except WorkerGone as error:
                    answers[index] = error
            deadline = time.monotonic() + seconds  # all work from now on
            for index in [i for i in calls if i not in answers]:
                left = max(0.0, deadline - time.monotonic())
                try:
                    answers[index] = _in_time(self._hired(index).receive(left), index, seconds)
                except WorkerGone as error:
                    answers[index] = error
        except BaseException:  # an answer that nobody waits for would be taken for the next one
            self._abandon(calls)
            raise
        return answers

    def _hired(self, index: int) -> Worker:
        worker = self._workers[index]
        assert worker is not None  # `reset` staffs, and slots of lost workers are not asked
        return worker

    def _lose(self, index: int, error: WorkerGone) -> None:
        """Let a worker go that cannot answer any more."""
        _logger.warning("%s; it will be replaced.", _said(error))
        self._abandon([index], error)
        self._losses[index].append(error)

    def _abandon(self, indices: Iterable[int], error: WorkerGone | None = None) -> None:
        """Stop workers; what their slots play is lost."""
        for index in indices:
            worker, self._workers[index] = self._workers[index], None
            if worker is not None:
                worker.stop()
            for slot in self._slots[index :: len(self._workers)]:
                if slot.playing:
                    slot.lost = error or WorkerDied(f"worker {index} was stopped by an interrupt")


def _in_time(
    answer: Answer[Start | Step] | None, index: int, seconds: float
) -> Answer[Start | Step]:
    if answer is None:
        raise Timeout(f"worker {index} gave no answer within {seconds:g} s")
    return answer


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
