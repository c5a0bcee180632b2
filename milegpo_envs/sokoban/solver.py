"""Optimal solutions, and how far every position of a small room is from one.

`Distances` plays backwards from every solved position of a room, so it is exact for all positions,
also for those no level begins with; a position it does not know is lost. `plan` searches forward
(A*) from one position and serves rooms too large for that.

Distances count moves, or pushes (walking is free), each minimal for itself.
"""

import functools
import heapq
import itertools
import math
from collections.abc import Mapping

from milegpo_envs.errors import EnvError
from milegpo_envs.sokoban.board import MOVES, Position, Room, cells

TABLE_LIMIT = 300_000  # positions of a room that are all computed at once
SEARCH_LIMIT = 500_000  # positions that a search looks at


class TooLarge(EnvError, RuntimeError):
    """A search gave up; the position may have a solution or not."""


class Distances:
    """Exact distances of every position of a room to a solution.

    Raises:
        TooLarge: the room has more positions than `TABLE_LIMIT`; use `plan`.
    """

    def __init__(self, room: Room) -> None:
        if positions(room) > TABLE_LIMIT:
            raise TooLarge(f"The room has {positions(room):,} positions, over {TABLE_LIMIT:,}.")
        self._room = room
        self._moves = _backwards(room, walk=1)
        self._pushes = _backwards(room, walk=0)

    def moves(self, position: Position) -> int | None:
        """Fewest moves to a solution; None if there is none."""
        return self._moves.get(position)

    def pushes(self, position: Position) -> int | None:
        """Fewest pushes to a solution; None if there is none."""
        return self._pushes.get(position)

    def best_move(self, position: Position) -> str | None:
        """First move of a shortest solution, by the order of `MOVES`; None if there is none."""
        left = self._moves.get(position)
        if not left:
            return None
        return next(m for m in MOVES if self._moves.get(self._room.after(position, m)) == left - 1)


@functools.lru_cache(maxsize=64)
def distances(room: Room) -> Distances:
    """The distances of a room, kept for the rooms asked for last."""
    return Distances(room)


def positions(room: Room) -> int:
    """An upper bound on the number of positions: cells for the player times cells for the boxes."""
    free = len(room.floor)
    return free * math.comb(free, room.targets.bit_count())


def _backwards(room: Room, walk: int) -> Mapping[Position, int]:
    """Distances by Dijkstra's algorithm against the moves; a push costs 1, a walking step `walk`.

    Costs are 0 or 1, so a position is settled in the present layer or waits in the next.
    """
    layer = [Position(c, room.targets) for c in room.floor if not room.targets >> c & 1]
    found: dict[Position, int] = {}
    cost = 0
    while layer:
        later: list[Position] = []
        for position in layer:
            if position in found:
                continue
            found[position] = cost
            for before, pushed in _before(room, position):
                if before not in found:
                    (later if pushed or walk else layer).append(before)
        layer, cost = later, cost + 1
    return found


def _before(room: Room, position: Position) -> list[tuple[Position, bool]]:
    """Positions from which one move leads here, and whether that move is a push."""
    out = []
    player, boxes = position
    blocked = room.walls | boxes
    for step in room.steps.values():
        back = player - step
        if blocked >> back & 1:
            continue
        out.append((Position(back, boxes), False))
        ahead = player + step
        if boxes >> ahead & 1:
            out.append((Position(back, boxes ^ (1 << ahead | 1 << player)), True))
    return out


def plan(room: Room, start: Position, by: str = "moves") -> tuple[str, ...] | None:
    """A shortest solution, or None if there is none.

    Args:
        room: where.
        start: from which position.
        by: "moves", the fewest, and of these with the fewest pushes; or "pushes" the other way
            round.

    Raises:
        TooLarge: undecided after `SEARCH_LIMIT` positions.
    """
    if by not in ("moves", "pushes"):
        raise ValueError(f"Solutions are short by moves or by pushes, not by {by!r}.")
    prices = ((1, 1), (1, 0)) if by == "moves" else ((1, 1), (0, 1))  # of a push, of a step
    bound = functools.partial(_at_least, room.push_distances)
    order = itertools.count()
    queue = [((*_plus((0, 0), bound(start)),), next(order), (0, 0), start)]
    best: dict[Position, tuple[int, int]] = {start: (0, 0)}
    came: dict[Position, tuple[Position, str]] = {}
    while queue:
        _, _, cost, position = heapq.heappop(queue)
        if room.solved(position):
            return _path(came, position)
        if cost > best[position]:
            continue
        for move in MOVES:
            then = room.after(position, move)
            pushed = then.boxes != position.boxes
            if then == position or (pushed and room.deadlocked(then)):
                continue
            new = _plus(cost, prices[not pushed])
            if then in best and best[then] <= new:
                continue
            if len(best) >= SEARCH_LIMIT:
                raise TooLarge(f"No solution among the first {SEARCH_LIMIT:,} positions.")
            best[then], came[then] = new, (position, move)
            heapq.heappush(queue, (_plus(new, bound(then)), next(order), new, then))
    return None


def distance(room: Room, position: Position, by: str) -> int | None:
    """Fewest pushes or moves to a solution, from a table of the room or, if large, by a search."""
    try:
        table = distances(room)
    except TooLarge:
        moves = plan(room, position, by)
        if moves is None or by == "moves":
            return None if moves is None else len(moves)
        pushes = 0
        for move in moves:
            then = room.after(position, move)
            pushes += then.boxes != position.boxes
            position = then
        return pushes
    return table.pushes(position) if by == "pushes" else table.moves(position)


def _at_least(push_distances: Mapping[int, int], position: Position) -> tuple[int, int]:
    """A lower bound on moves and pushes: each box to the target nearest to it."""
    pushes = sum(push_distances.get(box, 0) for box in cells(position.boxes))
    return pushes, pushes


def _plus(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    return a[0] + b[0], a[1] + b[1]


def _path(came: Mapping[Position, tuple[Position, str]], end: Position) -> tuple[str, ...]:
    moves = []
    while end in came:
        end, move = came[end]
        moves.append(move)
    return tuple(reversed(moves))
