"""The 120 AI2-THOR rooms as ALFWorld knows them: receptacles, viewpoints, object classes.

A room is a pure function of its number. Receptacles, their coordinates and their viewpoints come
from the floor plans in the alfworld wheel. The plans give no pose to some classes that the room
does have (stove burners, bins, toasters): those get an invented one, from draws named by the room,
some of them sharing a counter's viewpoint as in the real data.
"""

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from milegpo_envs.alfworld import package
from milegpo_envs.draws import Draws

UNSEEN_ROOMS = (10, 219, 308, 424)  # ALFRED's valid_unseen scenes
TEST_ROOMS = (
    9,
    29,
    215,
    226,
    315,
    325,
    404,
    425,
)  # ALFRED's test scenes, of which ALFWorld has no games

# Objects that are part of the room: never picked up, never in a receptacle (but for the desk lamp).
FIXTURES = frozenset(
    (
        *("Bathtub", "Blinds", "Chair", "Curtains", "DeskLamp", "FloorLamp", "Footstool"),
        *("HousePlant", "LaundryHamperLid", "LightSwitch", "Mirror", "Painting", "Poster"),
        *("ShowerDoor", "ShowerGlass", "Sink", "StoveKnob", "Television", "Window"),
    )
)

_HOW_MANY: Mapping[str, int] = {"StoveBurner": 4, "HandTowelHolder": 2, "Shelf": 2, "Drawer": 2}
_PARENT: Mapping[str, str] = {"SinkBasin": "Sink", "BathtubBasin": "Bathtub"}


@dataclass(frozen=True)
class Receptacle:
    """One receptacle of a room. `id` is AI2-THOR's, e.g. "Fridge|-02.10|+00.00|+01.09"."""

    id: str
    type: str
    location: str
    position: tuple[float, float, float]
    openable: bool
    invented: bool


@dataclass(frozen=True)
class Room:
    """One floor plan; which object instances stand where is another matter."""

    number: int
    receptacles: tuple[Receptacle, ...]  # sorted by id
    object_types: tuple[str, ...]  # sorted
    standing_points: tuple[tuple[float, float], ...]

    @property
    def receptacle_types(self) -> tuple[str, ...]:
        """The classes of receptacles that the room has, sorted."""
        return tuple(sorted({receptacle.type for receptacle in self.receptacles}))

    @property
    def portable_types(self) -> tuple[str, ...]:
        """The classes of objects that can be picked up, sorted."""
        return tuple(t for t in self.object_types if t not in FIXTURES)


def coordinate(value: float) -> str:
    """AI2-THOR's way to write a coordinate in an id: sign, two digits, two decimals."""
    return ("-" if value < 0 else "+") + f"{abs(value):05.2f}"


def location(x: float, z: float, quarter_turns: int, horizon: int) -> str:
    """The id of a viewpoint, in steps of 0.25 m and turns of 90 degrees."""
    return f"loc|{round(x * 4)}|{round(z * 4)}|{quarter_turns % 4}|{horizon}"


@functools.cache
def room(number: int) -> Room:
    """Read a floor plan."""
    types_file, poses_file, points_file = package.floor_plan(number)
    types = set(json.loads(types_file.read_text(encoding="utf-8")))
    poses = json.loads(poses_file.read_text(encoding="utf-8"))
    points = tuple((float(x), float(z)) for x, z in np.load(points_file))
    common = package.tables()

    known = [_posed(id, pose) for id, pose in sorted(poses.items()) if _well_named(id)]
    missing = sorted((types & common.receptacles) - {r.type for r in known})
    receptacles = [*known, *_invented(number, missing, known, points)]
    return Room(
        number=number,
        receptacles=tuple(sorted(receptacles, key=lambda r: r.id)),
        object_types=tuple(sorted((types & common.objects) - common.receptacles)),
        standing_points=points,
    )


def _posed(id: str, pose: tuple[float, float, float, float]) -> Receptacle:
    x, z, rotation, horizon = pose
    parts = id.split("|")
    type = parts[-1] if parts[-1] in _PARENT else parts[0]
    return Receptacle(
        id=id,
        type=type,
        location=location(x, z, round(rotation / 90), int(horizon)),
        position=(float(parts[1]), float(parts[2]), float(parts[3])),
        openable=type in package.tables().openable,
        invented=False,
    )


def _invented(
    number: int,
    types: list[str],
    known: list[Receptacle],
    points: tuple[tuple[float, float], ...],
) -> list[Receptacle]:
    """Receptacles for the classes that the plan names without a pose."""
    draws = Draws(f"room/{number}")
    counters = [r.location for r in known if r.type == "CounterTop"]
    out: dict[str, Receptacle] = {}
    for type in types:
        for _ in range(_HOW_MANY.get(type, 1)):
            x, z = draws.choice(points)
            position = (
                x + draws.uniform(-0.6, 0.6),
                draws.choice((0.0, 0.9, 1.1)),
                z + draws.uniform(-0.6, 0.6),
            )
            id = "|".join([_PARENT.get(type, type), *map(coordinate, position)])
            id += f"|{type}" if type in _PARENT else ""
            view = location(x, z, draws.integer(0, 3), draws.choice((0, 30, 45, 60)))
            if type in ("CoffeeMachine", "Toaster") and counters and draws.chance(0.5):
                view = draws.choice(counters)
            openable = type in package.tables().openable
            out.setdefault(id, Receptacle(id, type, view, position, openable, invented=True))
    return list(out.values())


def _well_named(id: str) -> bool:
    """False for the one sink basin that a plan files under a bathtub, and texts would misname."""
    first, *_, last = id.split("|")
    return first == _PARENT.get(last, first)
