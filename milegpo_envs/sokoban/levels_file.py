"""Level files in the common text format (XSB), as collections of Sokoban levels are shared.

    ; a comment                         Rows of a level hold these symbols and at least one #:
    Title: First steps                  # wall   @ player   + player on target
    #####                               $ box    * box on target   . target
    #@$.#                               floor is a blank, - or _
    #####
                                        p P, b B, o are player, box, target (capitals: on target)
    4#|#@$.#|4#                         Run lengths: 4# is ####, 2(-#) is -#-#, | ends a row.

Everything else is text about the levels. A level's title is the nearest such line before it, or a
"Title:" line after it, unless that stands apart and the level has one. Trailing blanks, indentation
and floor outside the walls do not count: a level is cut to what the player can reach, and the walls
around. Blocks of nothing but # are rules between levels.

Each fault is reported with its line, all of a file at once.
"""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from milegpo_envs.errors import DataMissing, EnvError
from milegpo_envs.sokoban.board import Position, Room
from milegpo_envs.sokoban.canonical import canonical
from milegpo_envs.sokoban.level import Level
from milegpo_envs.sokoban.notation import read_rows, rows_of
from milegpo_envs.state import state_id

_OTHER_LETTERS = str.maketrans("-_pPbBo", "  @+$*.")
_SYMBOLS = "#@+$*. "
_ROW = re.compile(r"[#@+$*. \t\-_pPbBo0-9|()]*#[#@+$*. \t\-_pPbBo0-9|()]*")
_NUMBERED = re.compile(r"\s*#+\s*\d+\s*")  # "# 1" is a heading: a row ends with a symbol
_RULE = re.compile(r"\s*#[#\s]*")  # a block of such lines is a line drawn between levels
_LIKE_A_ROW = re.compile(r"[ \t\-_]*[0-9]*#{2}")
_RUN = re.compile(r"(\d+)([^\d()|])")
_GROUP = re.compile(r"(\d*)\(([^()]*)\)")
_FIELD = re.compile(r"[A-Za-z]+\s*:")  # "Author: ..."
_LONGEST = 100  # rows and columns of a level
_AREA = (_LONGEST + 1) * _LONGEST


class FaultyLevels(EnvError, ValueError):
    """A level file with mistakes; the message lists each with its line."""


class _Fault(Exception):
    """What is wrong with one level, and in which of its rows."""

    def __init__(self, text: str, row: int = 0) -> None:
        super().__init__(text)
        self.row = row


@dataclass(frozen=True)
class _Block:
    """The rows of one level as they stand in the file."""

    line: int
    rows: list[str]
    lines: list[int]  # of each row
    title: str


