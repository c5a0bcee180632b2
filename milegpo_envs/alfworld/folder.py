"""Games in folders: `json_2.1.1/{split}/{task}/{trial}/{game.tw-pddl,traj_data.json}`, or others.

Three layouts are read: what $ALFWORLD_DATA names (or the folder `json_2.1.1` in it); a folder with
split folders; and a folder with games anywhere below it, which are its train split. `index` says
which games count. A split of the first layout must hold the official number of games, one with a
manifest what that says; other folders hold what they hold. `write_game` writes a generated game so
that alfworld itself can play it.
"""

import functools
import json
import os
import shutil
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from milegpo_envs.alfworld import package
from milegpo_envs.alfworld.games import COUNTS, SPLITS, TASK_TYPES, Game, check_task_types
from milegpo_envs.alfworld.index import (
    GAME_FILE,
    TRAJECTORY_FILE,
    Listing,
    read_folder,
)
from milegpo_envs.alfworld.manifest import read_manifest
from milegpo_envs.alfworld.trajectory import read_object, read_trajectory
from milegpo_envs.alfworld.versions import goal_sentence
from milegpo_envs.errors import DataMissing, unknown_name
from milegpo_envs.panels import Coverage

RELEASE = "json_2.1.1"
STATE_FILE = "initial_state.pddl"
GET_IT = "Run: python -m scripts.download_data alfworld"


@dataclass(frozen=True)
class Place:
    """Where a split is. base: the folder of a manifest. official: in the official layout."""

    root: Path
    base: Path
    official: bool


class FolderGames:
    """The games of a split in a folder, as an environment asks for them; ids are relative paths.

    Args:
        data: see the module's docstring. split: one of the official three. task_types: the types to
        keep; None keeps all six. allow_partial: take a split that lacks games.

    Raises:
        DataMissing: there is no such folder, no playable game in it, fewer than there should be, or
        others than its manifest says.
    """

    def __init__(
        self,
        data: str | os.PathLike[str],
        split: str,
        task_types: Collection[str] | None = None,
        allow_partial: bool = False,
    ) -> None:
        wanted = check_task_types(task_types)
        place = find_split(Path(data), split)
        listing = read_folder(place.root)
        manifest = read_manifest(place.base)
        self.root = place.root
        self.source = manifest.source if manifest else "official" if place.official else "folder"
        other = sum(task_type not in wanted for task_type in listing.task_types.values())
        self.skipped = dict(listing.skipped) | ({"task type not selected": other} if other else {})
        self.task_ids = tuple(id for id, kind in listing.task_types.items() if kind in wanted)
        self._known = frozenset(self.task_ids)
        left_out = ", ".join(f"{n} {reason}" for reason, n in self.skipped.items())
        if not self.task_ids:
            raise DataMissing(f"No playable ALFWorld game in {self.root} ({left_out or 'empty'}).")

        told = manifest.splits.get(split) if manifest else None
        counts: Mapping[str, int] | None = told.games if told else None
        if manifest is None and place.official:
            counts = dict(zip(TASK_TYPES, COUNTS[split], strict=True))
        expected = sum(counts[kind] for kind in wanted) if counts else None
        coverage = Coverage(len(self.task_ids), expected)
        self.coverage: Coverage | None = coverage
        if not (coverage.complete or allow_partial):
            raise DataMissing(
                f"{self.root} holds {coverage.have:,} of {expected:,} games "
                f"(left out: {left_out or 'none'}). {GET_IT} - or pass allow_partial=True, and "
                f"results will say {coverage}."
            )
        if told and Counter(listing.task_types.values()) == Counter(told.games):
            _check_contents(listing, told.digest, place.base)

    def game(self, task_id: str) -> Game:
        """Load one of `task_ids`; raises UnknownName for any other."""
        if task_id not in self._known:
            raise unknown_name("task", task_id, self.task_ids)
        return load_game(self.root, task_id)


def _check_contents(listing: Listing, digest: str, base: Path) -> None:
    if listing.digest != digest:
        raise DataMissing(
            f"The games in {listing.root} are not those of its manifest: digest {listing.digest}, "
            f"not {digest}. Make the folder anew, or delete {base / 'manifest.json'} if they were "
            "changed on purpose."
        )


def find_split(data: Path, split: str) -> Place:
    """Find a split's games below `data`.

    Raises:
        UnknownName: there is no such split. DataMissing: it is not there.
    """
    if split not in SPLITS:
        raise unknown_name("split", split, SPLITS)
    for base in (data / RELEASE, data):
        if (base / split).is_dir():
            return Place(base / split, base, official=base.resolve().name == RELEASE)
    official = (data / RELEASE).is_dir() or data.resolve().name == RELEASE
    divided = official or any((data / other).is_dir() for other in SPLITS)
    if data.is_dir() and not divided and read_folder(data).entries:
        if split == "train":
            return Place(data, data, official=False)
        raise DataMissing(f"{data} has no folder {split!r}: all its games are split 'train'.")
    raise DataMissing(
        f"No ALFWorld games in {data}: neither {data / RELEASE / split} nor {data / split} is a "
        f"folder. {GET_IT} --to {data} - or leave data=None for generated games."
    )


@functools.lru_cache(maxsize=256)
def load_game(root: Path, task_id: str) -> Game:
    """Read a game and what its task is about; files must not change while they are played.

    Raises:
        DataMissing: it cannot be read.
    """
    try:
        data = read_object((root / task_id / GAME_FILE).read_bytes())
        trajectory = read_trajectory((root / task_id / TRAJECTORY_FILE).read_bytes())
        return Game(
            id=task_id,
            task_type=trajectory.task_type,
            params=trajectory.params,
            scene=trajectory.scene,
            goal=goal_sentence(data["grammar"]),
            pddl_domain=data["pddl_domain"],
            grammar=data["grammar"],
            pddl_problem=data["pddl_problem"],
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataMissing(
            f"Cannot read the ALFWorld game in {root / task_id}: {error!r}. {GET_IT}"
        ) from error


def write_logic(data: Path) -> None:
    """Put domain and grammar where `alfworld-download` puts them and alfworld's agents look."""
    (data / "logic").mkdir(parents=True, exist_ok=True)
    for name in ("alfred.pddl", "alfred.twl2"):
        shutil.copyfile(package.folder() / "data" / name, data / "logic" / name)


def write_game(data: Path, split: str, game: Game, plan: Collection[str] = ()) -> Path:
    """Write a game in the official layout below `data`; returns its folder.

    plan: commands that win it, the file's walkthrough.
    """
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
        "walkthrough": list(plan) or None,
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
