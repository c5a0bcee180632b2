"""What the installed `alfworld` wheel ships: domain, grammar, tables, goal library, floor plans.

The files are located and read without importing `alfworld`, whose import creates a data folder in
the user's home and sets $ALFWORLD_DATA. `imported` imports one of its modules where its code is
really needed, and undoes both.
"""

import functools
import importlib
import importlib.util
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from milegpo_envs.errors import DataMissing

_VARIABLE = "ALFWORLD_DATA"
INSTALL = 'pip install "alfworld>=0.4.2,<0.5" "textworld>=1.7,<1.8"'


@functools.cache
def folder() -> Path:
    """The folder of the installed package."""
    spec = importlib.util.find_spec("alfworld")  # finds a top-level package without running it
    if spec is None or spec.origin is None:
        raise DataMissing(f"The package alfworld is not installed. Run: {INSTALL}")
    return Path(spec.origin).parent


@functools.cache
def domain() -> str:
    """The PDDL domain of every game, `alfred.pddl`."""
    return (folder() / "data" / "alfred.pddl").read_text(encoding="utf-8")


@functools.cache
def grammar() -> str:
    """The text grammar, `alfred.twl2`; the goal sentence stands in it as UNKNOWN GOAL."""
    return (folder() / "data" / "alfred.twl2").read_text(encoding="utf-8")


def floor_plan(number: int) -> tuple[Path, Path, Path]:
    """Files of one AI2-THOR room: object types, receptacle poses, standing points."""
    layouts = folder() / "gen" / "layouts"
    plan = f"FloorPlan{number}"
    return (
        layouts / f"{plan}-objects.json",
        layouts / f"{plan}-openable.json",
        layouts / f"{plan}-layout.npy",
    )


@dataclass(frozen=True)
class Tables:
    """The package's common sense, by class names such as "ButterKnife"."""

    objects: frozenset[str]
    receptacles: frozenset[str]  # those that stand still
    movable_receptacles: frozenset[str]  # bowls, pans, ...: objects one can put things in
    openable: frozenset[str]
    can_contain: Mapping[str, frozenset[str]]  # receptacle class -> object classes
    affords: Mapping[str, frozenset[str]]  # "Cleanable", "Heatable", ... -> object classes
    room_kinds: Mapping[str, frozenset[str]]  # task type -> "Kitchen", ...
    rooms: Mapping[str, tuple[int, ...]]  # "Kitchen" -> floor plan numbers


@functools.cache
def tables() -> Tables:
    """The constants of `alfworld.gen.constants`, copied into typed fields."""
    raw = _run("constants")
    return Tables(
        objects=frozenset(raw.OBJECTS_SET),
        receptacles=frozenset(raw.RECEPTACLES) - frozenset(raw.MOVABLE_RECEPTACLES),
        movable_receptacles=frozenset(raw.MOVABLE_RECEPTACLES),
        openable=frozenset(raw.OPENABLE_CLASS_LIST),
        can_contain={k: frozenset(v) for k, v in raw.VAL_RECEPTACLE_OBJECTS.items()},
        affords={k: frozenset(v) for k, v in raw.VAL_ACTION_OBJECTS.items()},
        room_kinds={k: frozenset(v) for k, v in raw.GOALS_VALID.items()},
        rooms={k: tuple(v) for k, v in raw.SCENE_TYPE.items()},
    )


@dataclass(frozen=True)
class GoalTemplate:
    """The goal of a task type: PDDL with {obj}, {recep}, {toggle}; "#" stands for the type dash."""

    pddl: str
    sentences: tuple[str, ...]


@functools.cache
def goal_template(task_type: str) -> GoalTemplate:
    """The goal library's entry for a task type."""
    entry = _run("goal_library").gdict[task_type]
    return GoalTemplate(entry["pddl"], tuple(entry["templates"]))


def _run(name: str) -> ModuleType:
    """Run a module of `alfworld.gen` under a private name: the package stays unimported."""
    spec = importlib.util.spec_from_file_location(
        f"_alfworld_gen_{name}", folder() / "gen" / f"{name}.py"
    )
    if spec is None or spec.loader is None:
        raise DataMissing(f"alfworld has no gen/{name}.py. Run: {INSTALL}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def imported(name: str) -> ModuleType:
    """Import a module of `alfworld`, leaving no data folder and no environment variable behind.

    `alfworld.info` makes the folder named by $ALFWORLD_DATA, or ~/.cache/alfworld. While it runs,
    the variable names a folder that exists; afterwards the module's own constant gets the value
    that it would have had.
    """
    before = os.environ.get(_VARIABLE)
    first = "alfworld.info" not in sys.modules
    os.environ[_VARIABLE] = str(folder())
    try:
        module = importlib.import_module(name)
    finally:
        del os.environ[_VARIABLE]
        if before is not None:
            os.environ[_VARIABLE] = before
    if first:
        usual = before or os.path.expanduser("~/.cache/alfworld")
        for owner in ("alfworld.info", "alfworld"):
            importlib.import_module(owner).ALFWORLD_DATA = usual  # type: ignore[attr-defined]
    return module
