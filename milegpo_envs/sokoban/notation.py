"""Boards as text: the common notation of level files, and the symbols of the papers' prompts.

    file     prompt   meaning
    #        #        wall
    space    _        floor
    .        O        target
    $        X        box
    *        √        box on target
    @        P        player
    +        S        player on target

Prompts write a cell as its symbol between a blank, a blank and a tab, and a row a line, as the
reference code of GiGPO does (arXiv:2505.10978): every symbol is then a token of its own.
"""

import functools
from collections.abc import Sequence

from milegpo_envs.sokoban.board import Position, Room

SYMBOLS = "# .$*@+"
PROMPT_SYMBOLS = "#_OX√PS"
TO_PROMPT = {ours: f" {theirs} \t" for ours, theirs in zip(SYMBOLS, PROMPT_SYMBOLS, strict=True)}
"""A symbol -> how prompts write its cell."""

_TO_PROMPT = str.maketrans(TO_PROMPT)
_FROM_PROMPT = str.maketrans(PROMPT_SYMBOLS, SYMBOLS)


def rows_of(room: Room, position: Position) -> list[str]:
    """Write a board in the notation of level files, one text a row."""
    rows = list(blank_rows(room))
    boxes = position.boxes
    while boxes:
        lowest = boxes & -boxes
        _put(rows, lowest.bit_length() - 1, room.width, "$", "*")
        boxes ^= lowest
    _put(rows, position.player, room.width, "@", "+")
    return rows


def _put(rows: list[str], cell: int, width: int, on_floor: str, on_target: str) -> None:
    number, column = divmod(cell, width)
    row = rows[number]
    symbol = on_target if row[column] == "." else on_floor
    rows[number] = row[:column] + symbol + row[column + 1 :]


@functools.lru_cache(maxsize=256)
def blank_rows(room: Room) -> tuple[str, ...]:
    """The room without player and boxes, a text a row."""
    line, width = blank_line(room), room.width
    return tuple(line[start : start + width] for start in range(0, len(line), width))


@functools.lru_cache(maxsize=256)
def blank_line(room: Room) -> str:
    """The room without player and boxes, all rows in one."""
    return "".join(
        "#" if room.walls >> c & 1 else "." if room.targets >> c & 1 else " "
        for c in range(room.height * room.width)
    )


def read_rows(rows: Sequence[str]) -> tuple[Room, Position]:
    """Read a board written by `rows_of`.

    Raises:
        ValueError: rows of unequal length, a symbol unknown, or not exactly one player.
    """
    width = len(rows[0]) if rows else 0
    text = "".join(rows)
    if not width or any(len(row) != width for row in rows):
        raise ValueError("The rows of a board are equally long, and there is one at least.")
    if set(text) - set(SYMBOLS):
        raise ValueError(f"Not symbols of a board: {sorted(set(text) - set(SYMBOLS))}.")
    players = [c for c, symbol in enumerate(text) if symbol in "@+"]
    if len(players) != 1:
        raise ValueError(f"A board has one player, not {len(players)}.")
    room = Room(len(rows), width, _mask(text, "#"), _mask(text, ".*+"))
    return room, Position(players[0], _mask(text, "$*"))


def for_prompt(rows: Sequence[str]) -> str:
    """Write the rows of a board as prompts show them."""
    return "\n".join(row.translate(_TO_PROMPT) for row in rows)


def from_prompt(text: str) -> list[str]:
    """Read back what `for_prompt` wrote."""
    return ["".join(line.split()).translate(_FROM_PROMPT) for line in text.split("\n")]


def _mask(text: str, symbols: str) -> int:
    return sum(1 << c for c, symbol in enumerate(text) if symbol in symbols)
