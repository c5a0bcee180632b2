"""The rules of Sokoban, on integers.

Cells are numbered row by row; a set of cells is a bit mask. A room is what never changes (walls,
targets), a position what does (player, boxes). Boxes have no names: a position does not tell which
box stands where. A level is solved when every box stands on a target.

A room is closed: its outermost cells are walls, so no step and no push leads off the grid. Whoever
makes a room sees to that (`levels_file`, `generator`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

MOVES = ("down", "left", "right", "up")
"""All moves, sorted."""


class Position(NamedTuple):
    """What changes: the player's cell and the mask of the boxes' cells."""

    player: int
    boxes: int


@dataclass(frozen=True)
class Room:
    """What stays: the grid's size and the masks of walls and targets."""

    height: int
    width: int
    walls: int
    targets: int

    def __reduce__(self) -> tuple[type["Room"], tuple[int, int, int, int]]:
        """Copies and pickles hold the room alone: what is cached of it cannot be copied."""
        return Room, (self.height, self.width, self.walls, self.targets)

    @cached_property
    def steps(self) -> Mapping[str, int]:
        """Move -> what it adds to a cell's number."""
        return MappingProxyType({"down": self.width, "left": -1, "right": 1, "up": -self.width})

    @cached_property
    def floor(self) -> tuple[int, ...]:
        """Cells that are no walls, in order."""
        return tuple(c for c in range(self.height * self.width) if not self.walls >> c & 1)

    def after(self, position: Position, move: str) -> Position:
        """Where a move leads; the same position if a wall or a stuck box is in the way."""
        step = self.steps[move]
        player = position.player + step
        if self.walls >> player & 1:
            return position
        boxes = position.boxes
        if boxes >> player & 1:
            beyond = player + step
            if (self.walls | boxes) >> beyond & 1:
                return position
            boxes ^= 1 << player | 1 << beyond
        return Position(player, boxes)

    def solved(self, position: Position) -> bool:
        """Every box stands on a target."""
        return not position.boxes & ~self.targets

    def reach(self, position: Position) -> dict[int, int]:
        """Cells the player can walk to without pushing -> steps there; nearest first."""
        blocked = self.walls | position.boxes
        found = {position.player: 0}
        for cell in (queue := [position.player]):
            for step in self.steps.values():
                if not blocked >> cell + step & 1 and cell + step not in found:
                    found[cell + step] = found[cell] + 1
                    queue.append(cell + step)
        return found

    @cached_property
    def push_distances(self) -> Mapping[int, int]:
        """Cell -> pushes that a box there needs to the nearest target, were it alone in the room.

        The player is taken to get anywhere, so the number is a lower bound. Cells missing are dead:
        a box there is lost.
        """
        found = dict.fromkeys(cells(self.targets), 0)
        for cell in (queue := list(found)):
            for step in self.steps.values():
                before, player = cell - step, cell - 2 * step
                if before in found or self.walls >> before & 1 or self.walls >> player & 1:
                    continue
                found[before] = found[cell] + 1
                queue.append(before)
        return MappingProxyType(found)

    @cached_property
    def dead(self) -> int:
        """Mask of the floor from where no target can be reached by a box."""
        return mask(c for c in self.floor if c not in self.push_distances)

    def deadlocked(self, position: Position) -> bool:
        """Tell lost positions by two rules: a box on a dead cell, or boxes that hold each other.

        True is certain. False may still be lost, see `solver.Distances` for an exact answer.
        """
        boxes = position.boxes
        if boxes & self.dead:
            return True
        if boxes & boxes - 1 == 0:  # a single box off the dead cells can be pushed by somebody
            return False
        off = boxes & ~self.targets
        return any(self._frozen(box, self.walls, boxes) for box in cells(off))

    def _frozen(self, box: int, solid: int, boxes: int) -> bool:
        """A box that can never move again: neither across nor along.

        `solid` are walls and the boxes that wait for this answer. A box off target that is frozen
        loses the game, whatever it leans on.
        """
        solid |= 1 << box
        return all(self._blocked(box, step, solid, boxes) for step in (1, self.width))

    def _blocked(self, box: int, step: int, solid: int, boxes: int) -> bool:
        """A box cannot be pushed along one axis, in either direction."""
        sides = 1 << box - step | 1 << box + step
        if solid & sides or self.dead & sides == sides:
            return True
        return any(
            boxes >> side & 1 and self._frozen(side, solid, boxes)
            for side in (box - step, box + step)
        )


def cells(mask: int) -> Iterator[int]:
    """The cells of a mask, in order."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def mask(numbers: Iterator[int]) -> int:
    """The mask of some cells."""
    out = 0
    for cell in numbers:
        out |= 1 << cell
    return out
