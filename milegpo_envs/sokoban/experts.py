"""A player that knows how: it reads the board in a text observation and goes the shortest way.

Of several shortest ways it takes the first in the order of `board.MOVES`, so that it can be
imitated. On a lost board it stays where it is, by a move against a wall or a box if there is one.
"""

from collections.abc import Sequence

from milegpo_envs.sokoban.board import MOVES, Position, Room
from milegpo_envs.sokoban.notation import from_prompt, read_rows
from milegpo_envs.sokoban.solver import TooLarge, distances, plan

LOST = "lost"


class SolvingExpert:
    """Plays shortest solutions from text observations (`observation="text"`).

    Its intention is the box to push next and where to, or "lost": "push right", "go left".
    """

    def reset(self, observation: str, admissible: Sequence[str]) -> None:
        """Begin an episode."""
        self._intention = ""

    def act(self, observation: str, admissible: Sequence[str]) -> str:
        """Return the next move."""
        room, position = read_rows(from_prompt(observation))
        move = best_move(room, position)
        if move is None:
            self._intention = LOST
            return next((m for m in MOVES if room.after(position, m) == position), MOVES[0])
        pushed = room.after(position, move).boxes != position.boxes
        self._intention = f"{'push' if pushed else 'go'} {move}"
        return move

    @property
    def intention(self) -> str:
        """What the last move is for, in two words."""
        return self._intention


def best_move(room: Room, position: Position) -> str | None:
    """First move of a shortest solution; None without one.

    Raises:
        TooLarge: the room is large and a bounded search did not find out.
    """
    try:
        return distances(room).best_move(position)
    except TooLarge:
        moves = plan(room, position)
        return moves[0] if moves else None


EXPERTS = {"milegpo/Sokoban-v0": SolvingExpert}
"""Environment id -> expert to imitate."""
