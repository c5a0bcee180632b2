"""Canonical states of ALFWorld: what a state id hashes, and how a state is shown.

    facts         the changing facts, with internal ids: equal exactly where the game can go on
                  equally (default)
    observation   the last feedback: the anchor of GiGPO's code (arXiv:2505.10978), which confuses
                  many situations
    graphgpo      feedback, location, held object with its states, objects moved so far, admissible
                  commands

All hold the task id, as facts of different games can look alike. All are JSON-able. The last two
are shown as they are hashed. A state of facts is hashed whole, and shown as the facts added to and
removed from those that the task begins with: the task id stands for these, so both say the same.
"""

import functools
from bisect import bisect_left
from collections.abc import Callable, Mapping

from milegpo_envs.alfworld.compiled import Things
from milegpo_envs.alfworld.engine import EngineStep, Fact
from milegpo_envs.state import canonical_json, hash_text, state_id

Canonical = Callable[[str, EngineStep, EngineStep], dict[str, object]]
"""From the task id, the first and the present answer of the engine to the canonical state."""

_STATES = ("isclean", "ishot", "iscool", "istoggled", "issliced")


def name_state(
    canonical: Canonical, task_id: str, first: EngineStep, now: EngineStep, things: Things
) -> tuple[str, dict[str, object]]:
    """The id and the readable state; a state of facts that was met lately is not written again.

    `things` says what internal ids are called in a readable state of facts.
    """
    if canonical is facts:
        name, added, removed = _named_facts(task_id, first.facts, now.facts, things)
        return name, {"task": task_id, "added": list(added), "removed": list(removed)}
    state = canonical(task_id, first, now)
    return state_id(state), state


@functools.lru_cache(maxsize=1024)
def _named_facts(
    task_id: str, first: frozenset[Fact], now: frozenset[Fact], things: Things
) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """The id, and what was added to the first state and removed from it.

    What the id hashes is the text of the first state, kept encoded line by line, with the few lines
    that differ taken out and put in: quicker than sorting and encoding all of them again.
    """
    added, removed = now - first, first - now
    lines, encoded = map(list, _first_lines(first))
    for fact in removed:
        at = bisect_left(lines, " ".join(fact))
        del lines[at], encoded[at]
    for fact in added:
        line = " ".join(fact)
        at = bisect_left(lines, line)
        lines.insert(at, line)
        encoded.insert(at, canonical_json(line))
    text = f'{{"facts":[{",".join(encoded)}],"task":{canonical_json(task_id)}}}'
    return (
        hash_text(text),
        tuple(sorted([_said(fact, things.names) for fact in added])),
        tuple(sorted([_said(fact, things.names) for fact in removed])),
    )


@functools.lru_cache(maxsize=256)
def _first_lines(first: frozenset[Fact]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """A task's first facts, sorted: plain, and as JSON."""
    lines = _lines(first)
    return tuple(lines), tuple(map(canonical_json, lines))


def _said(fact: Fact, names: Mapping[str, str]) -> str:
    """A fact in the names of the texts: "inreceptacle potato 1, fridge 1"."""
    return f"{fact[0]} {', '.join([names.get(id, id).strip() for id in fact[1:]])}"


def _lines(known: frozenset[Fact]) -> list[str]:
    return sorted(map(" ".join, known))


def facts(task_id: str, first: EngineStep, now: EngineStep) -> dict[str, object]:
    """Every changing fact, as "predicate argument ..." in sorted order."""
    return {"task": task_id, "facts": _lines(now.facts)}


def observation(task_id: str, first: EngineStep, now: EngineStep) -> dict[str, object]:
    """The last feedback and nothing else."""
    return {"task": task_id, "feedback": now.feedback}


def graphgpo(task_id: str, first: EngineStep, now: EngineStep) -> dict[str, object]:
    """Feedback with the context that it leaves out.

    An object counts as moved while it is in a receptacle that it did not start in.
    """
    where = [fact[2] for fact in now.facts if fact[0] == "atlocation"]
    held = [fact[2] for fact in now.facts if fact[0] == "holds"]
    moved = [fact[1:] for fact in now.facts - first.facts if fact[0] == "inreceptacle"]
    return {
        "task": task_id,
        "feedback": now.feedback,
        "location": where[0],
        "held": [[object, [s for s in _STATES if (s, object) in now.facts]] for object in held],
        "moved": sorted(map(" ".join, moved)),
        "admissible": sorted(now.admissible_commands),
    }


CANONICAL: Mapping[str, Canonical] = {
    "facts": facts,
    "observation": observation,
    "graphgpo": graphgpo,
}