def read_levels(path: str | os.PathLike[str]) -> tuple[Level, ...]:
    """Read every level of a file.

    An id is the file's name, the level's number from 1 and the beginning of its first state's id,
    so that it never stands for another board.

    Raises:
        DataMissing: there is no such file.
        FaultyLevels: it holds no level, or a faulty one.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8-sig", errors="replace")
    except (FileNotFoundError, IsADirectoryError) as error:
        raise DataMissing(
            f"No level file {file}. Give levels=None for generated levels, or the path of a text "
            "file in the common format (# wall, @ player, $ box, . target)."
        ) from error
    levels, faults = [], []
    blocks = (b for b in _blocks(text.splitlines()) if not all(map(_RULE.fullmatch, b.rows)))
    for number, block in enumerate(blocks, start=1):
        try:
            room, start = _level(block.rows)
            name = f"{file.stem}/{number:04d}/{state_id(canonical(rows_of(room, start)))[:8]}"
            levels.append(Level(name, room, start, block.title))
        except _Fault as fault:
            faults.append(f"{file}:{block.lines[fault.row]}: {fault}")
    if not levels and not faults:
        faults.append(f"{file}:1: no level in this file")
    if faults:
        raise FaultyLevels("\n".join(faults))
    return tuple(levels)


def _blocks(lines: Iterable[str]) -> Iterator[_Block]:
    """Cut a file into levels; a line that begins like a row belongs to one, even if faulty."""
    rows: list[str] = []
    numbers: list[int] = []
    title, given = "", False  # given by a "Title:" line
    waiting: _Block | None = None
    titled = apart = False  # the waiting level has a given title; a blank line followed it
    for number, line in enumerate([*lines, ""], start=1):
        if _is_row(line):
            if waiting is not None and not rows:
                yield waiting
                waiting = None
            for row in _expanded(line).rstrip("|").split("|"):
                rows.append(row)
                numbers.append(number)
            continue
        if rows:
            waiting = _Block(numbers[0], rows, numbers, title)
            titled, apart = given, False
            rows, numbers, title, given = [], [], "", False
        apart = apart or not line.strip()
        said = line.strip().lstrip(";").strip()
        named = re.match(r"(?i)title\s*:\s*(.*)", said)
        if named and waiting is not None and not title and not (titled and apart):
            yield _Block(waiting.line, waiting.rows, waiting.lines, named[1])
            waiting = None
        elif named or (said and not _FIELD.match(said)):
            title, given = named[1] if named else said, bool(named)
    if waiting is not None:
        yield waiting


def _is_row(line: str) -> bool:
    return not _NUMBERED.fullmatch(line) and bool(_ROW.fullmatch(line) or _LIKE_A_ROW.match(line))


def _expanded(line: str) -> str:
    """Write out run lengths; as far as a row can be long."""
    text = line
    while "(" in text and (once := _GROUP.sub(_repeat, text)) != text and len(once) <= _AREA:
        text = once
    return _RUN.sub(_repeat, text)


def _repeat(found: re.Match[str]) -> str:
    return found[2] * min(int(found[1][:6] or 1), _LONGEST + 1)


def _level(rows: list[str]) -> tuple[Room, Position]:
    """Check one level's rows and cut them to the room that the player can reach."""
    grid = [row.replace("\t", "    ").translate(_OTHER_LETTERS).rstrip() for row in rows]
    width = max(map(len, grid))
    if len(grid) > _LONGEST or width > _LONGEST:
        raise _Fault(f"a level has at most {_LONGEST} rows and columns")
    for r, row in enumerate(grid):
        strange = sorted(set(row) - set(_SYMBOLS))
        if strange:
            raise _Fault(f"not a symbol of a level: {' '.join(strange)}", r)
    players = [
        (r, c) for r, row in enumerate(grid) for c, symbol in enumerate(row) if symbol in "@+"
    ]
    if len(players) != 1:
        second = players[1][0] if players else 0
        raise _Fault(f"a level has one player (@ or +), not {len(players)}", second)
    grid = [row.ljust(width) for row in grid]
    inside = _inside(grid, players[0])
    for r, row in enumerate(grid):
        if any(symbol in "$." and (r, c) not in inside for c, symbol in enumerate(row)):
            raise _Fault("a box or target that the player cannot reach", r)
    kept = "".join(grid[r][c] for r, c in inside)
    boxes, targets = (sum(map(kept.count, symbols)) for symbols in ("$*", ".*+"))
    if boxes != targets:
        raise _Fault(f"as many boxes as targets are needed: {boxes} and {targets}")
    if not boxes:
        raise _Fault("no box")
    if "$" not in kept:
        raise _Fault("solved before the first move")
    top, bottom = min(r for r, _ in inside) - 1, max(r for r, _ in inside) + 1
    left, right = min(c for _, c in inside) - 1, max(c for _, c in inside) + 1
    return read_rows(
        [
            "".join(grid[r][c] if (r, c) in inside else "#" for c in range(left, right + 1))
            for r in range(top, bottom + 1)
        ]
    )


def _inside(grid: list[str], player: tuple[int, int]) -> set[tuple[int, int]]:
    """Cells that the player could reach if boxes gave way."""
    found = {player}
    for r, c in (queue := [player]):
        if not (0 < r < len(grid) - 1 and 0 < c < len(grid[0]) - 1):
            raise _Fault("the walls around the player have a gap", r)
        for cell in ((r, c + 1), (r + 1, c), (r, c - 1), (r - 1, c)):
            if cell not in found and grid[cell[0]][cell[1]] != "#":
                found.add(cell)
                queue.append(cell)
    return found
