"""ALFWorld's engine in plain Python: textworld's texts, commands, facts and wins, much faster.

The state is the set of changing facts, with what a step asks for most kept beside it. Reproduced
too are the quirks of the official texts and commands:

* only the held object can be examined: the domain's typing has a stray comma, which empties the
  other case;
* `go to X` is missing at X's location, also for another receptacle that shares it;
* lamps are always turned "on"; cleaning, heating and cooling need no open appliance;
* `look` lists as lying "next to" a receptacle what was once taken from it and is at its location
  again, which depends on history (textworld keeps a negated fact); before the first move it sees
  nothing.

Left out: the fact `ison`, and the bookkeeping facts `checked` and `holdsany`. `tests/` compare with
textworld itself.
"""

from collections.abc import Callable, Mapping, Sequence

from milegpo_envs.alfworld.compiled import CompiledGame
from milegpo_envs.alfworld.engine import NOTHING_HAPPENS, Action, EngineStep, Fact

_WELCOME = "-= Welcome to TextWorld, ALFRED! =-"
_SAID = {"clean": "isclean", "heat": "ishot", "cool": "iscool"}
_UNDONE = {"heat": "iscool", "cool": "ishot"}


class FastEngine:
    """One game being played; engines of one game share what is compiled.

    A copy, deep or by pickle, plays on by itself from the same moment.
    """

    def __init__(self, game: CompiledGame) -> None:
        self.game = game

    def reset(self) -> EngineStep:
        """Start over."""
        self._facts: set[Fact] = set(self.game.start)
        self._inside: dict[str, set[str]] = {
            receptacle: set() for receptacle in self.game.receptacles
        }
        self._held = ""
        for predicate, *args in self._facts:
            if predicate == "inreceptacle":
                self._inside.setdefault(args[1], set()).add(args[0])
            elif predicate == "atlocation":
                self._place = args[1]
            elif predicate == "holds":
                self._held = args[1]
        self._taken: set[tuple[str, str]] = (
            set()
        )  # (object, receptacle) of textworld's negated facts
        self._update()
        text = "\n\n".join((_WELCOME, self._look(first=True), self.game.wording.task))
        return self._answer(text)

    def step(self, command: str) -> EngineStep:
        """Send one command."""
        action = self._actions.get(command.strip())
        if action is None:
            return self._answer(NOTHING_HAPPENS)
        verb, object, receptacle = action
        return self._answer(_VERBS[verb](self, object, receptacle))

    def close(self) -> None:
        """Nothing is held."""

    def _answer(self, feedback: str) -> EngineStep:
        return EngineStep(feedback, self._commands, self._won, self._frozen)

    def _change(self, removed: Sequence[Fact], added: Sequence[Fact]) -> None:
        self._facts.difference_update(removed)
        self._facts.update(added)
        self._update()

    def _update(self) -> None:
        """Derive what an answer shows from the facts."""
        self._frozen = frozenset(self._facts)
        self._won = any(alternative <= self._frozen for alternative in self.game.goal)
        self._actions = self._admissible()
        self._commands = tuple(sorted(self._actions))

    # Commands.

    def _admissible(self) -> dict[str, Action]:
        game, names = self.game, self.game.names
        actions: dict[str, Action] = dict(game.commands[self._place])
        for receptacle in game.at.get(self._place, ()):
            name = names[receptacle]
            actions[f"examine {name}"] = ("examine receptacle", "", receptacle)
            accessible = True
            if receptacle in game.kinds["openable"]:
                accessible = ("opened", receptacle) in self._facts
                verb = "close" if accessible else "open"
                actions[f"{verb} {name}"] = (verb, "", receptacle)
            for object in self._inside[receptacle]:
                if accessible and not self._held and object in game.kinds["pickupable"]:
                    actions[f"take {names[object]} from {name}"] = ("take", object, receptacle)
                if object in game.kinds["toggleable"]:
                    actions[f"use {names[object]}"] = ("use", object, "")
            if self._held:
                self._add_held(actions, receptacle, accessible)
        if self._held:
            actions[f"examine {names[self._held]}"] = ("examine object", self._held, "")
            if self._held in game.blades:
                self._add_slices(actions)
        return actions

    def _add_held(self, actions: dict[str, Action], receptacle: str, accessible: bool) -> None:
        """What can be done here with the object in hand."""
        held, name = self.game.names[self._held], self.game.names[receptacle]
        if accessible and self._held in self.game.holds.get(receptacle, ()):
            verb, preposition = self.game.wording.put
            actions[f"{verb} {held} {preposition} {name}"] = ("put", self._held, receptacle)
        for verb, objects in self.game.does[receptacle].items():
            if self._held in objects:
                actions[f"{verb} {held} with {name}"] = (verb, self._held, receptacle)

    def _add_slices(self, actions: dict[str, Action]) -> None:
        blade = self.game.names[self._held]
        for object in self.game.kinds["sliceable"]:
            if ("objectatlocation", object, self._place) in self._facts:
                actions[f"slice {self.game.names[object]} with {blade}"] = ("slice", object, "")

    # Verbs: change the state, return the text.

    def _go(self, _: str, receptacle: str) -> str:
        game, place = self.game, self.game.location_of[receptacle]
        before = self._place
        self._place = place
        self._change([("atlocation", game.agent, before)], [("atlocation", game.agent, place)])
        arrived = place if game.wording.arrives_at_location else receptacle
        return f"You arrive at {game.names[arrived]}. {self._receptacle_text(receptacle)}"

    def _open(self, _: str, receptacle: str) -> str:
        self._change([], [("opened", receptacle)])
        return f"You open the {self.game.names[receptacle]}. {self._receptacle_text(receptacle)}"

    def _close(self, _: str, receptacle: str) -> str:
        self._change([("opened", receptacle)], [])
        return f"You close the {self.game.names[receptacle]}."

    def _take(self, object: str, receptacle: str) -> str:
        self._held = object
        self._inside[receptacle].discard(object)
        self._taken.add((object, receptacle))
        self._change(
            [("inreceptacle", object, receptacle), ("objectatlocation", object, self._place)],
            [("holds", self.game.agent, object)],
        )
        names = self.game.names
        return f"You pick up the {names[object]} from the {names[receptacle]}."

    def _put(self, object: str, receptacle: str) -> str:
        self._held = ""
        self._inside[receptacle].add(object)
        self._taken.discard((object, receptacle))
        self._change(
            [("holds", self.game.agent, object)],
            [("inreceptacle", object, receptacle), ("objectatlocation", object, self._place)],
        )
        verb, preposition = self.game.wording.put
        names = self.game.names
        return f"You {verb} the {names[object]} {preposition} the {names[receptacle]}."

    def _process(self, verb: str, object: str, receptacle: str) -> str:
        undone = [(_UNDONE[verb], object)] if verb in _UNDONE else []
        self._change(undone, [(_SAID[verb], object)])
        names = self.game.names
        return f"You {verb} the {names[object]} using the {names[receptacle]}."

    def _use(self, object: str, _: str) -> str:
        self._change([], [("istoggled", object)])
        return f"You turn on the {self.game.names[object]}."

    def _slice(self, object: str, _: str) -> str:
        self._change([], [("issliced", object)])
        return f"You sliced the {self.game.names[object]} with the {self.game.names[self._held]}."

    # Texts.

    def _receptacle_text(self, receptacle: str) -> str:
        name = self.game.names[receptacle]
        seen = _listed([f"a {self.game.names[o]}" for o in sorted(self._inside[receptacle])])
        if receptacle not in self.game.kinds["openable"]:
            return f"On the {name}, you see {seen}."
        if ("opened", receptacle) in self._facts:
            return f"The {name} is open. In it, you see {seen}."
        return f"The {name} is closed."

    def _object_text(self, object: str) -> str:
        name, kinds = self.game.names[object], self.game.kinds
        if object in kinds["isreceptacleobject"]:
            seen = _listed([f"a {self.game.names[o]}" for o in self.game.nested.get(object, ())])
            return f"This is a normal {name}. In it, you see {seen}."
        clean, hot, cool, sliced, toggled = (
            (fact, object) in self._facts
            for fact in ("isclean", "ishot", "iscool", "issliced", "istoggled")
        )
        words = _adjectives(clean, hot, cool, sliced)
        if words:
            return f"This is a {words} {name}."
        if toggled and object in kinds["toggleable"]:
            return f"This {name} is on."
        if sliced and object in kinds["sliceable"]:
            return f"This is a sliced {name}."
        return f"There's nothing special about {name}."

    def _look(self, first: bool = False) -> str:
        names, here = self.game.names, self.game.at.get(self._place, ())
        if not here:
            around = _listed([f"a {names[r]}" for r in self.game.receptacles] if first else [])
            return f"You are in the middle of a room. Looking quickly around you, you see {around}."
        beside = [
            f"a {names[object]}"
            for object, receptacle in sorted(self._taken)
            if receptacle in here and ("objectatlocation", object, self._place) in self._facts
        ]
        facing = _listed([names[receptacle] for receptacle in here])
        return f"You are facing the {facing}. Next to it, you see {_listed(beside)}."

    def _inventory(self) -> str:
        if not self._held:
            return "You are not carrying anything."
        return f"You are carrying: a {self.game.names[self._held]}."


