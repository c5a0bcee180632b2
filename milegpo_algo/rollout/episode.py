"""What a rollout leaves behind: steps, episodes, and the records that credit is assigned from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from milegpo_algo.rollout.generator import FinishReason, Image, Usage

Scalar = str | int | float | bool
Penalise = Literal["format", "admissible", "both"]
Stop = Literal["success", "failure", "horizon", "context", "error"]

PENALISE: tuple[Penalise, ...] = ("format", "admissible", "both")
STOPS: tuple[Stop, ...] = ("success", "failure", "horizon", "context", "error")


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One environment step: one prompt, one reply, one training row.

    `state_id` and `next_state_id` are canonical state ids before and after. `format_valid` is about
    the reply's form (`format_problem` names the fault), `action_valid` about admissibility of the
    action that was sent (`invalid_reason` names the fault). Ids are those the model read and
    sampled; a remote model that speaks text leaves them empty and fills `usage`. `images` are those
    of the prompt, in order.
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
    format_problem: str | None = None
    usage: Usage | None = None
    images: tuple[Image, ...] = ()

    @property
    def prompt_tokens(self) -> int:
        """Length of the prompt, as counted by whoever read it."""
        return len(self.prompt_ids) if self.usage is None else self.usage.prompt_tokens

    @property
    def completion_tokens(self) -> int:
        """Length of the reply, as counted by whoever wrote it."""
        return len(self.completion_ids) if self.usage is None else self.usage.completion_tokens


@dataclass(frozen=True, slots=True)
class Episode:
    """One rollout of one task.

    `stop` says why it ended: "success" and "failure" (the task ended, won or not), "horizon" (step
    limit), "context" (the next prompt did not fit), "error" (the environment raised or timed out;
    the text is in `extras["error"]`). An episode may have no steps: its first prompt did not fit or
    its environment could not start. It counts in every rate and gives no row.
    """

    task_id: str
    trajectory_id: int
    steps: tuple[StepRecord, ...]
    success: bool
    score: float
    stop: Stop
    extras: Mapping[str, Scalar] = field(default_factory=dict)


class RolloutFailed(RuntimeError):
    """Every episode ended with an error of its environment: there is nothing to learn from."""


def check_some_ran(episodes: Sequence[Episode]) -> None:
    """Refuse a batch in which every environment failed.

    A failed episode among others is data. A batch of nothing else is a broken installation, a full
    disk, a dead site: training on would only count errors.

    Raises:
        RolloutFailed: with the first error's text.
    """
    if episodes and all(episode.stop == "error" for episode in episodes):
        first = episodes[0]
        raise RolloutFailed(
            f"All {len(episodes)} episodes ended with an error of their environment. The first, "
            f"task {first.task_id}: {first.extras.get('error', 'no text')}"
        )


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
