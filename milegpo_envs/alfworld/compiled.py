"""A game read once: tables that every environment playing it shares, and that nothing changes.

Names of things follow AlfredDemangler: class name and a number, counted down in the order of
internal ids, so that the last id of a class is number 1. Lists of things follow the internal ids.
"""

import functools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from milegpo_envs.alfworld.engine import CHANGING, Action, Fact, UnsupportedGame
from milegpo_envs.alfworld.games import Game
from milegpo_envs.alfworld.goals import ground_goal
from milegpo_envs.alfworld.pddl import Problem, read_problem
from milegpo_envs.alfworld.versions import Wording, check_domain, wording

_UNMANGLED = (("_minus_", "-"), ("_plus_", "+"), ("_dot_", "."), ("_comma_", ","))
_BLADES = frozenset(("knifetype", "butterknifetype"))
# Static predicates of one argument that the engine asks about.
_KINDS = (
    "openable",
    "pickupable",
    "cleanable",
    "heatable",
    "coolable",
    "toggleable",
    "sliceable",
    "isreceptacleobject",
)


@dataclass(frozen=True, eq=False, slots=True)
class CompiledGame:
    """What the fast engine looks up, by internal ids; `names` has their names in texts."""

    wording: Wording
    agent: str
    names: Mapping[str, str]
    receptacles: tuple[str, ...]  # sorted
    location_of: Mapping[str, str]
    at: Mapping[str, tuple[str, ...]]  # location -> receptacles there, sorted
    does: Mapping[str, Mapping[str, frozenset[str]]]  # receptacle -> verb -> what it can be done to
    holds: Mapping[str, frozenset[str]]  # receptacle -> objects that may be put there
    kinds: Mapping[str, frozenset[str]]  # "openable", ... -> ids
    classes: Mapping[
        str, tuple[str, ...]
    ]  # "appletype" -> ids of such objects or receptacles, sorted
    blades: frozenset[str]
    nested: Mapping[
        str, tuple[str, ...]
    ]  # movable receptacle -> what is in it, for its description
    start: frozenset[Fact]  # the changing facts
    goal: tuple[frozenset[Fact], ...]
    commands: Mapping[
        str, Mapping[str, tuple[str, str, str]]
    ]  # location -> those that it always offers

    def __deepcopy__(self, _: object) -> "CompiledGame":
        """Nothing changes it, so copies of an engine share it too."""
        return self

    def instances(self, class_name: str) -> tuple[str, ...]:
        """Ids of the objects or receptacles of a class such as "ButterKnife", sorted."""
        return self.classes.get(f"{class_name.lower()}type", ())


@functools.lru_cache(maxsize=256)
def compiled(game: Game) -> CompiledGame:
    """Compile a game, or find it compiled.

    Raises:
        UnsupportedGame: if domain, grammar, goal or problem go beyond what the fast engine
        reproduces.
    """
    check_domain(game.pddl_domain)
    words = wording(game.grammar)
    problem = read_problem(game.pddl_problem)
    index: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for fact in problem.init:
        index[fact[0]].append(fact[1:])
    location_of = _locations(index["receptacleatlocation"])
    names = _names({word for fact in problem.init for word in fact[1:]})
    kinds = {kind: frozenset(arg for (arg,) in index[kind]) for kind in _KINDS}
    object_types = _grouped(index["objecttype"])
    receptacle_types = _grouped(index["receptacletype"])
    has_help = words.help is not None and "(:action help" in game.pddl_domain
    return CompiledGame(
        wording=words,
        agent=_agent(problem),
        names=names,
        receptacles=tuple(sorted(location_of)),
        location_of=location_of,
        at=_sorted_groups((place, r) for r, place in location_of.items()),
        does={r: _processes(receptacle_types.get(r, set()), kinds) for r in location_of},
        holds=_holdings(receptacle_types, object_types, set(index["cancontain"])),
        kinds=kinds,
        classes=_sorted_groups((t, o) for o, t in index["objecttype"] + index["receptacletype"]),
        blades=frozenset(o for o, types in object_types.items() if types & _BLADES),
        nested=_sorted_groups((o, i) for i, o in index["inreceptacleobject"]),
        start=frozenset(fact for fact in problem.init if fact[0] in CHANGING),
        goal=ground_goal(problem),
        commands=_constant_commands(problem, location_of, names, has_help),
    )