# Outside the engines, so that a copy of one holds nothing that belongs to another.
_VERBS: Mapping[str, Callable[[FastEngine, str, str], str]] = {
    "go": FastEngine._go,
    "open": FastEngine._open,
    "close": FastEngine._close,
    "take": FastEngine._take,
    "put": FastEngine._put,
    "clean": lambda engine, *args: engine._process("clean", *args),
    "heat": lambda engine, *args: engine._process("heat", *args),
    "cool": lambda engine, *args: engine._process("cool", *args),
    "use": FastEngine._use,
    "slice": FastEngine._slice,
    "examine receptacle": lambda engine, _, receptacle: engine._receptacle_text(receptacle),
    "examine object": lambda engine, object, _: engine._object_text(object),
    "look": lambda engine, *_: engine._look(),
    "inventory": lambda engine, *_: engine._inventory(),
    "help": lambda engine, *_: engine.game.wording.help or "",
}


def _listed(items: Sequence[str]) -> str:
    """The grammar's lists: ", and " before the last item, also of two."""
    if not items:
        return "nothing"
    return f"{', '.join(items[:-1])}, and {items[-1]}" if len(items) > 1 else items[0]


def _adjectives(clean: bool, hot: bool, cool: bool, sliced: bool) -> str:
    """The first of the grammar's alternatives that applies; "" if none speaks of these states."""
    warmth = "hot" if hot else "cool" if cool else ""
    if clean and warmth:
        return f"{warmth} and clean sliced" if sliced else f"{warmth} and clean"
    if sliced and (clean or hot):
        return "clean sliced" if clean else "hot sliced"
    if hot:
        return "hot"
    if clean:
        return "clean"
    return "cold" if cool else ""
