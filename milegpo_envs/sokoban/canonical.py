"""States of Sokoban: canonical form, id, and what an environment shows of them, computed once.

The canonical state is the board in the notation of level files, `{"board": ["####", ...]}`. It
tells player, boxes, targets and walls and nothing else; a player on a target reads `+` and is
another state than one on floor. `id_of` writes the bytes that `milegpo_envs.state.state_id` would
hash without a general encoder, as the symbols need no escapes.
"""

import functools
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from milegpo_envs.sokoban.board import Position, Room
from milegpo_envs.sokoban.notation import for_prompt, rows_of

_KEPT = 50_000  # positions of one room that are remembered


def canonical(rows: Sequence[str]) -> dict[str, list[str]]:
    """The canonical state of a board, as a fresh value; JSON as it is."""
    return {"board": list(rows)}


def id_of(rows: Sequence[str]) -> str:
    """`state_id(canonical(rows))`, faster."""
    text = '{"board":["' + '","'.join(rows) + '"]}'
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@dataclass(slots=True, eq=False)
class View:
    """A position as it is shown. Shared between steps and environments: not to be changed.

    after: move -> the view it leads to, as far as already known.
    """

    position: Position
    rows: list[str]
    text: str
    state_id: str
    solved: bool
    on_target: int
    deadlocked: bool
    after: dict[str, "View"] = field(default_factory=dict)


class Views:
    """The views of one room, made when first seen."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self._known: dict[Position, View] = {}

    def at(self, position: Position) -> View:
        """The view of a position."""
        view = self._known.get(position)
        if view is None:
            if len(self._known) >= _KEPT:
                self._forget()
            view = self._known[position] = self._make(position)
        return view

    def follow(self, view: View, move: str) -> View:
        """The view after a move."""
        then = view.after.get(move)
        if then is None:
            then = view.after[move] = self.at(self.room.after(view.position, move))
        return then

    def _make(self, position: Position) -> View:
        rows = rows_of(self.room, position)
        return View(
            position=position,
            rows=rows,
            text=for_prompt(rows),
            state_id=id_of(rows),
            solved=self.room.solved(position),
            on_target=(position.boxes & self.room.targets).bit_count(),
            deadlocked=self.room.deadlocked(position),
        )

    def _forget(self) -> None:
        for view in self._known.values():
            view.after.clear()  # they lead to each other in circles
        self._known.clear()


@functools.lru_cache(maxsize=64)
def views_of(room: Room) -> Views:
    """The views of a room; rollouts of one level share them."""
    return Views(room)
