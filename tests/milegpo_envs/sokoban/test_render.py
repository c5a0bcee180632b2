import hashlib
import itertools

import numpy as np
import pytest

import milegpo_envs  # noqa: F401  # registers the environments
from milegpo_envs.sokoban.notation import SYMBOLS
from milegpo_envs.sokoban.render import draw, tiles


@pytest.mark.parametrize("tile", [8, 16, 33])
def test_tiles_differ_from_each_other(tile):
    drawn = tiles(tile)
    assert drawn.shape == (7, tile, tile, 3)
    for a, b in itertools.combinations(range(7), 2):
        assert (drawn[a] != drawn[b]).any(axis=-1).mean() > 0.05, (SYMBOLS[a], SYMBOLS[b])


def test_every_cell_is_its_tile():
    rows = ["#####", "#+$*#", "#@ .#", "#####"]
    picture = draw(rows, 16)
    assert (picture.shape, picture.dtype) == ((64, 80, 3), np.uint8)
    for r, row in enumerate(rows):
        for c, symbol in enumerate(row):
            cell = picture[16 * r : 16 * r + 16, 16 * c : 16 * c + 16]
            np.testing.assert_array_equal(cell, tiles(16)[SYMBOLS.index(symbol)])


def test_pixels_are_what_they_were():
    digest = hashlib.blake2b(tiles(16).tobytes(), digest_size=8).hexdigest()
    assert digest == "7a83bbf90520e58a"


def test_pictures_are_fresh_and_tiles_are_not_to_be_written_on():
    picture = draw(["###", "#@#", "###"], 8)
    picture[:] = 0
    assert draw(["###", "#@#", "###"], 8).any()
    with pytest.raises(ValueError, match="read-only"):
        tiles(8)[0] = 0


def test_tiles_have_a_smallest_size():
    with pytest.raises(ValueError, match="8 pixels"):
        tiles(7)
