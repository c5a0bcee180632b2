"""What of ALFWorld works on this machine. Reads only: nothing is made, indexed or downloaded."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from milegpo_envs.alfworld import games, package
from milegpo_envs.alfworld.compiled import compiled
from milegpo_envs.alfworld.experts import shortest_plan
from milegpo_envs.alfworld.fast_engine import FastEngine
from milegpo_envs.alfworld.folder import RELEASE
from milegpo_envs.alfworld.index import GAME_FILE
from milegpo_envs.alfworld.manifest import read_manifest
from milegpo_envs.errors import DataMissing, EnvError
from milegpo_envs.reports import Check

_SECONDS = 120  # for textworld to load a game
_LOAD = """
from milegpo_envs.alfworld import games
from milegpo_envs.alfworld.textworld_engine import TextWorldEngine
engine = TextWorldEngine(games.generate(games.task_ids("train", "small")[0]))
print(len(engine.reset().admissible_commands), "commands")
"""


def checks() -> Iterator[Check]:
    """Generated games on either engine, then official data."""
    yield _fast()
    yield _textworld()
    yield _data()


def _fast() -> Check:
    """Make a game and win it."""
    name = "ALFWorld: generated games, fast engine"
    try:
        game = games.generate(games.task_ids("valid_unseen", "full")[0])
        engine = FastEngine(compiled(game))
        engine.reset()
        plan = shortest_plan(compiled(game), game.task_type, game.params) or ()
        won = [engine.step(command).won for command in plan][-1:] == [True]
    except (EnvError, OSError, RuntimeError) as error:
        return Check(name, False, f"{error}", package.INSTALL, required=True)
    found = f"a game won in {len(plan)} steps" if won else "the shortest plan does not win"
    return Check(name, won, found, "" if won else package.INSTALL, required=True)


def _textworld() -> Check:
    """Load a game in a process of its own, as a broken library ends the process that loads it."""
    name = "ALFWorld: textworld engine"
    remedy = f"{package.INSTALL} --force-reinstall"
    command = [sys.executable, "-c", _LOAD]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS, env=environment
        )
    except subprocess.TimeoutExpired:
        return Check(name, False, f"no game loaded within {_SECONDS} s", remedy, required=True)
    if done.returncode == 0:
        return Check(name, True, f"a game loaded: {done.stdout.strip()}", required=True)
    last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    return Check(name, False, last, remedy, required=True)


def _data() -> Check:
    """Count the game files of each split against what the folder should hold.

    The environment itself looks into the files, too, and keeps an index; this does neither.
    """
    name = "ALFWorld: official data"
    remedy = "python -m scripts.download_data alfworld"
    root = Path(os.environ.get("ALFWORLD_DATA") or Path.home() / ".cache" / "alfworld")
    base = root / RELEASE if (root / RELEASE).is_dir() else root
    try:
        manifest = read_manifest(base)
    except DataMissing as error:
        return Check(name, False, f"{error}", remedy)
    there = {split: _playable(base / split) for split in games.SPLITS}
    if not any(there.values()):
        return Check(name, False, f"none in {root}; generated games serve instead", remedy)
    held = {split: sum(games.COUNTS[split]) for split in games.SPLITS}
    if manifest:
        held = {split: sum(told.games.values()) for split, told in manifest.splits.items()}
    found = ", ".join(f"{split} {there[split]:,} of {count:,}" for split, count in held.items())
    whole = all(there[split] >= count for split, count in held.items())
    return Check(name, whole, f"{base}: {found}", "" if whole else remedy)


def _playable(folder: Path) -> int:
    """Game files that the official filters keep by their path."""
    paths = (str(path.relative_to(folder)) for path in folder.glob(f"*/*/{GAME_FILE}"))
    return sum("movable" not in path and "Sliced" not in path for path in paths)
