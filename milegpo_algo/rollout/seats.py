"""One wave of episodes around a table: a seat each, until all of them have stopped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import SupportsFloat, cast

from milegpo_algo.rollout.episode import Episode, Scalar, StepRecord, Stop
from milegpo_algo.rollout.generator import Image, Messages, sampling_key, with_images
from milegpo_algo.rollout.policy import Policy, Prompt, Reply
from milegpo_algo.rollout.pool import Info, Pool

Assignment = tuple[str, int]
"""A task, and the number of a rollout of it."""

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


@dataclass
class Seat:
    """One slot of the pool: where its episode stands."""

    messages: Messages
    info: Info
    steps: list[StepRecord] = field(default_factory=list)
    stop: Stop | None = None


class Table:
    """One wave of episodes, one seat each, until all of them have stopped.

    Args:
        pool: where they run, of as many slots or more; it is reset here.
        policy: answers the prompts.
        wave: what to play, slot by slot.
        seed: with `iteration`, names the randomness of every row.
        iteration: see `seed`.
    """

    def __init__(
        self, pool: Pool, policy: Policy, wave: Sequence[Assignment], seed: int, iteration: int
    ) -> None:
        self.pool, self.policy, self.wave = pool, policy, wave
        self.seed, self.iteration = seed, iteration
        first = pool.reset([task_id for task_id, _ in wave])
        self.seats = [Seat(messages, info) for messages, info in first]
        for seat in self.seats:
            if _error(seat.info) is not None:
                seat.stop = "error"

    @property
    def finished(self) -> int:
        """How many episodes have stopped."""
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
        """What was played, once all have stopped, in the order of the wave."""
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