@dataclass(frozen=True, eq=False, slots=True)
class Things:
    """What things are called, and which receptacles one stands at; known for every game."""

    names: Mapping[str, str]
    at: Mapping[str, tuple[str, ...]]  # location -> receptacles there, sorted

    def __deepcopy__(self, _: object) -> "Things":
        """Nothing changes them."""
        return self


@functools.lru_cache(maxsize=256)
def things(game: Game) -> Things:
    """The things of a game, also of one that cannot be compiled."""
    try:
        known = compiled(game)
    except UnsupportedGame:
        init = read_problem(game.pddl_problem).init
        placed = [fact[1:] for fact in init if fact[0] == "receptacleatlocation"]
        return Things(
            _names({word for fact in init for word in fact[1:]}),
            _sorted_groups((place, receptacle) for receptacle, place in placed),
        )
    return Things(known.names, known.at)


def _locations(pairs: Iterable[tuple[str, ...]]) -> dict[str, str]:
    out: dict[str, str] = {}
    for receptacle, location in pairs:
        if out.setdefault(receptacle, location) != location:
            raise UnsupportedGame(f"{receptacle} is at two locations.")
    return out


def _grouped(pairs: Iterable[tuple[str, ...]]) -> dict[str, set[str]]:
    out: dict[str, set[str]] = defaultdict(set)
    for key, value in pairs:
        out[key].add(value)
    return dict(out)


def _sorted_groups(pairs: Iterable[tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    return {key: tuple(sorted(values)) for key, values in _grouped(pairs).items()}


def _agent(problem: Problem) -> str:
    agents = [name for name, type in problem.objects if type == "agent"]
    held = [fact for fact in problem.init if fact[0] == "holds"]
    stands = [fact for fact in problem.init if fact[0] == "atlocation"]
    if len(agents) != 1 or len(stands) != 1 or len(held) > 1:
        raise UnsupportedGame(
            "The game needs one agent, at one location, holding at most one object."
        )
    return agents[0]


def _names(ids: Iterable[str]) -> dict[str, str]:
    """Internal id -> text name. An id without coordinates gets, as officially, a blank after it."""
    out: dict[str, str] = {}
    left: Counter[str] = Counter()
    ordered = sorted(ids)
    for id in ordered:
        left[_class_name(id)] += 1
    for id in ordered:
        if "_bar_" in id:
            name = _class_name(id)
            out[id] = f"{name} {left[name]}"
            left[name] -= 1
            continue
        text = id
        for mangled, raw in _UNMANGLED:
            text = text.replace(mangled, raw)
        out[id] = f"{text} "
    return out


def _class_name(id: str) -> str:
    name, bar, _ = id.partition("_bar_")
    return name + ("basin" if bar and "basin" in id else "") if bar else ""


def _processes(types: set[str], kinds: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    """What a receptacle does to a held object; no appliance needs to be open for it."""
    out = {}
    if "sinkbasintype" in types:
        out["clean"] = kinds["cleanable"]
    if "microwavetype" in types:
        out["heat"] = kinds["heatable"]
    if "fridgetype" in types:
        out["cool"] = kinds["coolable"]
    return out


def _holdings(
    receptacle_types: Mapping[str, set[str]],
    object_types: Mapping[str, set[str]],
    can_contain: set[tuple[str, ...]],
) -> dict[str, frozenset[str]]:
    return {
        receptacle: frozenset(
            object
            for object, inner in object_types.items()
            if any((o, i) in can_contain for o in outer for i in inner)
        )
        for receptacle, outer in receptacle_types.items()
    }


def _constant_commands(
    problem: Problem, location_of: Mapping[str, str], names: Mapping[str, str], has_help: bool
) -> dict[str, dict[str, Action]]:
    """Going anywhere but here, looking, the inventory, for every place one can be at."""
    words = ("inventory", "look", "help") if has_help else ("inventory", "look")
    always: dict[str, Action] = {word: (word, "", "") for word in words}
    going: dict[str, tuple[str, Action]] = {
        receptacle: (f"go to {names[receptacle]}", ("go", "", receptacle))
        for receptacle in location_of
    }
    starts = {fact[2] for fact in problem.init if fact[0] == "atlocation"}
    return {
        place: always | dict(going[r] for r, location in location_of.items() if location != place)
        for place in starts | set(location_of.values())
    }
