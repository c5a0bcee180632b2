"""What a report shows of a Sokoban state beside the rollouts: true distances, deadlocks."""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym

from milegpo_envs.reports import Truth
from milegpo_envs.sokoban.env import SokobanEnv
from milegpo_envs.sokoban.solver import TooLarge


def truth(env: gym.Env[Any, Any], info: Mapping[str, Any]) -> Truth:
    """Fewest moves and pushes to a solution from the present state, and whether it is lost.

    Of a room too large to search, only what the rules for deadlocks see.
    """
    sokoban = env.unwrapped
    assert isinstance(sokoban, SokobanEnv)
    deadlocked = bool(info["deadlocked"])
    on_target = int(info["boxes_on_target"])
    try:
        moves, pushes = sokoban.distance(by="moves"), sokoban.distance(by="pushes")
    except TooLarge:
        return Truth(None, deadlocked, {"deadlock seen": _yes(deadlocked)})
    return Truth(
        distance=moves,
        lost=moves is None,
        values={
            "pushes to a solution": "none" if pushes is None else pushes,
            "moves to a solution": "none" if moves is None else moves,
            "deadlock seen by the rules": _yes(deadlocked),
            "boxes on targets": on_target,
        },
    )


def _yes(flag: bool) -> str:
    return "yes" if flag else "no"
