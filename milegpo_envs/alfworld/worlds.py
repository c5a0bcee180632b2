"""What is synthetic in a generated game: the task, which objects exist and where they start.

`furnish_full` fills a whole room as ALFRED does: up to three instances of every class the floor
plan names, wherever the package's tables let them be. `furnish_small` keeps four or five
receptacles of the room, always those that the task needs, and four to six objects, for policies
with a few hundred thousand weights. Both are solvable by construction, as every receptacle is one
`go to` away and the target can be carried, and neither starts solved, as no target starts in a
receptacle of the goal's class.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from milegpo_envs.alfworld import package
from milegpo_envs.alfworld.rooms import FIXTURES, Receptacle, Room, coordinate, location
from milegpo_envs.draws import Draws

LOOK = "look_at_obj_in_light"
TWO = "pick_two_obj_and_place"

# Task type -> (class of the receptacle that does it, what the object must afford).
PROCESSES: Mapping[str, tuple[str, str]] = {
    "pick_clean_then_place_in_recep": ("SinkBasin", "Cleanable"),
    "pick_heat_then_place_in_recep": ("Microwave", "Heatable"),
    "pick_cool_then_place_in_recep": ("Fridge", "Coolable"),
}

_LAMP = "DeskLamp"
_LAMP_STANDS_ON = frozenset(("Desk", "SideTable", "Dresser", "Shelf", "CoffeeTable", "DiningTable"))
_LOOKED_AT = frozenset(
    (
        *("AlarmClock", "BasketBall", "Book", "Bowl", "Box", "CD", "CellPhone", "CreditCard"),
        *("KeyChain", "Laptop", "Mug", "Newspaper", "Pen", "Pencil", "Pillow", "Plate"),
        *("RemoteControl", "Statue", "TissueBox", "Vase", "Watch"),
    )
)
_ROOM_FOR: Mapping[str, int] = {
    **dict.fromkeys(("CounterTop", "DiningTable"), 12),
    **dict.fromkeys(("CoffeeTable", "Desk"), 8),
    **dict.fromkeys(("Dresser",), 6),
    **dict.fromkeys(("SideTable", "Fridge"), 5),
    **dict.fromkeys(("Bed", "Cart"), 4),
    **dict.fromkeys(
        ("Drawer", "Cabinet", "GarbageCan", "ArmChair", "Toilet", "BathtubBasin", "Safe"), 2
    ),
    **dict.fromkeys(("TVStand", "LaundryHamper", "Ottoman"), 2),
    **dict.fromkeys(
        ("Microwave", "StoveBurner", "CoffeeMachine", "HandTowelHolder", "TowelHolder"), 1
    ),
    "ToiletPaperHanger": 1,
    "Toaster": 0,
}
_USUAL_ROOM_FOR = 3
_INSTANCES = 3  # of one class, as ALFRED's MAX_NUM_OF_OBJ_INSTANCES
_CLOSED = 2  # receptacles that must be opened, in a small room


@dataclass(frozen=True)
class Ask:
    """A task: its type, the class of object, and the class of receptacle or lamp it ends at."""

    type: str
    object: str
    target: str

    @property
    def needed(self) -> int:
        """How many instances of the object the goal speaks of."""
        return 2 if self.type == TWO else 1


@dataclass(frozen=True)
class Thing:
    """One object instance; fixtures are in no receptacle."""

    id: str
    type: str
    receptacle: Receptacle | None
    location: str


@dataclass(frozen=True)
class World:
    """A furnished room and the viewpoint the player starts from."""

    receptacles: tuple[Receptacle, ...]  # sorted by id
    things: tuple[Thing, ...]  # sorted by id
    start: str


def asks(room: Room, task_type: str) -> tuple[Ask, ...]:
    """All tasks of a type that make sense in a room, sorted."""
    if task_type == LOOK:
        lit = _LAMP in room.object_types and _LAMP_STANDS_ON & set(room.receptacle_types)
        return tuple(Ask(LOOK, o, _LAMP) for o in room.portable_types if lit and o in _LOOKED_AT)
    place, afford = PROCESSES.get(task_type, ("", ""))
    if place and place not in room.receptacle_types:
        return ()
    able = package.tables().affords[afford] if afford else frozenset(room.portable_types)
    return tuple(
        Ask(task_type, object, target)
        for object in room.portable_types
        for target in room.receptacle_types
        if object in able
        and target != place
        and fits(target, object)
        and any(fits(other, object) for other in room.receptacle_types if other != target)
    )


def fits(receptacle_type: str, object_type: str) -> bool:
    """Whether the package's tables let such an object be in such a receptacle."""
    return object_type in package.tables().can_contain.get(receptacle_type, ())


def furnish_full(room: Room, ask: Ask, draws: Draws) -> World | None:
    """A whole room with many objects; None if this draw leaves no space for what the task needs."""
    shelf = _Shelves(room.receptacles, ask, draws)
    for type in sorted(room.portable_types, key=lambda t: (t != ask.object, t)):
        least = ask.needed if type == ask.object else 1
        for count in range(draws.integer(least, _INSTANCES)):
            if not shelf.place(type) and type == ask.object and count < least:
                return None
    lit = _LAMP in room.object_types and shelf.place_lamp()
    if ask.type == LOOK and not lit:
        return None
    fixtures = [_fixture(t, room, draws) for t in room.object_types if t in FIXTURES - {_LAMP}]
    return _world(room, room.receptacles, [*shelf.things, *fixtures], draws)


