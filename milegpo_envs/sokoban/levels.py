"""The levels of a split: generated, or from a file."""

import functools
import os
from typing import Protocol

from milegpo_envs.errors import DataMissing, unknown_name
from milegpo_envs.sokoban import generator
from milegpo_envs.sokoban.level import SPLITS, Level, split_of
from milegpo_envs.sokoban.levels_file import read_levels

COUNTS = {"train": 10_000, "validation": 500, "test": 500}
"""Generated levels that are listed, by split."""


class Levels(Protocol):
    """A list of levels.

    size: rows and columns of the largest.
    """

    task_ids: tuple[str, ...]
    size: tuple[int, int]

    def level(self, task_id: str) -> Level:
        """The level of one of `task_ids`; raises UnknownName for any other."""


class GeneratedLevels:
    """The generated levels of a size, a number of boxes and a split ("train" for None).

    Raises:
        NoLevel: for a size and number of boxes that cannot be had; here, not at a later level.
    """

    def __init__(self, size: tuple[int, int], boxes: int, split: str | None) -> None:
        self._split = _checked(split) or "train"
        self.size, self._boxes = size, boxes
        generator.check_request(size, boxes)
        generator.generate(size, boxes, self._split, 0, patience=1)
        self.task_ids, self._numbers = _listed(size, boxes, self._split)

    def level(self, task_id: str) -> Level:
        """See `Levels.level`."""
        if task_id not in self._numbers:
            raise unknown_name("task", task_id, self.task_ids)
        return self._generate(self._numbers[task_id])

    def _generate(self, number: int) -> Level:
        return generator.generate(self.size, self._boxes, self._split, number)


class FileLevels:
    """The levels of a file: all of them, or those whose rooms belong to a split.

    Raises:
        DataMissing: no file, or no level of the split in it. FaultyLevels: mistakes in the file.
    """

    def __init__(self, path: str | os.PathLike[str], split: str | None) -> None:
        _checked(split)
        levels = [v for v in read_levels(path) if split is None or split_of(v.room) == split]
        if not levels:
            raise DataMissing(
                f"No level of {path} belongs to the split {split!r}: the room decides. "
                "Give split=None for all levels of the file."
            )
        self._levels = {level.id: level for level in levels}
        self.task_ids = tuple(self._levels)
        self.size = (max(v.room.height for v in levels), max(v.room.width for v in levels))

    def level(self, task_id: str) -> Level:
        """See `Levels.level`."""
        if task_id not in self._levels:
            raise unknown_name("task", task_id, self.task_ids)
        return self._levels[task_id]


def _checked(split: str | None) -> str | None:
    if split is not None and split not in SPLITS:
        raise unknown_name("split", split, SPLITS)
    return split


@functools.cache
def _listed(
    size: tuple[int, int], boxes: int, split: str
) -> tuple[tuple[str, ...], dict[str, int]]:
    ids = tuple(generator.level_id(size, boxes, split, n) for n in range(COUNTS[split]))
    return ids, {id: number for number, id in enumerate(ids)}
