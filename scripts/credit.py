"""Show what every estimator gives each step, as a Markdown table.

    python -m scripts.credit                                  # the worked example of the docs
    python -m scripts.credit --convention verl-agent --recipe webshop
    python -m scripts.credit steps.parquet --task some-task --estimators gigpo milegpo
    python -m scripts.credit runs/train/iteration-000005.jsonl --task some-task

A file holds steps (`Rollouts.to_parquet`) or episodes (`scripts.train --trajectory_steps`). PPO
needs a critic; here it is one that predicts 0 for a reply of one token.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from baselines.report.sources import NothingToReport, Stored, rollouts_of
from milegpo_algo import (
    GOAL,
    RolloutError,
    Rollouts,
    StepEstimator,
    estimator_names,
    make_estimator,
)
from milegpo_algo.data import FloatArray
from milegpo_algo.estimator import CONVENTIONS, RECIPES

# A and B are equally far from the goal, but two of three who go to B end in X. The last reply of
# trajectory 5 was malformed.
EXAMPLE = {"1": "S A goal", "2": "S A goal", "3": "S B goal", "4": "S B X", "5": "S B X"}
MALFORMED = ("5", 1)
ORDER = ("grpo", "rloo", "ppo", "gigpo", "hgpo", "graphgpo", "progpo", "milegpo")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.credit",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "file", nargs="?", type=Path, help="Parquet or JSON lines (default: the worked example)"
    )
    parser.add_argument("--task", help="show one task only")
    parser.add_argument("--convention", choices=tuple(CONVENTIONS), default="paper")
    parser.add_argument("--recipe", choices=RECIPES)
    parser.add_argument("--estimators", nargs="+", choices=estimator_names(), metavar="NAME")
    options = parser.parse_args(arguments)
    names = options.estimators or sorted(estimator_names(), key=_place)
    try:
        rollouts = example() if options.file is None else rollouts_of(Stored(options.file, 0))[0]
        columns = {n: credit(rollouts, n, options.convention, options.recipe) for n in names}
        text = table(rollouts, columns, options.task)
    except (NothingToReport, RolloutError, ModuleNotFoundError) as error:
        parser.exit(2, f"{parser.prog}: error: {error}\n")
    sys.stdout.write(text)


def example() -> Rollouts:
    """The worked example."""
    records: list[dict[str, object]] = []
    for trajectory, path in EXAMPLE.items():
        states = path.split()
        success = states[-1] == "goal"
        for step, (state, after) in enumerate(pairwise(states)):
            records.append(
                {
                    "task_id": "q",
                    "trajectory_id": trajectory,
                    "step": step,
                    "state": state,
                    "action": f"go {after}",
                    "next_state": after,
                    "reward": 10.0 if after == "goal" else 0.0,
                    "valid": (trajectory, step) != MALFORMED,
                    "success": success,
                }
            )
    return Rollouts.from_steps(records)


def credit(rollouts: Rollouts, name: str, convention: str, recipe: str | None) -> FloatArray:
    """One number per step; the recipe counts only for estimators that have it."""
    known = recipe if recipe in type(make_estimator(name)).recipes else None
    estimator = make_estimator(name, convention=convention, recipe=known)
    if isinstance(estimator, StepEstimator):
        return estimator(rollouts)
    return np.concatenate(estimator(rollouts, [np.zeros(1)] * len(rollouts)))


def table(rollouts: Rollouts, columns: Mapping[str, FloatArray], task: str | None = None) -> str:
    """Markdown, a line per step, by trajectory and time."""
    if task is not None and task not in rollouts.tasks:
        listed = ", ".join(rollouts.tasks[:12]) + (", ..." if len(rollouts.tasks) > 12 else "")
        raise RolloutError(f"no task {task!r} among the {len(rollouts.tasks)} given: {listed}")
    several = len(rollouts.tasks) > 1 and task is None
    head = [*(["task"] if several else []), "trajectory", "step", "from", "to", *columns]
    lines = [head, ["---"] * (len(head) - len(columns)) + ["--:"] * len(columns)]
    for row in rollouts.order.tolist():
        here = rollouts.tasks[rollouts.task[row]]
        if task not in (None, here):
            continue
        after = rollouts.next_state[row]
        lines.append(
            [
                *([here] if several else []),
                rollouts.trajectory_ids[rollouts.trajectory[row]],
                str(rollouts.step[row]) + ("" if rollouts.valid[row] else " (malformed)"),
                rollouts.states[rollouts.state[row]],
                "goal" if after == GOAL else rollouts.states[after],
                *(
                    f"{values[row] + 0.0:.3f}".replace("-0.000", "0.000")
                    for values in columns.values()
                ),
            ]
        )
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _place(name: str) -> tuple[int, str]:
    return (ORDER.index(name) if name in ORDER else len(ORDER), name)


if __name__ == "__main__":
    main()
