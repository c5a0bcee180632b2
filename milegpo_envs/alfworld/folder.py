"""Games in the official layout: `json_2.1.1/{split}/{task}/{trial}/{game.tw-pddl,traj_data.json}`.

`read_folder` lists a split with the official filters: no `movable` and no `Sliced` task, one of the
selected task types, a game file with `solvable: true`. What is left out is counted by reason, and
the order is that of the sorted paths, not of the disk. `write_game` writes a generated game so that
alfworld itself can play it.
"""

import functools
import json
import os
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from milegpo_envs.alfworld.games import SPLITS, Game, Params, check_task_types
from milegpo_envs.alfworld.versions import goal_sentence
from milegpo_envs.errors import DataMissing, unknown_name

RELEASE = "json_2.1.1"
GAME_FILE, TRAJECTORY_FILE, STATE_FILE = "game.tw-pddl", "traj_data.json", "initial_state.pddl"


@dataclass(frozen=True)
class Listing:
    """The playable games below a folder, by path relative to it, and why others are not."""

    root: Path
    task_types: Mapping[str, str]  # task id -> task type, in sorted order of the ids
    skipped: Mapping[str, int]  # reason -> number of games


class FolderGames:
    """The games of a split in a folder, as an environment asks for them; ids are relative paths.

    Args:
        data: what $ALFWORLD_DATA names, or its folder `json_2.1.1`. split: one of the official
        three. task_types: the types to keep; None keeps all six.

    Raises:
        DataMissing: there is no such folder, or no playable game in it.
    """

    def __init__(
        self, data: str | os.PathLike[str], split: str, task_types: Collection[str] | None = None
    ) -> None:
        if split not in SPLITS:
            raise unknown_name("split", split, SPLITS)
        wanted = check_task_types(task_types)
        listing = read_folder(split_folder(Path(data), split))
        other = sum(task_type not in wanted for task_type in listing.task_types.values())
        self.root = listing.root
        self.skipped = dict(listing.skipped) | ({"task type not selected": other} if other else {})
        self.task_ids = tuple(id for id, kind in listing.task_types.items() if kind in wanted)
        if not self.task_ids:
            left_out = ", ".join(f"{n} {reason}" for reason, n in sorted(self.skipped.items()))
            raise DataMissing(f"No playable ALFWorld game in {self.root} ({left_out or 'empty'}).")

    def game(self, task_id: str) -> Game:
        """Load one of `task_ids`; raises UnknownName for any other."""
        if task_id not in self.task_ids:
            raise unknown_name("task", task_id, self.task_ids)
        return load_game(self.root, task_id)


def split_folder(data: Path, split: str) -> Path:
    """Where a split's games are below `data`."""
    places = (data / RELEASE / split, data / split)
    for place in places:
        if place.is_dir():
            return place
    raise DataMissing(
        f"No ALFWorld games in {data}: neither {places[0]} nor {places[1]} is a folder. Run "
        "alfworld-download and pass the folder it filled, or leave data=None for generated games."
    )


@functools.lru_cache(maxsize=16)
def read_folder(root: Path) -> Listing:
    """List the playable games below a folder; once a process, as 3,553 games take a while."""
    task_types: dict[str, str] = {}
    skipped: Counter[str] = Counter()
    for folder, _, files in os.walk(root):
        if TRAJECTORY_FILE not in files:
            skipped["no traj_data.json"] += GAME_FILE in files
            continue
        task_id = Path(folder).relative_to(root).as_posix()
        kind, reason = _judge(Path(folder), task_id)
        if reason:
            skipped[reason] += 1
        else:
            task_types[task_id] = kind
    return Listing(root, dict(sorted(task_types.items())), {r: n for r, n in skipped.items() if n})


def _judge(folder: Path, task_id: str) -> tuple[str, str]:
    """The task type of a game and why it is left out, "" if it is not."""
    if "movable" in task_id:
        return "", "movable receptacle"
    if "Sliced" in task_id:
        return "", "sliced object"
    try:
        kind = str(_json(folder / TRAJECTORY_FILE)["task_type"])
    except (ValueError, KeyError, TypeError):
        return "", "unreadable traj_data.json"
    try:
        check_task_types((kind,))
    except ValueError:
        return kind, "unknown task type"
    if not (folder / GAME_FILE).is_file():
        return kind, "no game file"
    try:
        game = _json(folder / GAME_FILE)
        complete = all(
            isinstance(game[key], str) for key in ("pddl_domain", "grammar", "pddl_problem")
        )
    except (ValueError, KeyError, TypeError):
        complete = False
    if not complete:
        return kind, "unreadable game file"
    if "solvable" not in game:
        return kind, "no solvable key"
    return kind, "" if game["solvable"] is True else "unsolvable"


def load_game(root: Path, task_id: str) -> Game:
    """Read a game and what its task is about."""
    try:
        data = _json(root / task_id / GAME_FILE)
        trajectory = _json(root / task_id / TRAJECTORY_FILE)
        params = trajectory["pddl_params"]
        return Game(
            id=task_id,
            task_type=trajectory["task_type"],
            params=Params(**{key: params[key] for key in Params.__dataclass_fields__}),
            scene=int(trajectory["scene"]["scene_num"]),
            goal=goal_sentence(data["grammar"]),
            pddl_domain=data["pddl_domain"],
            grammar=data["grammar"],
            pddl_problem=data["pddl_problem"],
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataMissing(
            f"Cannot read the ALFWorld game in {root / task_id}: {error!r}"
        ) from error


def write_game(data: Path, split: str, game: Game) -> Path:
    """Write a game in the official layout below `data`; returns its folder."""
    params = game.params
    target = params.parent_target or params.toggle_target
    task = f"{game.task_type}-{params.object_target}-None-{target}-{game.scene}"
    trial = "trial_" + "_".join(game.id.split("/")[:4])
    folder = data / RELEASE / split / task / trial
    folder.mkdir(parents=True, exist_ok=True)
    playable = {
        "pddl_domain": game.pddl_domain,
        "grammar": game.grammar,
        "pddl_problem": game.pddl_problem,
        "solvable": True,
        "walkthrough": None,
    }
    trajectory = {
        "task_id": trial,
        "task_type": game.task_type,
        "pddl_params": asdict(params),
        "scene": {
            "floor_plan": f"FloorPlan{game.scene}",
            "scene_num": game.scene,
            "source": game.id,
        },
        "turk_annotations": {"anns": [{"task_desc": game.goal, "high_descs": [], "votes": []}]},
        "plan": {"high_pddl": [], "low_actions": []},
        "images": [],
    }
    (folder / GAME_FILE).write_text(json.dumps(playable), encoding="utf-8")
    (folder / TRAJECTORY_FILE).write_text(json.dumps(trajectory), encoding="utf-8")
    (folder / STATE_FILE).write_text(game.pddl_problem, encoding="utf-8")
    return folder


def _json(file: Path) -> dict[str, Any]:  # Any: checked field by field where it is read
    value = json.loads(file.read_text(encoding="utf-8"))
    if not isinstance(value, dict):
        raise TypeError(f"{file.name} holds no JSON object.")
    return value
