"""Reading stored episodes: JSON lines as ``TrajectoryFolder`` writes them.

A last line that is not whole is what a killed or running program leaves; everything else that is
not an episode is an error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Line = Mapping[str, Any]  # Any: parsed JSON

NEEDED = {"task_id", "trajectory_id", "success", "steps"}


def read_lines(path: Path, needed: set[str]) -> tuple[list[Line], bool]:
    """Read a file of JSON objects, one a line.

    Args:
        path: of the file.
        needed: keys that every object has.

    Returns:
        The objects, and whether a last line was cut off and left out.

    Raises:
        ValueError: a line before the last is not such an object; names file and line.
    """
    lines = path.read_bytes().splitlines()
    found: list[Line] = []
    for number, line in enumerate(lines, 1):
        try:
            value = json.loads(line)
            if not isinstance(value, dict) or not needed <= set(value):
                raise ValueError(f"it has no {', '.join(sorted(needed))}")
        except ValueError as error:
            if number < len(lines):
                raise ValueError(
                    f"{path}, line {number}: {error}. Move the file away, or mend that line."
                ) from error
            return found, True
        found.append(value)
    return found, False


def read_episodes(path: Path) -> tuple[list[Line], bool]:
    """Read the episodes of a file; see ``read_lines``."""
    return read_lines(path, NEEDED)
