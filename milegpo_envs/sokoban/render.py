"""Pictures of a board: 7 tiles drawn here, no files, the same pixels everywhere.

A tile is a square of `tile` pixels a side, 8 at least; shapes are drawn by inequalities on its unit
square, so they stay apart at any size, and from 16 on they look like what they are.
"""

import functools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from milegpo_envs.sokoban.notation import SYMBOLS

Image = NDArray[np.uint8]

SMALLEST_TILE = 8
_WALL, _MORTAR, _FLOOR = (122, 78, 58), (74, 46, 36), (236, 228, 206)
_TARGET, _BOX, _BOX_EDGE, _DONE = (214, 48, 49), (222, 160, 60), (120, 78, 20), (72, 160, 80)
_PLAYER, _FACE = (46, 98, 190), (250, 214, 170)
_INDEX = np.zeros(128, dtype=np.intp)
_INDEX[[ord(s) for s in SYMBOLS]] = np.arange(len(SYMBOLS))


def draw(rows: Sequence[str], tile: int, size: tuple[int, int] | None = None) -> Image:
    """Draw a board given in the notation of level files.

    Args:
        rows: the board.
        tile: pixels of a side of a tile.
        size: rows and columns of the picture; what the board leaves is filled with walls, right and
            below.

    Returns:
        uint8 (height * tile, width * tile, 3), fresh.
    """
    height, width = size or (len(rows), len(rows[0]))
    board = np.zeros((height, width), dtype=np.intp)  # 0 is a wall
    codes = np.frombuffer("".join(rows).encode("ascii"), dtype=np.uint8)
    board[: len(rows), : len(rows[0])] = _INDEX[codes].reshape(len(rows), -1)
    picture: Image = (
        tiles(tile)[board].transpose(0, 2, 1, 3, 4).reshape(height * tile, width * tile, 3)
    )
    return picture


@functools.lru_cache(maxsize=16)
def tiles(tile: int) -> Image:
    """The tiles in the order of `SYMBOLS`: uint8 (7, tile, tile, 3); shared, so read-only."""
    if tile < SMALLEST_TILE:
        raise ValueError(f"A tile has {SMALLEST_TILE} pixels a side or more, not {tile}.")
    y, x = np.mgrid[0:tile, 0:tile]
    y, x = (y + 0.5) / tile, (x + 0.5) / tile  # centres of the pixels, 0 to 1
    floor = np.empty((tile, tile, 3), dtype=np.uint8)
    floor[:] = _FLOOR
    target = _target(floor, x, y)
    drawn = np.stack(
        [
            _wall(floor, x, y),
            floor,
            target,
            _box(floor, x, y, _BOX),
            _box(target, x, y, _DONE),
            _player(floor, x, y),
            _player(target, x, y),
        ]
    )
    drawn.setflags(write=False)
    return drawn


Grid = NDArray[np.float64]


def _wall(under: Image, x: Grid, y: Grid) -> Image:
    """Two courses of bricks, half a brick apart."""
    course = np.floor(y * 2)
    across = (x + 0.5 * (course % 2)) % 1
    mortar = (y * 2 % 1 > 0.8) | (across > 0.9)
    return _paint(_paint(under, mortar | ~mortar, _WALL), mortar, _MORTAR)


def _target(under: Image, x: Grid, y: Grid) -> Image:
    """A diamond that leaves a rim visible under the player."""
    off = np.abs(x - 0.5) + np.abs(y - 0.5)
    corner = (np.abs(x - 0.5) > 0.36) & (np.abs(y - 0.5) > 0.36)
    return _paint(under, (off < 0.3) | corner, _TARGET)


def _box(under: Image, x: Grid, y: Grid, colour: tuple[int, int, int]) -> Image:
    """A crate with a frame and a cross."""
    far = np.maximum(np.abs(x - 0.5), np.abs(y - 0.5))
    cross = np.minimum(np.abs(x - y), np.abs(x + y - 1)) < 0.08
    frame = far > 0.34
    return _paint(_paint(under, far < 0.44, colour), (far < 0.44) & (frame | cross), _BOX_EDGE)


def _player(under: Image, x: Grid, y: Grid) -> Image:
    """A head over shoulders."""
    body = ((x - 0.5) / 0.3) ** 2 + ((y - 0.95) / 0.45) ** 2 < 1
    head = (x - 0.5) ** 2 + (y - 0.32) ** 2 < 0.2**2
    return _paint(_paint(under, body & (y < 0.94), _PLAYER), head, _FACE)


def _paint(under: Image, where: NDArray[np.bool_], colour: tuple[int, int, int]) -> Image:
    out = under.copy()
    out[where] = colour
    return out
