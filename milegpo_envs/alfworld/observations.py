"""What a player is shown: the game's feedback, or GraphGPO's observation, which adds context.

With `observation="graphgpo"` three lines follow the feedback: where the player stands, what it
holds and in which states that is, and which objects it has moved so far. They say nothing that its
own actions have not shown, and tell apart most situations that one feedback covers;
`state="graphgpo"` hashes the same context.

    You open the fridge 1. The fridge 1 is open. In it, you see nothing.
    Location: fridge 1.
    Holding: potato 1 (clean).
    Moved: mug 2 to desk 1.
"""

from collections.abc import Callable, Mapping

from milegpo_envs.alfworld.compiled import Things
from milegpo_envs.alfworld.engine import EngineStep

_STATES = {
    "isclean": "clean",
    "ishot": "hot",
    "iscool": "cool",
    "istoggled": "on",
    "issliced": "sliced",
}
_TASK = "\n\nYour task is to: "


def feedback(first: EngineStep, now: EngineStep, things: Things) -> str:
    """What the game says, and nothing else."""
    return now.feedback


def with_context(first: EngineStep, now: EngineStep, things: Things) -> str:
    """The feedback with its context; at the start the task still ends the text."""
    said, task_follows, task = now.feedback.partition(_TASK)
    return f"{said}\n{context(first, now, things)}{task_follows}{task}"


def context(first: EngineStep, now: EngineStep, things: Things) -> str:
    """Location, held object and moved objects, a line each.

    An object counts as moved while it is in a receptacle that it did not start in. A location is
    named by all receptacles that one faces there.
    """
    names = things.names
    here = [place for name, *_, place in now.facts if name == "atlocation"]
    facing = [names[receptacle] for place in here for receptacle in things.at.get(place, ())]
    held = [_held(fact[2], now, names) for fact in now.facts if fact[0] == "holds"]
    moved = [fact[1:] for fact in now.facts - first.facts if fact[0] == "inreceptacle"]
    brought = sorted(f"{names[object]} to {names[receptacle]}" for object, receptacle in moved)
    return (
        f"Location: {', '.join(facing) or 'the middle of the room'}.\n"
        f"Holding: {', '.join(held) or 'nothing'}.\n"
        f"Moved: {', '.join(brought) or 'nothing'}."
    )


def _held(object: str, now: EngineStep, names: Mapping[str, str]) -> str:
    states = [word for fact, word in _STATES.items() if (fact, object) in now.facts]
    return f"{names[object]} ({', '.join(states)})" if states else names[object]


OBSERVATIONS: Mapping[str, Callable[[EngineStep, EngineStep, Things], str]] = {
    "feedback": feedback,
    "graphgpo": with_context,
}
"""Name -> text, from the first and the present answer of the engine."""
