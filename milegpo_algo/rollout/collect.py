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
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, SupportsFloat, cast

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
from milegpo_algo.rollout.generator import (
    Codec,
    Generator,
    Image,
    Messages,
    sampling_key,
    with_images,
)
from milegpo_algo.rollout.policy import Policy, Prompt, Reply, TokenPolicy

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

Info = Mapping[str, object]
Assignment = tuple[str, int]
Progress = Callable[[int, int], None]

# What every environment reports; anything else that is a plain value becomes an extra of the
# episode (task_type, ...).
_CONTRACT_KEYS = frozenset(
    [
        "task_id",
        "state_id",
        "state",
        "admissible_actions",
        "action_valid",
        "invalid_reason",
        "success",
        "score",
        "executed_action",
        "format_valid",
        "format_problem",
        "shorter_prompts",
        "error",
        "images",
    ]
)


class Pool(Protocol):
    """Environments that take chat prompts out and raw replies in, side by side.

    An exception inside an environment, a time-out or a lost worker arrives as `truncated=True` with
    the text in `info["error"]`, and all other keys of the contract. Where messages have places for
    images, these come in `info["images"]`, in order.
    """

    def __len__(self) -> int:
        """How many episodes can run at once."""
        ...

    def reset(self, task_ids: Sequence[str]) -> Sequence[tuple[Messages, Info]]:
        """Start slot i on `task_ids[i]`."""
        ...

    def step(
        self, actions: Mapping[int, str]
    ) -> Mapping[int, tuple[Messages, float, bool, bool, Info]]:
        """Send one raw reply to each named slot; answers as Gymnasium's five values."""
        ...


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
        table = _Table(pool, policy, wave, seed, iteration)
        for finished in _take_turns(table, halves):
            if on_progress is not None:
                on_progress(start + finished, len(assignments))
        episodes += table.episodes()
    return episodes


def _take_turns(table: _Table, halves: int) -> Iterator[int]:
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


@dataclass
class _Seat:
    """One slot of the pool: where its episode stands."""

    messages: Messages
    info: Info
    steps: list[StepRecord] = field(default_factory=list)
    stop: Stop | None = None


class _Table:
    """One wave of episodes, one seat each, until all of them have stopped."""

    def __init__(
        self, pool: Pool, policy: Policy, wave: Sequence[Assignment], seed: int, iteration: int
    ) -> None:
        self.pool, self.policy, self.wave = pool, policy, wave
        self.seed, self.iteration = seed, iteration
        first = pool.reset([task_id for task_id, _ in wave])
        self.seats = [_Seat(messages, info) for messages, info in first]
        for seat in self.seats:
            if _error(seat.info) is not None:
                seat.stop = "error"

    @property
    def finished(self) -> int:
        return sum(seat.stop is not None for seat in self.seats)

    def prompts(self, slots: Sequence[int]) -> dict[int, Prompt]:
        """Prompts of the slots' episodes that still run; stops those whose prompt does not fit."""
        ready = {}
        for slot in slots:
            seat = self.seats[slot]
            if seat.stop is not None:
                continue
            shorter = cast(Sequence[Messages], seat.info.get("shorter_prompts", ()))
            candidates = (seat.messages, *shorter)
            if images := cast("Sequence[Image]", seat.info.get("images", ())):
                candidates = tuple(with_images(messages, images) for messages in candidates)
            prompt = self.policy.fit(candidates)
            if prompt is None:
                seat.stop = "context"
            else:
                ready[slot] = prompt
        return ready

    def answers(self, ready: Mapping[int, Prompt]) -> list[Reply]:
        """One reply for each prompt."""
        keys = [
            sampling_key(self.seed, self.iteration, *self.wave[slot], len(self.seats[slot].steps))
            for slot in ready
        ]
        return self.policy.answer(list(ready.values()), keys)

    def step(self, prompts: Mapping[int, Prompt], answers: Sequence[Reply]) -> dict[int, Prompt]:
        """Send the replies, write down what came of them; the prompts of those that go on."""
        replies = dict(zip(prompts, answers, strict=True))
        results = self.pool.step({slot: reply.text for slot, reply in replies.items()})
        for slot, (messages, reward, terminated, truncated, info) in results.items():
            seat, prompt, reply = self.seats[slot], prompts[slot], replies[slot]
            seat.steps.append(
                StepRecord(
                    prompt_ids=prompt.token_ids,
                    completion_ids=reply.token_ids,
                    logprobs=reply.logprobs,
                    reply=reply.text,
                    action=str(info["executed_action"]),
                    state_id=str(seat.info["state_id"]),
                    next_state_id=str(info["state_id"]),
                    reward=float(reward),
                    format_valid=bool(info["format_valid"]),
                    action_valid=bool(info["action_valid"]),
                    invalid_reason=_text(info["invalid_reason"]),
                    finish_reason=reply.finish_reason,
                    format_problem=_text(info.get("format_problem")),
                    usage=reply.usage,
                    images=prompt.images,
                )
            )
            seat.messages, seat.info = messages, info
            seat.stop = _stop(terminated, truncated, info)
        return self.prompts(list(prompts))

    def episodes(self) -> list[Episode]:
        return [
            Episode(
                task_id=task_id,
                trajectory_id=trajectory_id,
                steps=tuple(seat.steps),
                success=bool(seat.info["success"]),
                score=float(cast(SupportsFloat, seat.info["score"])),
                stop=cast(Stop, seat.stop),  # the wave is over: every seat has one
                extras=_extras(seat.info),
            )
            for (task_id, trajectory_id), seat in zip(self.wave, self.seats, strict=True)
        ]


def _stop(terminated: bool, truncated: bool, info: Info) -> Stop | None:
    if _error(info) is not None:
        return "error"
    if terminated:
        return "success" if info["success"] else "failure"
    return "horizon" if truncated else None


def _error(info: Info) -> str | None:
    return _text(info.get("error"))


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _extras(info: Info) -> dict[str, Scalar]:
    extras = {
        key: value
        for key, value in info.items()
        if key not in _CONTRACT_KEYS and isinstance(value, str | int | float | bool)
    }
    error = _error(info)
    return extras if error is None else {**extras, "error": error}
