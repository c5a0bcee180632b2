"""What is read of a game's two JSON files; the index and the loader want the same of them."""

import json
from dataclasses import dataclass
from typing import Any

from milegpo_envs.alfworld.games import Params


@dataclass(frozen=True)
class Trajectory:
    """What `traj_data.json` says of a task. scene: number of the floor plan."""

    task_type: str
    params: Params
    scene: int


def read_object(content: bytes) -> dict[str, Any]:  # Any: checked field by field where it is read
    """Parse a JSON object; raises ValueError or TypeError for anything else."""
    value = json.loads(content.decode("utf-8"))
    if not isinstance(value, dict):
        raise TypeError("no JSON object")
    return value


def read_trajectory(content: bytes) -> Trajectory:
    """Read a `traj_data.json`.

    Raises:
        ValueError, KeyError, TypeError: something of it is missing or of another kind.
    """
    raw = read_object(content)
    params = raw["pddl_params"]
    return Trajectory(
        task_type=str(raw["task_type"]),
        params=Params(
            object_target=str(params["object_target"]),
            parent_target=str(params["parent_target"] or ""),
            toggle_target=str(params["toggle_target"] or ""),
            mrecep_target=str(params["mrecep_target"] or ""),
            object_sliced=bool(params["object_sliced"]),
        ),
        scene=int(raw["scene"]["scene_num"]),
    )
