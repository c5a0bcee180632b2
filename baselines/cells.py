"""The cells of a comparison: what runs, in which folder, by which command."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from baselines.comparison import WARM_START, cell_name
from baselines.runs import RESULT


@dataclass(frozen=True)
class Cell:
    """What to train; the warm start, with no training, where there is neither method nor agent.

    environment: of a recipe file that names several, else "".
    declared: whether the recipe file names the method; else it is an estimator.
    agent: played instead of training.
    """

    method: str | None
    seed: int | None
    out: Path
    environment: str = ""
    declared: bool = False
    agent: str | None = None

    @property
    def name(self) -> str:
        """The name of its row."""
        if self.method is not None:
            return cell_name(self.method, self.seed)
        return self.agent or WARM_START

    @property
    def folder(self) -> Path:
        """Where its files are."""
        if self.agent is not None:
            return self.out / "cells" / f"agent-{self.agent}"
        return self.out / ("warm_start" if self.method is None else f"cells/{self.name}")

    @property
    def result(self) -> Path:
        """Its result row; exists when it is finished."""
        return self.folder / RESULT


Command = Callable[[Path, Cell, str | None], tuple[str, ...]]


def train_command(
    config: Path, cell: Cell, model: str | None, python: str = sys.executable
) -> tuple[str, ...]:
    """Write the command of a cell; ``model`` is the warm start's, None for the warm start.

    A cell that was stopped goes on from its last checkpoint, if it has one.
    """
    script = "scripts.train" if cell.agent is None else "scripts.evaluate"
    base = [python, "-m", script, "--config", str(config)]
    if cell.environment:
        base += ["--environment", cell.environment]
    folder = ("--output_dir", str(cell.folder))
    start = ("--model", model) if model is not None else ()
    if cell.agent is not None:
        return (*base, *start, "--agent", cell.agent, *folder)
    if cell.method is None:
        return (*base, *start, "--warm_start_only", "true", *folder)
    what = ("--method" if cell.declared else "--estimator", cell.method, "--seed", str(cell.seed))
    return (*base, *start, *what, *folder, "--resume_from_checkpoint", "last")
