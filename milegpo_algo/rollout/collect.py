"""Play episodes in lockstep: one generate call a step for all, finished ones leave the batch.

Knows no environment, no tokenizer and no model: it is handed a pool, a codec and a generator.
Whatever the model emits and whatever an environment does, it returns episodes: a prompt that does
not fit, an environment that raises, an endless reply are ways for an episode to stop, counted like
any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, SupportsFloat, cast

from milegpo_algo.rollout.generator import (
    Codec,
    FinishReason,
    Generator,
    Messages,
    Sample,
    sampling_key,
)

Info = Mapping[str, object]
Scalar = str | int | float | bool
Penalise = Literal["format", "admissible", "both"]
Stop = Literal["success", "failure", "horizon", "context", "error"]

PENALISE: tuple[Penalise, ...] = ("format", "admissible", "both")
STOPS: tuple[Stop, ...] = ("success", "failure", "horizon", "context", "error")

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
    ]
)


class Pool(Protocol):
    """Environments that take chat prompts out and raw replies in, side by side.

    An exception inside an environment arrives as `truncated=True` with the text in `info["error"]`.
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


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One environment step: one prompt, one reply, one training row.

    `state_id` and `next_state_id` are canonical state ids before and after. `format_valid` is about
    the reply's form, `action_valid` about admissibility of the action that was sent.
    """

    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]
    logprobs: tuple[float, ...] | None
    reply: str
    action: str
    state_id: str
    next_state_id: str
    reward: float
    format_valid: bool
    action_valid: bool
    invalid_reason: str | None
    finish_reason: FinishReason


@dataclass(frozen=True, slots=True)
class Episode:
    """One rollout of one task.

    `stop` says why it ended: "success" and "failure" (the task ended, won or not), "horizon" (step
    limit), "context" (the next prompt did not fit), "error" (the environment raised; the text is in
    `extras["error"]`). An episode may have no
    steps: its first prompt did not fit or its environment could not start. It counts in every rate
        and gives no row.
    """

    task_id: str
    trajectory_id: int
    steps: tuple[StepRecord, ...]
    success: bool
    score: float
    stop: Stop
    extras: Mapping[str, Scalar] = field(default_factory=dict)


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
    on_progress: Callable[[int, int], None] | None = None,
) -> list[Episode]:
    """Play every task `group_size` times; see `play`, and `assign` for the numbering."""
    return play(
        pool,
        generator,
        codec,
        assign(task_ids, group_size),
        max_prompt_tokens=max_prompt_tokens,
        seed=seed,
        iteration=iteration,
        on_progress=on_progress,
    )


def assign(task_ids: Sequence[str], group_size: int) -> list[tuple[str, int]]:
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
    assignments: Sequence[tuple[str, int]],
    *,
    max_prompt_tokens: int,
    seed: int,
    iteration: int = 0,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[Episode]:
    """Play the named (task, trajectory) pairs and return their episodes in that order.

    Args:
        pool: where they run; with fewer slots than pairs they run in waves.
        generator: samples the replies.
        codec: chat messages to ids and back.
        assignments: (task id, trajectory number); the number is unique within its task.
        max_prompt_tokens: budget of a prompt; a longer one is replaced by the first of
            `info["shorter_prompts"]` that fits, and if none does the episode stops with "context".
        seed: with `iteration`, names the randomness of every row.
        iteration: see `seed`.
        on_progress: called with (finished, total) after every step of the pool.
    """
    if len(pool) == 0:
        raise ValueError("The pool has no environments. Give it a size of at least 1.")
    episodes: list[Episode] = []
    for start in range(0, len(assignments), len(pool)):
        wave = assignments[start : start + len(pool)]
        table = _Table(pool, codec, wave, max_prompt_tokens)
        while ready := table.prompts():
            slots = list(ready)
            keys = [
                sampling_key(seed, iteration, *wave[slot], table.steps_taken(slot))
                for slot in slots
            ]
            samples = generator.generate([ready[slot] for slot in slots], keys)
            table.step(ready, dict(zip(slots, samples, strict=True)))
            if on_progress is not None:
                on_progress(start + table.finished, len(assignments))
        episodes += table.episodes()
        if on_progress is not None:
            on_progress(start + len(wave), len(assignments))
    return episodes


def to_records(episodes: Iterable[Episode], penalise: Penalise) -> list[dict[str, object]]:
    """Plain records for `Rollouts.from_steps`, in the order of episodes and steps.

    `penalise` says which fault makes a row invalid: a malformed reply ("format", as in the papers),
    an inadmissible action ("admissible"), or either of them ("both").
    """
    if penalise not in PENALISE:
        raise ValueError(f"penalise={penalise!r}: choose one of {', '.join(PENALISE)}.")
    return [
        {
            "task_id": episode.task_id,
            "trajectory_id": episode.trajectory_id,
            "step": t,
            "state": step.state_id,
            "action": step.action,
            "next_state": step.next_state_id,
            "reward": step.reward,
            "valid": (step.format_valid or penalise == "admissible")
            and (step.action_valid or penalise == "format"),
            "success": episode.success,
        }
        for episode in episodes
        for t, step in enumerate(episode.steps)
    ]


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
        self, pool: Pool, codec: Codec, wave: Sequence[tuple[str, int]], max_prompt_tokens: int
    ) -> None:
        self.pool, self.codec, self.wave, self.budget = pool, codec, wave, max_prompt_tokens
        first = pool.reset([task_id for task_id, _ in wave])
        self.seats = [_Seat(messages, info) for messages, info in first]
        for seat in self.seats:
            if _error(seat.info) is not None:
                seat.stop = "error"

    @property
    def finished(self) -> int:
        return sum(seat.stop is not None for seat in self.seats)

    def steps_taken(self, slot: int) -> int:
        return len(self.seats[slot].steps)

    def prompts(self) -> dict[int, tuple[int, ...]]:
        """Prompt ids of every episode still running; stops those whose prompt does not fit."""
        ready = {}
        for slot, seat in enumerate(self.seats):
            if seat.stop is not None:
                continue
            ids = self._fitting(seat)
            if ids is None:
                seat.stop = "context"
            else:
                ready[slot] = ids
        return ready

    def _fitting(self, seat: _Seat) -> tuple[int, ...] | None:
        shorter = cast(Sequence[Messages], seat.info.get("shorter_prompts", ()))
        for messages in (seat.messages, *shorter):
            ids = self.codec.encode(messages)
            if len(ids) <= self.budget:
                return tuple(ids)
        return None

    def step(self, prompts: Mapping[int, tuple[int, ...]], samples: Mapping[int, Sample]) -> None:
        """Send the replies and write down what came of them."""
        replies = {slot: self.codec.decode(sample.token_ids) for slot, sample in samples.items()}
        for slot, result in self.pool.step(replies).items():
            messages, reward, terminated, truncated, info = result
            seat, sample = self.seats[slot], samples[slot]
            seat.steps.append(
                StepRecord(
                    prompt_ids=prompts[slot],
                    completion_ids=sample.token_ids,
                    logprobs=sample.logprobs,
                    reply=replies[slot],
                    action=str(info["executed_action"]),
                    state_id=str(seat.info["state_id"]),
                    next_state_id=str(info["state_id"]),
                    reward=float(reward),
                    format_valid=bool(info["format_valid"]),
                    action_valid=bool(info["action_valid"]),
                    invalid_reason=_text(info["invalid_reason"]),
                    finish_reason=sample.finish_reason,
                )
            )
            seat.messages, seat.info = messages, info
            seat.stop = _stop(terminated, truncated, info)

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
