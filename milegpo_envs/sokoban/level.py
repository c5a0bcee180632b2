"""A level: a room and where player and boxes start."""

import hashlib
from dataclasses import dataclass

from milegpo_envs.errors import EnvError
from milegpo_envs.sokoban.board import Position, Room
from milegpo_envs.sokoban.notation import blank_line

SPLITS = ("train", "validation", "test")


class NoLevel(EnvError, ValueError):
    """Levels were asked for that the generator cannot make."""


@dataclass(frozen=True)
class Level:
    """One task. The title is for people."""

    id: str
    room: Room
    start: Position
    title: str = ""


def split_of(room: Room) -> str:
    """The one split that a room belongs to: a tenth of all rooms each for validation and test.

    Decided by a hash of walls and targets that is blind to turning, mirroring and to walls around.
    So no two splits share a room, let alone a board, whatever is drawn in either.
    """
    digest = hashlib.blake2b(_shape(room).encode(), digest_size=8).digest()
    tenth = int.from_bytes(digest, "big") % 10
    return {0: "test", 1: "validation"}.get(tenth, "train")


def _shape(room: Room) -> str:
    """The room without needless outer walls, in the first of its eight orientations."""
    line, width = blank_line(room), room.width
    grid = [line[start : start + width] for start in range(0, len(line), width)]
    rows = [r for r, row in enumerate(grid) if row.strip("#")]
    columns = [c for c in range(width) if any(row[c] != "#" for row in grid)]
    grid = [row[columns[0] : columns[-1] + 1] for row in grid[rows[0] : rows[-1] + 1]]
    seen = []
    for _ in range(4):
        grid = ["".join(column) for column in zip(*reversed(grid), strict=True)]
        seen += ["\n".join(grid), "\n".join(row[::-1] for row in grid)]
    return min(seen)
