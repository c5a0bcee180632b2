"""Measure Sokoban: steps a second, levels a second, distances.

python -m scripts.bench sokoban
"""

import argparse
from collections.abc import Sequence
from typing import Any

import gymnasium as gym

from milegpo_envs.draws import Draws
from milegpo_envs.reports import Advance, Cell, Report, Stopwatch
from milegpo_envs.sokoban import generator
from milegpo_envs.sokoban.board import MOVES
from milegpo_envs.sokoban.canonical import views_of
from milegpo_envs.sokoban.level import Level
from milegpo_envs.sokoban.solver import TABLE_LIMIT, Distances, positions

HELP = "Sokoban: steps, levels and distances a second"

EPISODE = 15  # steps


def add_options(parser: argparse.ArgumentParser) -> None:
    """How much to measure."""
    parser.add_argument("--levels", type=int, default=2000, help="number of levels (default 2000)")
    parser.add_argument("--size", type=int, nargs=2, default=(6, 6), help="rows, columns")
    parser.add_argument("--boxes", type=int, default=1)


def run(options: argparse.Namespace, advance: Advance) -> Report:
    """Time everything once; CPU seconds of this process."""
    size = (options.size[0], options.size[1])
    made, making = _generated(size, options.boxes, options.levels)
    rows: list[tuple[Cell, ...]] = [("levels generated", len(made) / making.seconds)]
    rows.append(("rooms solved from every position", _rooms_a_second(made[:200])))
    arguments: dict[str, Any] = {"size": size, "boxes": options.boxes}
    for observation, plays in (("text", 1), ("text", 8), ("image", 1), ("both", 1)):
        env = gym.make("milegpo/Sokoban-v0", observation=observation, **arguments)
        name = f"steps, observation={observation}, {plays} play(s) of each level"
        rows.append((name, _steps_a_second(env, made, plays)))
    return Report(
        title=f"Sokoban {size[0]}x{size[1]}, {options.boxes} box(es), one core, CPU time",
        columns=("what", "a second"),
        rows=tuple(rows),
        notes=(
            f"Steps are random moves, {EPISODE} an episode at most, through gym.make's wrappers, "
            "resets left out. Each comes with its own info dict, list of actions and state.",
            "Boards and state ids are computed when a position of a room is first met and then "
            "remembered; the first row of steps meets every level anew, the second shares them "
            "between 8 rollouts, as training does.",
        ),
    )


def _generated(size: tuple[int, int], boxes: int, count: int) -> tuple[Sequence[Level], Stopwatch]:
    watch = Stopwatch()
    with watch:
        made = [generator.generate.__wrapped__(size, boxes, "train", n) for n in range(count)]
    return made, watch


def _rooms_a_second(made: Sequence[Level]) -> float | None:
    """Rooms whose every distance is computed, or None if one is too large for that."""
    if any(positions(level.room) > TABLE_LIMIT for level in made):
        return None
    watch = Stopwatch()
    with watch:
        for level in made:
            Distances(level.room)
    return len(made) / watch.seconds


def _steps_a_second(env: gym.Env[object, str], made: Sequence[Level], plays: int) -> float:
    """Random walks, `plays` on each level before the next."""
    views_of.cache_clear()
    draws = Draws("bench/sokoban")
    watch, steps = Stopwatch(), 0
    for level in made:
        for _ in range(plays):
            env.reset(options={"task": level.id})
            moves = [draws.choice(MOVES) for _ in range(EPISODE)]
            with watch:
                for move in moves:
                    _, _, terminated, _, _ = env.step(move)
                    steps += 1
                    if terminated:
                        break
    return steps / watch.seconds
