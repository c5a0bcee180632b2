"""Episodes of chosen iterations as JSON lines, to be read by people and by other programs."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from milegpo_algo.rollout.episode import Episode, StepRecord
from milegpo_algo.rollout.generator import Image

Decode = Callable[[Sequence[int]], str]
Credit = dict[str, object]


@dataclass(frozen=True)
class TrajectoryFolder:
    """A folder with one file an iteration and one line an episode.

    A line has `iteration`, the episode's `task_id, trajectory_id, success, score, stop, extras` and
    `steps`, each with everything of its `StepRecord`, the prompt as text, its advantage, and a
    critic's value. Ids of tokens are written exactly; a number that is not known is null. A file
    appears whole or not at all, and replaces one of the same iteration. A step that saw images has
    their names, `images`, PNG files in the folder of that name, one for each different image.

    Attributes:
        folder: made when first written to.
        decode: ids of a prompt to text.
        with_ids: whether to write ids of tokens and log-probs.
    """

    folder: Path
    decode: Decode
    with_ids: bool = False

    def write(
        self,
        iteration: int,
        episodes: Sequence[Episode],
        advantages: Sequence[float] | None = None,
        values: Sequence[float | None] | None = None,
    ) -> Path:
        """Write the episodes of an iteration.

        Args:
            iteration: its number, which names the file.
            episodes: all of them, or a few.
            advantages: one a step, in the order of episodes and steps.
            values: of a critic before each reply, likewise; None where it gave none.
        """
        credit = _credit(sum(len(e.steps) for e in episodes), advantages, values)
        path = self.folder / f"iteration-{iteration:06d}.jsonl"
        self.folder.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".tmp")
        with temporary.open("w", encoding="utf-8") as file:
            for episode in episodes:
                own = islice(credit, len(episode.steps))
                line = {"iteration": iteration, **self._line(episode, own)}
                file.write(json.dumps(line, allow_nan=False) + "\n")
        temporary.replace(path)
        return path

    def _line(self, episode: Episode, credit: Iterable[Credit]) -> dict[str, object]:
        steps = [
            {**self._step(step), **own} for step, own in zip(episode.steps, credit, strict=True)
        ]
        return {
            "task_id": episode.task_id,
            "trajectory_id": episode.trajectory_id,
            "success": episode.success,
            "score": episode.score,
            "stop": episode.stop,
            "extras": {k: _finite(v) for k, v in episode.extras.items()},
            "steps": steps,
        }

    def _step(self, step: StepRecord) -> dict[str, object]:
        known = [value for value in step.logprobs or () if not math.isnan(value)]
        line: dict[str, object] = {
            "prompt": self.decode(step.prompt_ids),
            "reply": step.reply,
            "action": step.action,
            "state_id": step.state_id,
            "next_state_id": step.next_state_id,
            "reward": step.reward,
            "format_valid": step.format_valid,
            "format_problem": step.format_problem,
            "action_valid": step.action_valid,
            "invalid_reason": step.invalid_reason,
            "finish_reason": step.finish_reason,
            "prompt_tokens": step.prompt_tokens,
            "completion_tokens": step.completion_tokens,
            "logprob": math.fsum(known) if step.logprobs is not None else None,
        }
        if step.images:
            line["images"] = [self._save(image) for image in step.images]
        if self.with_ids:
            line["prompt_ids"] = list(step.prompt_ids)
            line["completion_ids"] = list(step.completion_ids)
            line["logprobs"] = None if step.logprobs is None else [*map(_finite, step.logprobs)]
        return line

    def _save(self, image: Image) -> str:
        from PIL.Image import fromarray  # there with any processor of images

        content = f"{image.shape}".encode() + image.tobytes()
        name = f"images/{hashlib.blake2b(content, digest_size=8).hexdigest()}.png"
        path = self.folder / name
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            temporary = path.with_suffix(".tmp")
            fromarray(image).save(temporary, format="png")
            temporary.replace(path)
        return name


def _credit(
    count: int, advantages: Sequence[float] | None, values: Sequence[float | None] | None
) -> Iterator[Credit]:
    """What is known of each of so many steps."""
    columns = {"advantage": advantages, "value": values}
    known = {name: column for name, column in columns.items() if column is not None}
    for name, column in known.items():
        if len(column) != count:
            raise ValueError(f"{len(column)} of {name} for {count} steps: give one a step.")
    return iter(
        [{name: _number(column[i]) for name, column in known.items()} for i in range(count)]
    )


def _number(value: float | None) -> object:
    return None if value is None else _finite(float(value))


def _finite(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value