def furnish_small(room: Room, ask: Ask, draws: Draws) -> World | None:
    """Four or five receptacles and four to six objects; None if this draw does not work out."""
    kept = _keep(room, ask, draws, how_many=4 if draws.chance(0.6) else 5)
    if kept is None:
        return None
    shelf = _Shelves(kept, ask, draws, most=2)
    if ask.type == LOOK and not shelf.place_lamp():
        return None
    targets = ask.needed if ask.type == TWO or draws.chance(0.7) else 2
    if sum(shelf.place(ask.object) for _ in range(targets)) < targets:
        return None
    total = draws.integer(4, 6)
    for type in draws.shuffled([t for t in room.portable_types if t != ask.object]):
        if len(shelf.things) < total:
            shelf.place(type)
    return _world(room, kept, shelf.things, draws) if len(shelf.things) >= 4 else None


def _keep(room: Room, ask: Ask, draws: Draws, how_many: int) -> tuple[Receptacle, ...] | None:
    """Receptacles with distinct viewpoints: those the task needs, then any others."""
    pool = draws.shuffled(room.receptacles)
    wanted: list[frozenset[str]] = []
    if ask.type == LOOK:
        wanted.append(_LAMP_STANDS_ON)
    else:
        wanted.append(frozenset((ask.target,)))
    if ask.type in PROCESSES:
        wanted.append(frozenset((PROCESSES[ask.type][0],)))
    wanted.append(
        frozenset(t for t in room.receptacle_types if t != ask.target and fits(t, ask.object))
    )
    kept: list[Receptacle] = []
    for types in [*wanted, *[frozenset(room.receptacle_types)] * (how_many - len(wanted))]:
        views = {r.location for r in kept}
        closed = sum(r.openable for r in kept)
        for candidate in pool:
            if (
                candidate.type not in types
                or candidate.location in views
                or not room_for(candidate)
            ):
                continue
            is_extra = types not in wanted
            if is_extra and (
                (candidate.openable and closed >= _CLOSED)
                or sum(r.type == candidate.type for r in kept) >= 2
            ):
                continue
            kept.append(candidate)
            break
        else:
            if types in wanted:
                return None
    return tuple(sorted(kept, key=lambda r: r.id))


def room_for(receptacle: Receptacle) -> int:
    """How many objects a receptacle starts with at most."""
    return _ROOM_FOR.get(receptacle.type, _USUAL_ROOM_FOR)


class _Shelves:
    """The receptacles while they are being filled."""

    def __init__(
        self, receptacles: Sequence[Receptacle], ask: Ask, draws: Draws, most: int = 99
    ) -> None:
        self.things: list[Thing] = []
        self._ask, self._draws, self._receptacles = ask, draws, receptacles
        self._space = {r.id: min(room_for(r), most) for r in receptacles}
        self._ids: set[str] = set()

    def place(self, type: str) -> bool:
        """Put one more instance somewhere it may be; targets keep out of the goal's receptacles."""
        avoided = self._ask.target if type == self._ask.object else ""
        open_to = [
            r
            for r in self._receptacles
            if self._space[r.id] > 0 and r.type != avoided and fits(r.type, type)
        ]
        if not open_to:
            return False
        spaces = [self._space[r.id] for r in open_to]
        self._put(type, self._draws.weighted(open_to, spaces))
        return True

    def place_lamp(self) -> bool:
        """Stand a desk lamp on a table."""
        tables = [r for r in self._receptacles if r.type in _LAMP_STANDS_ON]
        if tables:
            self._put(_LAMP, self._draws.choice(tables))
        return bool(tables)

    def _put(self, type: str, where: Receptacle) -> None:
        x, y, z = where.position
        id = ""
        while not id or id in self._ids:
            shift = [self._draws.uniform(-0.35, 0.35) for _ in range(2)]
            lift = self._draws.uniform(0.02, 0.1)
            id = "|".join([type, *map(coordinate, (x + shift[0], y + lift, z + shift[1]))])
        self._ids.add(id)
        self._space[where.id] -= 1
        self.things.append(Thing(id, type, where, where.location))


def _fixture(type: str, room: Room, draws: Draws) -> Thing:
    x, z = draws.choice(room.standing_points)
    id = "|".join([type, *map(coordinate, (x, draws.choice((0.0, 1.2)), z))])
    return Thing(id, type, None, location(x, z, draws.integer(0, 3), draws.choice((0, 30, 60))))


def _world(
    room: Room, receptacles: Sequence[Receptacle], things: Sequence[Thing], draws: Draws
) -> World:
    """Add a start that faces no receptacle, so that the first text lists them all."""
    taken = {r.location for r in receptacles}
    while True:
        x, z = draws.choice(room.standing_points)
        start = location(x, z, draws.integer(0, 3), 30)
        if start not in taken:
            return World(tuple(receptacles), tuple(sorted(things, key=lambda t: t.id)), start)
