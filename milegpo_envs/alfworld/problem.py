"""A furnished room and a task as PDDL, in the layout of the official `initial_state.pddl`."""

from collections.abc import Iterable

from milegpo_envs.alfworld import package
from milegpo_envs.alfworld.rooms import FIXTURES
from milegpo_envs.alfworld.worlds import LOOK, Ask, World

_AFFORDANCES = ("cleanable", "heatable", "coolable", "toggleable", "sliceable")
_MANGLED = (
    ("-", "_minus_"),
    ("#", "-"),
    ("|", "_bar_"),
    ("+", "_plus_"),
    (".", "_dot_"),
    (",", "_comma_"),
)


def mangle(text: str) -> str:
    """Turn AI2-THOR ids into PDDL names; "#" becomes the dash before a type."""
    for raw, written in _MANGLED:
        text = text.replace(raw, written)
    return text


def goal_pddl(ask: Ask) -> str:
    """The goal library's formula, filled in."""
    template = package.goal_template(ask.type).pddl
    recep, toggle = ("", ask.target) if ask.type == LOOK else (ask.target, "")
    return template.format(obj=ask.object, recep=recep, toggle=toggle)


def goal_sentences(ask: Ask) -> tuple[str, ...]:
    """The ways the goal library puts the task into words."""
    words = ask.target.lower()
    recep, toggle = ("", words) if ask.type == LOOK else (words, "")
    return tuple(
        sentence.format(obj=ask.object.lower(), recep=recep, toggle=toggle)
        for sentence in package.goal_template(ask.type).sentences
    )


def problem_pddl(world: World, ask: Ask, name: str) -> str:
    """The whole problem; the official files, too, declare class names beside the instances."""
    common = package.tables()
    classes = sorted(common.objects - common.receptacles)
    views = {r.location for r in world.receptacles} | {t.location for t in world.things}
    declared = [
        "agent1 # agent",
        *(f"{t} # object" for t in classes),
        *(f"{t}Type # otype" for t in classes),
        *(f"{t}Type # rtype" for t in sorted(common.receptacles)),
        *(f"{t.id} # object" for t in world.things),
        *(f"{r.id} # receptacle" for r in world.receptacles),
        *(f"{view} # location" for view in sorted(views | {world.start})),
    ]
    lines = [
        f"(define (problem plan_{name})",
        "(:domain alfred)",
        "(:objects",
        *(f"        {line}" for line in declared),
        "        )",
        "",
        "(:init",
        *(f"        ({fact})" for fact in _facts(world)),
        "        )",
    ]
    return "\n" + mangle("\n".join(lines) + "\n" + goal_pddl(ask))


def _facts(world: World) -> Iterable[str]:
    common = package.tables()
    receptacle_types = sorted({r.type for r in world.receptacles})
    thing_types = sorted({t.type for t in world.things})
    for r in world.receptacles:
        yield f"receptacleType {r.id} {r.type}Type"
    for t in world.things:
        yield f"objectType {t.id} {t.type}Type"
    for outer in receptacle_types:
        for inner in thing_types:
            if inner in common.can_contain.get(outer, ()):
                yield f"canContain {outer}Type {inner}Type"
    for t in world.things:
        if t.type not in FIXTURES:
            yield f"pickupable {t.id}"
        if t.type in common.movable_receptacles:
            yield f"isReceptacleObject {t.id}"
    for r in world.receptacles:
        if r.openable:
            yield f"openable {r.id}"
    yield f"atLocation agent1 {world.start}"
    for afford in _AFFORDANCES:
        for t in world.things:
            if t.type in common.affords[afford.capitalize()]:
                yield f"{afford} {t.id}"
    for t in world.things:
        if t.receptacle is not None:
            yield f"inReceptacle {t.id} {t.receptacle.id}"
    for r in world.receptacles:
        yield f"receptacleAtLocation {r.id} {r.location}"
    for t in world.things:
        yield f"objectAtLocation {t.id} {t.location}"
