"""States of Sokoban: canonical form, id, and what an environment shows of them, computed once.

The canonical state is the board in the notation of level files, `{"board": ["####", ...]}`. It
tells player, boxes, targets and walls and nothing else; a player on a target reads `+` and is
another state than one on floor. A view keeps the empty room's canonical JSON and prompt, and puts
player and boxes into copies of them: the bytes that are hashed are those that
`milegpo_envs.state.state_id` would hash, without a general encoder.
"""

import functools
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from milegpo_envs.sokoban.board import Position, Room
from milegpo_envs.sokoban.notation import TO_PROMPT, blank_rows
from milegpo_envs.state import canonical_json

_KEPT = 50_000  # positions of one room that are remembered
_BEFORE = len('{"board":["')
_BETWEEN = '","'
_SYMBOLS = {symbol: (ord(symbol), TO_PROMPT[symbol]) for symbol in "@+$*"}  # in JSON, in prompts
_PLAYER, _PLAYER_ON_TARGET, _BOX, _BOX_ON_TARGET = _SYMBOLS.values()


def canonical(rows: Sequence[str]) -> dict[str, list[str]]:
    """The canonical state of a board, as a fresh value; JSON as it is."""
    return {"board": list(rows)}


@dataclass(slots=True, eq=False)
class View:
    """A position as it is shown. Shared between steps and environments: not to be changed.

    It holds texts and numbers rather than lists, which the garbage collector would walk.

    board: the rows in the notation of level files, as canonical JSON separates them. text: as
    prompts show it. down, left, right, up: the view that the move leads to, once known.
    """

    position: Position
    board: str
    text: str
    state_id: str
    solved: bool
    on_target: int
    deadlocked: bool
    down: "View | None" = None
    left: "View | None" = None
    right: "View | None" = None
    up: "View | None" = None

    def __reduce__(self) -> tuple[type["View"], tuple[Position, str, str, str, bool, int, bool]]:
        """Copies and pickles leave out where moves lead: thousands of views hang together."""
        return View, (
            self.position,
            self.board,
            self.text,
            self.state_id,
            self.solved,
            self.on_target,
            self.deadlocked,
        )

    @property
    def rows(self) -> list[str]:
        """The board, a text a row, as a fresh list."""
        return self.board.split(_BETWEEN)


class Views:
    """The views of one room, made when first seen."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self._known: dict[Position, View] = {}
        rows = blank_rows(room)
        self._board = canonical_json(canonical(rows)).encode()
        self._place = [
            _BEFORE + row * (room.width + len(_BETWEEN)) + column
            for row in range(room.height)
            for column in range(room.width)
        ]
        self._prompt = [TO_PROMPT[symbol] for row in rows for symbol in row]
        for end in range(room.width - 1, len(self._prompt) - 1, room.width):
            self._prompt[end] += "\n"  # these cells are walls: nothing ever stands on them

    def __reduce__(self) -> tuple[Callable[[Room], "Views"], tuple[Room]]:
        """Copies and pickles hold the room alone: the rest is computed anew."""
        return views_of, (self.room,)

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
        then: View | None = getattr(view, move)
        if then is None:
            then = self.at(self.room.after(view.position, move))
            setattr(view, move, then)
        return then

    def _make(self, position: Position) -> View:
        room, place = self.room, self._place
        board, prompt = bytearray(self._board), self._prompt.copy()
        player, boxes = position
        on_target = boxes & room.targets
        left = boxes
        while left:
            lowest = left & -left
            cell = lowest.bit_length() - 1
            board[place[cell]], prompt[cell] = _BOX_ON_TARGET if lowest & on_target else _BOX
            left ^= lowest
        board[place[player]], prompt[player] = (
            _PLAYER_ON_TARGET if room.targets >> player & 1 else _PLAYER
        )
        return View(
            position,
            board[_BEFORE:-3].decode(),
            "".join(prompt),
            hashlib.blake2b(board, digest_size=16).hexdigest(),
            on_target == boxes,
            on_target.bit_count(),
            room.deadlocked(position),
        )

    def _forget(self) -> None:
        for view in self._known.values():
            view.down = view.left = view.right = view.up = None  # they lead in circles
        self._known.clear()


@functools.lru_cache(maxsize=64)
def views_of(room: Room) -> Views:
    """The views of a room; rollouts of one level share them."""
    return Views(room)
