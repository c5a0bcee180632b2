"""Players that know how: a searcher that reads only texts, and shortest plans from full knowledge.

`SearchingExpert` decides by the goal sentence, its current observation, the admissible commands and
the receptacle it went to last; it keeps no map. It visits receptacles in the fixed order of the
sorted commands, so that a policy that sees the last two observations and actions can imitate it.
`shortest_plan` reads the compiled game, hidden facts included, and says how many steps a task needs
at least. No environment uses either unless asked to.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from milegpo_envs.alfworld import package
from milegpo_envs.alfworld.compiled import CompiledGame
from milegpo_envs.alfworld.fast_engine import FastEngine
from milegpo_envs.alfworld.games import Params
from milegpo_envs.errors import EnvError

_TASK = re.compile(r"Your task is to: (.*)")
_SENTENCES = tuple(
    (re.compile(pattern), verb)
    for pattern, verb in (
        (r"put two (?P<object>\w+) in (?P<target>\w+)", "two"),
        (r"find two (?P<object>\w+) and put them in (?P<target>\w+)", "two"),
        (r"look at (?P<object>\w+) under the (?P<target>\w+)", "use"),
        (r"examine the (?P<object>\w+) with the (?P<target>\w+)", "use"),
        (r"put a clean (?P<object>\w+) in (?P<target>\w+)", "clean"),
        (r"clean some (?P<object>\w+) and put it in (?P<target>\w+)", "clean"),
        (r"put a hot (?P<object>\w+) in (?P<target>\w+)", "heat"),
        (r"heat some (?P<object>\w+) and put it in (?P<target>\w+)", "heat"),
        (r"put a cool (?P<object>\w+) in (?P<target>\w+)", "cool"),
        (r"cool some (?P<object>\w+) and put it in (?P<target>\w+)", "cool"),
        (r"put a (?P<object>\w+) in (?P<target>\w+)", ""),
        (r"put some (?P<object>\w+) on (?P<target>\w+)", ""),
    )
)
_APPLIANCES = {"clean": "sinkbasin", "heat": "microwave", "cool": "fridge"}


class UnreadableTask(EnvError, ValueError):
    """A goal sentence that is none of the goal library's."""


class Expert(Protocol):
    """A player. `admissible` are the commands of the moment, sorted."""

    def reset(self, observation: str, admissible: Sequence[str]) -> None:
        """Begin an episode with its first observation."""

    def act(self, observation: str, admissible: Sequence[str]) -> str:
        """The next command, given what the last one answered (at first, the first observation)."""


@dataclass(frozen=True)
class Sentence:
    """What a goal sentence asks, in lower case.

    The verb is "clean", "heat", "cool", "use" (a lamp), "two" (objects), or "" for plain placing.
    """

    object: str
    target: str
    verb: str


def read_task(observation: str) -> Sentence:
    """Read the goal sentence in a first observation.

    Raises:
        UnreadableTask: if it holds none of the goal library's sentences.
    """
    found = _TASK.search(observation)
    text = found.group(1).strip().rstrip(".") if found else ""
    for pattern, verb in _SENTENCES:
        match = pattern.fullmatch(text)
        if match:
            return Sentence(match["object"], match["target"], verb)
    raise UnreadableTask(f"Not a known goal sentence: {text!r:.200}")


class SearchingExpert:
    """Search in order, take the target, process it, deliver it; never fooled, not always fast.

    `plausible` narrows the search: object class -> receptacle classes worth a visit, in lower case,
    such as `likely_places()`. Without it every receptacle is visited.
    """

    def __init__(self, plausible: Mapping[str, frozenset[str]] | None = None) -> None:
        self._plausible = plausible

    def reset(self, observation: str, admissible: Sequence[str]) -> None:
        """Read the task and the list of receptacles."""
        self._task = read_task(observation)
        self._all = sorted(c.removeprefix("go to ") for c in admissible if c.startswith("go to "))
        wanted = (self._plausible or {}).get(self._task.object)
        likely = [name for name in self._all if wanted is None or _class(name) in wanted]
        self._search = likely or self._all
        self._here = ""
        self._held = ""
        self._processed = False

    def act(self, observation: str, admissible: Sequence[str]) -> str:
        """One command, always an admissible one."""
        self._notice(observation)
        commands = frozenset(admissible)
        command = self._deliver(commands) if self._held else self._find(commands, admissible)
        if command not in commands:
            return "look"
        if command.startswith("go to ") or command.startswith("examine "):
            self._here = command.removeprefix("go to ").removeprefix("examine ")
        return command

    @property
    def intention(self) -> str:
        """What the last command is for, in a few words: "find mug", "heat mug", "put in desk"."""
        task = self._task
        if not self._held:
            return f"find {task.object}"
        if task.verb == "use":
            return f"use {task.target}"
        if task.verb in _APPLIANCES and not self._processed:
            return f"{task.verb} {task.object}"
        return f"put in {task.target}"

    def _notice(self, observation: str) -> None:
        """Follow the hand: the texts of taking, putting and processing."""
        if observation.startswith("You pick up the "):
            self._held = " ".join(observation.split()[4:6])
            self._processed = False
        elif observation.startswith(("You move the ", "You put the ")):
            self._held = ""
        elif observation.startswith(("You clean the ", "You heat the ", "You cool the ")):
            self._processed = True

    def _find(self, commands: frozenset[str], admissible: Sequence[str]) -> str:
        """Take the object where it is seen, open what is closed, go on to the next receptacle."""
        done_at = f" from {self._target()}" if self._task.verb == "two" else "\n"
        for command in admissible:
            if command.startswith(f"take {self._task.object} ") and not command.endswith(done_at):
                return command
        return self._open_or(self._next(self._search), commands)

    def _deliver(self, commands: frozenset[str]) -> str:
        """Bring the held object where it has to go."""
        verb = self._task.verb
        if verb == "use":
            lamps = sorted(c for c in commands if c.startswith(f"use {self._task.target} "))
            return lamps[0] if lamps else self._go(self._next(self._all), commands)
        if verb in _APPLIANCES and not self._processed:
            place = next(n for n in self._all if _class(n) == _APPLIANCES[verb])
            command = f"{verb} {self._held} with {place}"
            return command if command in commands else self._go(place, commands)
        target = self._target()
        for command in (f"move {self._held} to {target}", f"put {self._held} in/on {target}"):
            if command in commands:
                return command
        return (
            self._open_or(target, commands) if self._here == target else self._go(target, commands)
        )

    def _target(self) -> str:
        """The one receptacle of the goal's class that things are brought to: the first in order."""
        return next(name for name in self._all if _class(name) == self._task.target)

    def _next(self, order: Sequence[str]) -> str:
        """The receptacle after the present one in the round."""
        return next((name for name in order if name > self._here), order[0])

    def _open_or(self, place: str, commands: frozenset[str]) -> str:
        opening = f"open {self._here}"
        return opening if opening in commands else self._go(place, commands)

    def _go(self, place: str, commands: frozenset[str]) -> str:
        """Go there; a receptacle that shares this viewpoint is looked at instead."""
        going = f"go to {place}"
        return going if going in commands else f"examine {place}"


