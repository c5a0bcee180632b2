"""ALFWorld games made in memory, and the list of them.

A game is what textworld reads: the domain, the grammar with the goal sentence in it, and the
problem. Domain, grammar, goals, rooms and tables come unmodified from the alfworld wheel; object
instances and tasks are drawn (see `worlds`).

A task id says all: "gen1/full/train/0042/pick_heat_then_place_in_recep/room-12" names the
generator's version, the size of its worlds, the split, the index in it, the task type and the floor
plan. The game is a pure function of the id, on every machine. Splits have the official sizes and
numbers per type (arXiv:2010.03768, table 1), interleaved, so that any slice of the list is
balanced. Unseen rooms are 10, 219, 308 and 424; train and valid_seen share the other rooms with
different draws.
"""

import functools
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from milegpo_envs.alfworld import package
from milegpo_envs.alfworld.problem import goal_sentences, problem_pddl
from milegpo_envs.alfworld.rooms import TEST_ROOMS, UNSEEN_ROOMS, room
from milegpo_envs.alfworld.worlds import LOOK, Ask, asks, furnish_full, furnish_small
from milegpo_envs.draws import Draws
from milegpo_envs.errors import unknown_name
from milegpo_envs.panels import Coverage

GENERATOR = "gen1"
SIZES = ("full", "small")
TASK_TYPES = (
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
)
# Official numbers of games, in the order of TASK_TYPES: 3,553, 140 and 134 in all.
COUNTS: Mapping[str, tuple[int, ...]] = {
    "train": (790, 308, 650, 459, 533, 813),
    "valid_seen": (35, 13, 27, 16, 25, 24),
    "valid_unseen": (24, 18, 31, 23, 21, 17),
}
SPLITS = tuple(COUNTS)
_ATTEMPTS = 200


class Games(Protocol):
    """A list of games, generated or loaded; source and coverage as `ALFWorldEnv` has them."""

    task_ids: tuple[str, ...]
    source: str
    coverage: Coverage | None

    def game(self, task_id: str) -> "Game":
        """The game of a task id; raises UnknownName for one that is not listed."""


@dataclass(frozen=True)
class Params:
    """What a task is about, as the official `pddl_params` say it."""

    object_target: str
    parent_target: str = ""
    toggle_target: str = ""
    mrecep_target: str = ""
    object_sliced: bool = False


@dataclass(frozen=True)
class Game:
    """One game, as textworld and the fast engine read it."""

    id: str
    task_type: str
    params: Params
    scene: int  # number of the floor plan
    goal: str  # the sentence after "Your task is to: "
    pddl_domain: str = field(repr=False)
    grammar: str = field(repr=False)
    pddl_problem: str = field(repr=False)


def check_task_types(task_types: Collection[str] | None) -> tuple[str, ...]:
    """The types asked for, in the usual order; None asks for all six."""
    if task_types is None:
        return TASK_TYPES
    wanted = (task_types,) if isinstance(task_types, str) else tuple(task_types)
    for name in wanted:
        if name not in TASK_TYPES:
            raise unknown_name("task type", name, TASK_TYPES)
    if not wanted:
        raise unknown_name("task type", wanted, TASK_TYPES)
    return tuple(t for t in TASK_TYPES if t in wanted)


def task_ids(
    split: str, size: str = "full", task_types: Collection[str] | None = None
) -> tuple[str, ...]:
    """The tasks of a split, in their fixed order; leaving out types changes no other id."""
    if split not in SPLITS:
        raise unknown_name("split", split, SPLITS)
    if size not in SIZES:
        raise unknown_name("size", size, SIZES)
    wanted = check_task_types(task_types)
    return tuple(id for id in _schedule(split, size) if task_type_of(id) in wanted)


def task_type_of(task_id: str) -> str:
    """The type named by a generated task's id."""
    return task_id.split("/")[4]


@functools.lru_cache(maxsize=256)
def generate(task_id: str) -> Game:
    """Make the game of a task id.

    Raises:
        UnknownName: for an id that is not in the list of its split.
    """
    parts = task_id.split("/")
    known = len(parts) == 6 and parts[1] in SIZES and parts[2] in SPLITS
    split, size = (parts[2], parts[1]) if known else ("train", "full")
    if task_id not in _known(split, size):
        raise unknown_name("task", task_id, _schedule(split, size))
    task_type = parts[4]
    plan = room(int(parts[5].removeprefix("room-")))
    furnish = furnish_small if size == "small" else furnish_full
    for attempt in range(_ATTEMPTS):
        draws = Draws(f"{task_id}/{attempt}")
        ask = draws.choice(asks(plan, task_type))
        world = furnish(plan, ask, draws)
        if world is not None:
            name = "_".join(parts[:4])
            sentence = draws.choice(goal_sentences(ask))
            return _game(task_id, ask, plan.number, sentence, problem_pddl(world, ask, name))
    raise RuntimeError(f"No world for {task_id} in {_ATTEMPTS} attempts: a fault of the generator.")


def _game(task_id: str, ask: Ask, scene: int, sentence: str, problem: str) -> Game:
    parent, toggle = ("", ask.target) if ask.type == LOOK else (ask.target, "")
    return Game(
        id=task_id,
        task_type=ask.type,
        params=Params(ask.object, parent_target=parent, toggle_target=toggle),
        scene=scene,
        goal=f"{sentence}.",
        pddl_domain=package.domain(),
        grammar=package.grammar().replace("UNKNOWN GOAL", sentence),
        pddl_problem=problem,
    )


class GeneratedGames:
    """The generated games of a split, as an environment asks for them."""

    def __init__(
        self, split: str, size: str = "full", task_types: Collection[str] | None = None
    ) -> None:
        self.source = "generated"
        self.coverage: Coverage | None = None
        self.task_ids = task_ids(split, size, task_types)
        self._known = frozenset(self.task_ids)

    def game(self, task_id: str) -> Game:
        """The game of one of `task_ids`; raises UnknownName for any other."""
        if task_id not in self._known:
            raise unknown_name("task", task_id, self.task_ids)
        return generate(task_id)


@functools.cache
def _schedule(split: str, size: str) -> tuple[str, ...]:
    """Ids of a split: types interleaved by their share, rooms dealt out evenly within a type."""
    turns = sorted(
        ((k + 0.5) / count, task_type)
        for task_type, count in zip(TASK_TYPES, COUNTS[split], strict=True)
        for k in range(count)
    )
    decks: dict[str, list[int]] = {t: [] for t in TASK_TYPES}
    draws = Draws(f"{GENERATOR}/{size}/{split}/rooms")
    out = []
    for index, (_, task_type) in enumerate(turns):
        deck = decks[task_type]
        if not deck:
            deck.extend(draws.shuffled(_rooms(task_type, split)))
        out.append(f"{GENERATOR}/{size}/{split}/{index:04d}/{task_type}/room-{deck.pop()}")
    return tuple(out)


@functools.cache
def _known(split: str, size: str) -> frozenset[str]:
    return frozenset(_schedule(split, size))


@functools.cache
def _rooms(task_type: str, split: str) -> tuple[int, ...]:
    """Rooms of a split that can host a task type."""
    common = package.tables()
    kinds = sorted(common.room_kinds[task_type])
    numbers = sorted(n for kind in kinds for n in common.rooms[kind])
    unseen = split == "valid_unseen"
    return tuple(
        n
        for n in numbers
        if (n in UNSEEN_ROOMS) == unseen and n not in TEST_ROOMS and asks(room(n), task_type)
    )
