"""What a run spent by an iteration, and how much it took to a given success.

Read from ``metrics.jsonl`` and ``evaluations.jsonl`` of a run folder. Seconds are those of training
iterations, evaluations not counted; tokens are of prompts and replies of all rollouts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Spent:
    """Sums over the iterations up to this one."""

    iteration: int = 0
    seconds: float = 0.0
    episodes: int = 0
    rows: int = 0
    prompt_tokens: float = 0.0
    completion_tokens: float = 0.0

    @property
    def tokens(self) -> float:
        """Of prompts and replies."""
        return self.prompt_tokens + self.completion_tokens

    def counts(self) -> dict[str, int]:
        """Return the counts, without the clock."""
        return {
            "iterations": self.iteration,
            "episodes": self.episodes,
            "rows": self.rows,
            "prompt_tokens": round(self.prompt_tokens),
            "completion_tokens": round(self.completion_tokens),
        }


def read_costs(folder: Path) -> list[Spent]:
    """Return what was spent by every iteration; the first element is the start, with nothing."""
    spent = [Spent()]
    for line in _lines(folder / "metrics.jsonl"):
        last = spent[-1]
        steps = line["episodes"] * line["episode_length"]
        spent.append(
            Spent(
                iteration=int(line["iteration"]),
                seconds=last.seconds + line["seconds/total"],
                episodes=last.episodes + int(line["episodes"]),
                rows=last.rows + int(line["rows"]),
                prompt_tokens=last.prompt_tokens + steps * line.get("prompt_tokens", 0.0),
                completion_tokens=last.completion_tokens
                + steps * line.get("completion_tokens", 0.0),
            )
        )
    return spent


def cost_to(folder: Path, success: float) -> Spent | None:
    """Return what was spent until an evaluation while training first reached a success.

    None if none did. The answer is as fine as evaluations are frequent.
    """
    reached = [
        int(line["iteration"])
        for line in _lines(folder / "evaluations.jsonl")
        if line["success"] >= success
    ]
    if not reached:
        return None
    first = min(reached)
    return next((spent for spent in read_costs(folder) if spent.iteration >= first), None)


def _lines(path: Path) -> Iterator[dict[str, float]]:
    if not path.exists():
        return
    for line in path.read_text(encoding="utf-8").splitlines():
        yield json.loads(line)
