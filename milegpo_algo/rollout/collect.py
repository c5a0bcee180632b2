"""Play episodes in lockstep: one generate call a step for all, finished ones leave the batch.

Knows no environment, no tokenizer and no model: it is handed a pool and a policy. Whatever the
model emits and whatever an environment does, it returns episodes: a prompt that does not fit, an
environment that raises, an endless reply are ways for an episode to stop, counted like any other.

With `halves=2` the episodes of a wave take turns: while one half is being answered, the other
half's environments step and its prompts are tokenised, in a second thread. It pays where stepping
takes a sizable part of the time and does not compete with the model for the processor (environments
in other processes, sites, a model on a GPU); a batch half the size costs the model more per row.
Where each row draws from its own random numbers, episodes are the same either way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

from milegpo_algo.rollout.episode import (
    PENALISE,
    STOPS,
    Episode,
    Penalise,
    RolloutFailed,
    Scalar,
    StepRecord,
    Stop,
    check_some_ran,
    to_records,
)
from milegpo_algo.rollout.generator import Codec, Generator
from milegpo_algo.rollout.policy import Policy, Prompt, TokenPolicy
from milegpo_algo.rollout.pool import Info, Pool
from milegpo_algo.rollout.seats import Assignment, Table

__all__ = [
    "PENALISE",
    "STOPS",
    "Episode",
    "Info",
    "Penalise",
    "Pool",
    "RolloutFailed",
    "Scalar",
    "StepRecord",
    "Stop",
    "assign",
    "check_some_ran",
    "collect",
    "play",
    "play_policy",
    "to_records",
]

Progress = Callable[[int, int], None]


def collect(
    pool: Pool,
    generator: Generator,
    codec: Codec,
    task_ids: Sequence[str],
    *,
    group_size: int,
    max_prompt_tokens: int,
    seed: int,
    iteration: int = 0,
    halves: int = 1,
    on_progress: Progress | None = None,
) -> list[Episode]:
    """Play every task `group_size` times; see `play`, and `assign` for the numbering.

    Raises:
        RolloutFailed: every environment failed.
    """
    episodes = play(
        pool,
        generator,
        codec,
        assign(task_ids, group_size),
        max_prompt_tokens=max_prompt_tokens,
        seed=seed,
        iteration=iteration,
        halves=halves,
        on_progress=on_progress,
    )
    check_some_ran(episodes)
    return episodes


def assign(task_ids: Sequence[str], group_size: int) -> list[Assignment]:
    """Repeat each task `group_size` times and number a task's rollouts 0, 1, ...

    A task listed twice gets one group of twice the size: a group is all rollouts of a task.
    """
    seen: dict[str, int] = {}
    assignments = []
    for task_id in task_ids:
        first = seen.get(task_id, 0)
        assignments += [(task_id, first + k) for k in range(group_size)]
        seen[task_id] = first + group_size
    return assignments


def play(
    pool: Pool,
    generator: Generator,
    codec: Codec,
    assignments: Sequence[Assignment],
    *,
    max_prompt_tokens: int,
    seed: int,
    iteration: int = 0,
    halves: int = 1,
    on_progress: Progress | None = None,
) -> list[Episode]:
    """Play with a model that samples token ids; see `play_policy` and `TokenPolicy`."""
    return play_policy(
        pool,
        TokenPolicy(generator, codec, max_prompt_tokens),
        assignments,
        seed=seed,
        iteration=iteration,
        halves=halves,
        on_progress=on_progress,
    )


def play_policy(
    pool: Pool,
    policy: Policy,
    assignments: Sequence[Assignment],
    *,
    seed: int,
    iteration: int = 0,
    halves: int = 1,
    on_progress: Progress | None = None,
) -> list[Episode]:
    """Play the named (task, trajectory) pairs and return their episodes in that order.

    Args:
        pool: where they run; with fewer slots than pairs they run in waves.
        policy: answers the prompts. A prompt over its budget is replaced by the first of
            `info["shorter_prompts"]` that fits, and if none does the episode stops with "context".
        assignments: (task id, trajectory number); the number is unique within its task.
        seed: with `iteration`, names the randomness of every row.
        iteration: see `seed`.
        halves: 1, or 2 to step one half's environments while the other half is answered.
        on_progress: called with (finished, total) after every step of the pool.
    """
    if len(pool) == 0:
        raise ValueError("The pool has no environments. Give it a size of at least 1.")
    if halves not in (1, 2):
        raise ValueError(f"halves={halves}: 1 for lockstep, 2 to overlap stepping and answering.")
    episodes: list[Episode] = []
    for start in range(0, len(assignments), len(pool)):
        wave = assignments[start : start + len(pool)]
        table = Table(pool, policy, wave, seed, iteration)
        for finished in _take_turns(table, halves):
            if on_progress is not None:
                on_progress(start + finished, len(assignments))
        episodes += table.episodes()
    return episodes


def _take_turns(table: Table, halves: int) -> Iterator[int]:
    """Run a wave to its end; after every step of the pool, how many of its episodes finished."""
    turns: deque[Future[dict[int, Prompt]]] = deque()
    with _aside(halves) as submit:
        for half in range(halves):
            slots = range(half, len(table.wave), halves)
            turns.append(submit(partial(table.prompts, slots)))
        while turns:
            ready = turns.popleft().result()
            yield table.finished
            if ready:
                replies = table.answers(ready)
                turns.append(submit(partial(table.step, ready, replies)))


Work = Callable[[], dict[int, Prompt]]


@contextmanager
def _aside(halves: int) -> Iterator[Callable[[Work], Future[dict[int, Prompt]]]]:
    """Where environments step: right here, or in one other thread if there are two halves."""
    if halves > 1:
        with ThreadPoolExecutor(max_workers=1) as executor:
            yield executor.submit
        return

    def at_once(work: Work) -> Future[dict[int, Prompt]]:
        future: Future[dict[int, Prompt]] = Future()
        future.set_result(work())
        return future

    yield at_once
