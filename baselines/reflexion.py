"""Reflexion: several trials at each task, with a note to oneself after each failure.

Verbal reinforcement learning (arXiv:2303.11366): after a failed trial the model reads the
transcript and writes what to do differently; the newest notes stand in the prompt of the next
trial. Whether a trial failed is the environment's own success flag and nothing else, and a task
that succeeded is not tried again. An oracle of success between trials is part of the method: its
numbers are not comparable with single-trial ones, and the result says how many trials it had.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from milegpo_algo.rollout.collect import Episode, Pool
from milegpo_algo.rollout.generator import Messages

MEMORY = 3
"""Notes kept on a task, the newest; as in the paper."""

NOTE_CHARACTERS = 1500
TRANSCRIPT_CHARACTERS = 12_000
"""Bounds of a note and of the transcript it is about; the transcript loses its middle."""

Play = Callable[[Pool, Sequence[str], int], Sequence[Episode]]
"""Play tasks once each: (pool, task ids, trial from 0) -> episodes in that order."""
Reflect = Callable[[Sequence[Messages], Sequence[str], int], Sequence[str]]
"""Answer prompts with text: (prompts, task ids, trial) -> replies in that order."""


@dataclass
class Memory:
    """What was noted about each task, oldest first; the ``notes`` of a ``ReAct`` agent."""

    notes: dict[str, list[str]] = field(default_factory=dict)

    def __call__(self, task_id: str) -> tuple[str, ...]:
        """Return the newest notes on a task."""
        return tuple(self.notes.get(task_id, [])[-MEMORY:])

    def add(self, task_id: str, note: str) -> None:
        """Note something; blanks add nothing."""
        line = " ".join(note[: 4 * NOTE_CHARACTERS].split())[:NOTE_CHARACTERS]
        if line:
            self.notes.setdefault(task_id, []).append(line)


@dataclass(frozen=True)
class Trials:
    """What became of each task.

    last: the last episode of each task, in the order of the panel.
    solved_at: the trial (from 1) at which a task succeeded first, None if never.
    """

    last: tuple[Episode, ...]
    solved_at: tuple[int | None, ...]
    trials: int

    def success_after(self, trial: int) -> float:
        """Share of tasks that succeeded at this trial or before."""
        return fmean(at is not None and at <= trial for at in self.solved_at)


def reflexion(
    pool: Pool,
    task_ids: Sequence[str],
    memory: Memory,
    play: Play,
    reflect: Reflect,
    *,
    trials: int = 3,
) -> Trials:
    """Try each task up to ``trials`` times.

    Args:
        pool: of ``ReAct`` environments in this process that have ``memory`` as their notes.
        task_ids: without repeats.
        memory: filled on the way.
        play: plays one trial.
        reflect: the model, asked for notes.
        trials: at least 1; with 1 it is ReAct.
    """
    if trials < 1:
        raise ValueError(f"trials={trials}: at least one is needed to know anything.")
    if len(set(task_ids)) != len(task_ids):
        raise ValueError("A task is listed twice; notes are kept by task.")
    last: dict[str, Episode] = {}
    solved: dict[str, int] = {}
    open_tasks = list(task_ids)
    for trial in range(trials):
        for episode in play(pool, open_tasks, trial):
            last[episode.task_id] = episode
            if episode.success:
                solved[episode.task_id] = trial + 1
        open_tasks = [task for task in open_tasks if task not in solved]
        if not open_tasks:
            break
        if trial + 1 < trials:
            prompts = [reflection_prompt(last[task], memory(task)) for task in open_tasks]
            replies = reflect(prompts, open_tasks, trial)
            for task, reply in zip(open_tasks, replies, strict=True):
                memory.add(task, note_of(reply))
    return Trials(
        tuple(last[task] for task in task_ids),
        tuple(solved.get(task) for task in task_ids),
        trials,
    )


def reflection_prompt(episode: Episode, notes: Sequence[str]) -> Messages:
    """Ask for a note on a failed episode."""
    text = _middle_cut(str(episode.extras.get("transcript", "")))
    blocks = [
        "You tried a task and did not solve it. This is what happened:",
        text,
        f"The attempt ended by: {episode.stop}, after {len(episode.steps)} steps.",
        *(f"You had noted earlier: {note}" for note in notes),
        "In two or three sentences, say what went wrong and what you will do differently in the "
        "next attempt at this very task. Name objects and places.",
    ]
    return [{"role": "user", "content": "\n".join(blocks)}]


def note_of(reply: str) -> str:
    """Return what a reply says after its thinking."""
    _, closed, after = reply.rpartition("</think>")
    return after.strip() if closed and after.strip() else reply.replace("<think>", "").strip()


def _middle_cut(text: str) -> str:
    if len(text) <= TRANSCRIPT_CHARACTERS:
        return text
    half = TRANSCRIPT_CHARACTERS // 2
    return f"{text[:half]}\n[...]\n{text[-half:]}"