def likely_places() -> dict[str, frozenset[str]]:
    """Where the package's tables let each class of object be, to narrow a search."""
    out: dict[str, set[str]] = {}
    for receptacle, objects in package.tables().can_contain.items():
        for object in objects:
            out.setdefault(object.lower(), set()).add(receptacle.lower())
    return {object: frozenset(places) for object, places in out.items()}


def _class(name: str) -> str:
    return name.split(" ")[0]


def shortest_plan(game: CompiledGame, task_type: str, params: Params) -> tuple[str, ...] | None:
    """A shortest winning list of commands for one of the six task types, or None if there is none.

    Every place is one step away and one object fits the hand, so a plan is a tour: for each object,
    the place where it is, the appliance if there is one, the target. All tours over the possible
    objects and places are played on the exact engine, with commands for what is already reached
    left out, and the shortest winner counts.
    """
    best: tuple[str, ...] | None = None
    for tour in _tours(game, task_type, params):
        plan = _play(game, tour)
        if plan is not None and (best is None or len(plan) < len(best)):
            best = plan
    return best


Stop = tuple[str, tuple[str, ...]]
"""A receptacle to be at, and the commands to give there."""


def _tours(game: CompiledGame, task_type: str, params: Params) -> Iterator[Sequence[Stop]]:
    names, (put, preposition) = game.names, game.wording.put
    objects = [o for o in game.instances(params.object_target) if o in game.kinds["pickupable"]]
    where = {f[1]: f[2] for f in sorted(game.start) if f[0] == "inreceptacle"}
    targets = game.instances(params.parent_target)

    def take(o: str) -> Stop:
        return where[o], (f"take {names[o]} from {names[where[o]]}",)

    def leave(o: str, r: str) -> Stop:
        return r, (f"{put} {names[o]} {preposition} {names[r]}",)

    objects = [o for o in objects if o in where]
    if task_type == "look_at_obj_in_light":
        lamps = [o for o in game.instances(params.toggle_target) if o in where]
        for o, lamp in itertools.product(objects, lamps):
            yield take(o), (where[lamp], (f"use {names[lamp]}",))
    elif task_type == "pick_two_obj_and_place":
        for (a, b), r in itertools.product(itertools.permutations(objects, 2), targets):
            yield take(a), leave(a, r), take(b), leave(b, r)
            if where[b] == r:
                yield take(a), leave(a, r)
    else:
        verb = task_type.split("_")[1]
        appliances: Iterable[str] = [r for r in game.receptacles if verb in game.does[r]]
        for o, r in itertools.product(objects, targets):
            if verb not in _APPLIANCES:
                yield take(o), leave(o, r)
                continue
            for place in appliances:
                yield take(o), (place, (f"{verb} {names[o]} with {names[place]}",)), leave(o, r)


def _play(game: CompiledGame, tour: Sequence[Stop]) -> tuple[str, ...] | None:
    """The commands of a tour, if they win."""
    engine = FastEngine(game)
    now = engine.reset()
    plan: list[str] = []
    for receptacle, commands in tour:
        name = game.names[receptacle]
        for command in (f"go to {name}", f"open {name}", *commands):
            optional = command not in commands
            needed = not optional or not set(commands) <= set(now.admissible_commands)
            if command in now.admissible_commands and needed:
                now = engine.step(command)
                plan.append(command)
            elif not optional:
                return None
    return tuple(plan) if now.won else None


EXPERTS = {"milegpo/ALFWorld-v0": SearchingExpert}
"""Environment id -> expert to imitate."""
