"""Reading an action: `search[words]` or `click[target]`.

The name counts with its case, the argument without; text after the last bracket is ignored, text
before the name is not. This is how the official engine reads, in both modes.
"""

from dataclasses import dataclass

ANY_SEARCH = "search[<your query>]"
"""Stands for every query in a list of admissible actions."""


@dataclass(frozen=True, slots=True)
class Search:
    """Words to look for, lower-cased and split at each blank; some may be empty."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Click:
    """Something on the page to click, lower-cased."""

    target: str


Move = Search | Click


def read_action(action: str) -> Move | None:
    """Read an action; None if it is neither a search nor a click."""
    # What the pattern (.+)\[(.+)\] finds from the start, in linear time: the last closing bracket
    # of the first line, and the last opening one before it that leaves an argument and a name.
    line, _, _ = action.partition("\n")
    closing = line.rfind("]")
    opening = line.rfind("[", 1, max(closing - 1, 0))
    if opening == -1:
        return None
    name, argument = line[:opening], line[opening + 1 : closing].lower()
    if name == "search":
        return Search(tuple(argument.split(" ")))
    return Click(argument) if name == "click" else None


def click(target: str) -> str:
    """Write the action that clicks a target."""
    return f"click[{target}]"


def can_be_named(target: str) -> bool:
    """Whether an action can name a target: not one with an opening bracket or a line break."""
    return target != "" and "[" not in target and "\n" not in target
