"""Builders for rollouts in tests: paths in a line, worked cases, random ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from milegpo_algo import Rollouts

Record = dict[str, Any]

VECTORS = Path(__file__).parents[1] / "data" / "credit_vectors.json"


def path(
    task: str,
    trajectory: str,
    states: str | Sequence[str],
    *,
    success: bool = False,
    malformed: Sequence[int] = (),
    rewards: Sequence[float] | None = None,
) -> list[Record]:
    """Records of one trajectory: "SAB" walks S -> A -> B, and on to the goal if it succeeds."""
    places = [*states, "end"] if success else list(states)
    steps = len(places) - 1
    if rewards is None:
        rewards = [0.0] * (steps - 1) + [10.0 if success else 0.0]
    return [
        {
            "task_id": task,
            "trajectory_id": trajectory,
            "step": t,
            "state": places[t],
            "action": f"to {places[t + 1]}",
            "next_state": places[t + 1],
            "reward": rewards[t],
            "valid": t not in malformed,
            "success": success,
        }
        for t in range(steps)
    ]


def rollouts(*paths: list[Record]) -> Rollouts:
    return Rollouts.from_steps(record for records in paths for record in records)


def fork_records() -> list[Record]:
    """Two successes and a failure that share S and A; B is what the successes have in common."""
    return [
        *path("q", "1", "SAB", success=True),
        *path("q", "2", "SB", success=True),
        *path("q", "3", "SADE"),
    ]


@cache
def vector_cases() -> list[dict[str, Any]]:
    """The worked numbers, their rows renamed to the keys of `Rollouts.from_steps`."""
    renamed = {"traj_id": "trajectory_id", "t": "step", "step_reward": "reward"}
    cases = json.loads(VECTORS.read_text())["cases"]
    for case in cases:
        case["records"] = [
            {renamed.get(key, key): value for key, value in row.items()} for row in case["rows"]
        ]
    return cases


def random_records(
    seed: int, *, tasks: int = 3, group: int = 5, horizon: int = 8, states: int = 6
) -> list[Record]:
    """Walks over few states, so that loops, revisits, ties and singletons all occur; shuffled."""
    rng = np.random.default_rng(seed)
    records: list[Record] = []
    for task in range(tasks):
        chance = rng.choice([0.0, 0.3, 0.6, 1.0])
        for trajectory in range(int(rng.integers(1, group + 1))):
            length = int(rng.integers(1, horizon + 1))
            walk = ["S", *(chr(65 + i) for i in rng.integers(0, states, length))]
            success = bool(rng.random() < chance)
            malformed = np.flatnonzero(rng.random(length + 1) < 0.2).tolist()
            records += path(
                f"task{task}", f"{trajectory}", walk, success=success, malformed=malformed
            )
    return [records[i] for i in rng.permutation(len(records))]
