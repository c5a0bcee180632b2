"""The panels of Sokoban: the splits of its levels.

    sokoban/test               of "size" and "boxes" or "levels" if given, else 6x6 with one box
    sokoban/10x10/3/test       generated, a size and a number of boxes by name

and so for train and validation. A generated split is the range of numbers 0, 1, ... of its levels,
and no two splits share a room.
"""

from collections.abc import Mapping

from milegpo_envs.panels import PanelSource
from milegpo_envs.sokoban.level import SPLITS

ENV_ID = "milegpo/Sokoban-v0"
NAMED = (((6, 6), 1), ((6, 6), 2), ((8, 8), 2), ((10, 10), 3))
"""Sizes and boxes that have panels of their own."""


def _sources() -> dict[str, PanelSource]:
    out = {}
    for split in SPLITS:
        out[f"sokoban/{split}"] = PanelSource(ENV_ID, {"split": split})
        for size, boxes in NAMED:
            settings = {"levels": None, "size": size, "boxes": boxes, "split": split}
            out[f"sokoban/{size[0]}x{size[1]}/{boxes}/{split}"] = PanelSource(ENV_ID, settings)
    return out


PANELS: Mapping[str, PanelSource] = _sources()
