"""Reading PDDL problems: nested lists of lower-case words, typed lists, sections."""

import re
from dataclasses import dataclass
from typing import TypeAlias

from milegpo_envs.alfworld.engine import Fact, UnsupportedGame

Tree: TypeAlias = "str | list[Tree]"
"""A parenthesised expression: a word, or a list of trees."""

_COMMENT = re.compile(r";[^\n]*")
_TOKEN = re.compile(r"[()]|[^\s()]+")
_FACT = re.compile(r"\(([^()]*)\)")
_INIT = re.compile(r"\(:init\b((?:\s*\([^()]*\))*)\s*\)")


@dataclass(frozen=True)
class Problem:
    """Objects with their types, facts that hold at the start, and the goal formula."""

    objects: tuple[tuple[str, str], ...]
    init: tuple[Fact, ...]
    goal: Tree


def tokens(text: str) -> list[str]:
    """Parentheses and words, comments dropped, in lower case."""
    return _TOKEN.findall(_COMMENT.sub(" ", text).lower())


def parse(text: str) -> Tree:
    """The one expression in a text."""
    stack: list[list[Tree]] = [[]]
    for token in tokens(text):
        if token == "(":
            stack.append([])
        elif token == ")":
            done = stack.pop()
            if not stack:
                raise UnsupportedGame("The PDDL text closes more parentheses than it opens.")
            stack[-1].append(done)
        else:
            stack[-1].append(token)
    if len(stack) != 1 or len(stack[0]) != 1:
        raise UnsupportedGame("The PDDL text is not one closed expression.")
    return stack[0][0]


def typed(words: list[Tree]) -> list[tuple[str, str]]:
    """The (name, type) pairs of `a b - t c - u`."""
    out: list[tuple[str, str]] = []
    names: list[str] = []
    reading = iter(words)
    for word in reading:
        if not isinstance(word, str):
            raise UnsupportedGame(f"Not a typed list of names: {words!r:.200}")
        if word == "-":
            type = next(reading, "object")
            out += [(name, str(type)) for name in names]
            names = []
        else:
            names.append(word)
    return out + [(name, "object") for name in names]


def read_problem(text: str) -> Problem:
    """Read a problem, leaving out values of functions such as `(= (distance a b) 3)`.

    Raises:
        UnsupportedGame: for a text that is not a PDDL problem with objects, facts and a goal.
    """
    text = _COMMENT.sub(" ", text).lower()
    found = _INIT.search(text)
    init: list[Fact] = []
    if found:  # nearly all of the text: flat, so one pattern reads it faster than the parser
        init = [tuple(fact.split()) for fact in _FACT.findall(found.group(1))]
        text = text[: found.start()] + text[found.end() :]
    tree = parse(text)
    sections = {part[0]: part[1:] for part in tree[1:] if isinstance(part, list) and part}
    if not found:
        init = [tuple(map(str, fact)) for fact in sections.get(":init", ()) if fact[0] != "="]
    if ":objects" not in sections or not init or len(sections.get(":goal", ())) != 1:
        raise UnsupportedGame("The PDDL problem lacks objects, facts or a goal.")
    return Problem(tuple(typed(sections[":objects"])), tuple(init), sections[":goal"][0])
