"""Levels made by reverse play: start from the solved board, pull boxes away, and it can be solved.

A random walk carves the floor, targets are drawn on it, boxes stand on them, and the player walks
and pulls. No box starts on a target. The walk and the pulls, read backwards, are a solution: it has
at most `longest(size, boxes)` moves, 15 for one box on 6x6, which is the registered horizon.

A level is a pure function of its id, such as "gen1/6x6/1/test/00042": version of the generator,
size, boxes, split, number. Attempts whose room belongs to another split (`level.split_of`) are
thrown away.
"""

import functools

from milegpo_envs.draws import Draws
from milegpo_envs.sokoban.board import Position, Room, cells, mask
from milegpo_envs.sokoban.level import Level, NoLevel, split_of

GENERATOR = "gen1"
ATTEMPTS = 3000  # that show whether a request can be met; fewer where an attempt is long
WORK = 20_000_000  # pulls times cells of all those attempts
PATIENCE = 10  # times as many for a single level, as luck varies
PLAYS = 4  # backwards in every room; the one that ends farthest from the targets counts
EASY = 0.25  # of the levels where one push a box may do, this share is kept
SMALLEST, LARGEST = 4, 30  # side of a grid, its walls included


def level_id(size: tuple[int, int], boxes: int, split: str, number: int) -> str:
    """Name a generated level."""
    return f"{GENERATOR}/{size[0]}x{size[1]}/{boxes}/{split}/{number:05d}"


def longest(size: tuple[int, int], boxes: int) -> int:
    """Moves that no generated level needs more than."""
    return boxes * (_inner(size) - 1)


def check_request(size: tuple[int, int], boxes: int) -> None:
    """Refuse what no attempt could make.

    Raises:
        NoLevel: saying which sizes and numbers can be had.
    """
    if not all(SMALLEST <= side <= LARGEST for side in size):
        raise NoLevel(f"size is {SMALLEST} to {LARGEST} rows and columns, walls included: {size}.")
    most = (_inner(size) - 1) // 2  # boxes off their targets, and the player
    if not 1 <= boxes <= most:
        raise NoLevel(f"A {size[0]}x{size[1]} level holds 1 to {most} boxes, not {boxes}.")


@functools.lru_cache(maxsize=1024)
def generate(
    size: tuple[int, int], boxes: int, split: str, number: int, patience: int = PATIENCE
) -> Level:
    """Make a level.

    Args:
        size: rows and columns, outer walls included.
        boxes: how many.
        split: to which the room belongs.
        number: of the level within the split.
        patience: how long to try, in multiples of `attempts`; it never changes the level.

    Raises:
        NoLevel: none came out of a bounded number of attempts.
    """
    check_request(size, boxes)
    name = level_id(size, boxes, split, number)
    draws = Draws(name)
    most = patience * attempts(size, boxes)
    for _ in range(most):
        found = _attempt(size, boxes, draws)
        if found is not None and split_of(found[0]) == split:
            return Level(name, *found)
    raise NoLevel(
        f"No level {name} in {most} attempts: ask for fewer boxes than {boxes}, "
        f"or for more room than {size[0]}x{size[1]}."
    )


def attempts(size: tuple[int, int], boxes: int) -> int:
    """How many attempts show whether a request can be met: seconds, a minute for the largest."""
    return max(1, min(ATTEMPTS, WORK // (_most_pulls(size, boxes) * _inner(size))))


def _most_pulls(size: tuple[int, int], boxes: int) -> int:
    return size[0] + size[1] - 6 + 4 * boxes


def _inner(size: tuple[int, int]) -> int:
    return (size[0] - 2) * (size[1] - 2)


def _attempt(size: tuple[int, int], boxes: int, draws: Draws) -> tuple[Room, Position] | None:
    """One room and start, or None where a box is still on a target, or for a level too easy."""
    floor = _carve(size, boxes, draws)
    left = list(floor)
    targets = 0
    for _ in range(boxes):
        targets |= 1 << left.pop(draws.integer(0, len(left) - 1))
    height, width = size
    everything = (1 << height * width) - 1
    room = Room(height, width, everything & ~mask(iter(floor)), targets)
    solved = Position(draws.choice(left), targets)
    plays = [_play_back(room, solved, longest(size, boxes), draws) for _ in range(PLAYS)]
    start = max(plays, key=lambda position: _far(room, position))
    easy = _far(room, start) <= boxes and not draws.chance(EASY)
    return None if easy or start.boxes & targets else (room, start)


def _carve(size: tuple[int, int], boxes: int, draws: Draws) -> list[int]:
    """Cells of the floor: a random walk that likes to go straight on.

    It leaves some walls inside where it can, as there are few boards without.
    """
    height, width = size
    inner = _inner(size)
    least = max(inner * 3 // 5, 2 * boxes + 1)
    wanted = draws.integer(min(inner, least), max(min(inner, least), inner - inner // 8 - 1))
    row, column = draws.integer(1, height - 2), draws.integer(1, width - 2)
    found = {row * width + column: None}
    directions = ((0, 1), (1, 0), (0, -1), (-1, 0))
    down, right = draws.choice(directions)
    for _ in range(40 * inner):
        if len(found) >= wanted:
            break
        if draws.chance(0.35):
            down, right = draws.choice(directions)
        if 1 <= row + down <= height - 2 and 1 <= column + right <= width - 2:
            row, column = row + down, column + right
            found[row * width + column] = None
        else:
            down, right = draws.choice(directions)
    return list(found)


def _play_back(room: Room, solved: Position, most_moves: int, draws: Draws) -> Position:
    """Pull boxes about from the solved position, and walk on from the last pull."""
    position, moves, seen = solved, 0, {solved.boxes}
    most_pulls = _most_pulls((room.height, room.width), solved.boxes.bit_count())
    for _ in range(draws.integer(3, most_pulls)):
        pulls = [
            (pulled, cost)
            for pulled, cost in _pulls(room, position)
            if pulled.boxes not in seen and moves + cost <= most_moves
        ]
        if not pulls:
            break
        position, cost = draws.choice(pulls)
        moves += cost
        seen.add(position.boxes)
    near = [c for c, steps in room.reach(position).items() if moves + steps <= most_moves]
    return Position(draws.choice(near), position.boxes)


def _far(room: Room, position: Position) -> int:
    """Pushes that the boxes need at least."""
    return sum(room.push_distances[box] for box in cells(position.boxes))


def _pulls(room: Room, position: Position) -> list[tuple[Position, int]]:
    """Every pull, with the moves that it and the walk to it take."""
    reach = room.reach(position)
    blocked = room.walls | position.boxes
    found = []
    for player, walk in reach.items():
        for step in room.steps.values():
            box, back = player + step, player - step
            if position.boxes >> box & 1 and not blocked >> back & 1:
                boxes = position.boxes ^ (1 << box | 1 << player)
                found.append((Position(back, boxes), walk + 1))
    return found
