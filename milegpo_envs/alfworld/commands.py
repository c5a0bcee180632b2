"""Reading a player's command leniently: `actions="resolve"`.

A command that is not admissible as it stands may still mean exactly one that is: with another verb
("put the mug on desk 1"), with a number spelled or glued ("fridge one", "fridge1"), with an
article, or without the number where only one thing fits. What fits two admissible commands fits
none.
"""

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass

Words = tuple[str, ...]

NOT_TEXT = "not text"
NOT_ADMISSIBLE = "not admissible"
AMBIGUOUS = "ambiguous"

_LONGEST = 200  # characters; no command comes near

_NUMBERS = {
    word: str(number)
    for number, word in enumerate(
        ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"), start=1
    )
}
_ARTICLES = frozenset(("the", "a", "an", "my"))
_PREPOSITIONS = frozenset(("in", "on", "in/on", "into", "onto", "inside", "to", "at"))
# Ways to begin a command, longest first where one begins another; the verb it stands for.
_VERBS: tuple[tuple[Words, str], ...] = (
    (("pick", "up"), "take"),
    (("look", "at"), "examine"),
    (("look", "around"), "look"),
    (("turn", "on"), "use"),
    (("switch", "on"), "use"),
    (("go", "to"), "go"),
    (("walk", "to"), "go"),
    (("move", "to"), "go"),
    *(((word,), "go") for word in ("go", "goto", "walk", "visit", "approach")),
    *(((word,), "take") for word in ("take", "grab", "get", "pick", "remove")),
    *(((word,), "put") for word in ("put", "move", "place", "insert", "drop", "leave")),
    *(((word,), "use") for word in ("use", "toggle", "activate")),
    *(((word,), "examine") for word in ("examine", "inspect", "check")),
    *(((word,), "clean") for word in ("clean", "wash", "rinse")),
    *(((word,), "heat") for word in ("heat", "warm", "microwave")),
    *(((word,), "cool") for word in ("cool", "chill")),
    *(((word,), "slice") for word in ("slice", "cut")),
    *(((word,), "inventory") for word in ("inventory", "i")),
)


@dataclass(frozen=True)
class Read:
    """The admissible command that an action means, or why there is none."""

    command: str | None
    problem: str | None = None


def read_strict(action: object, admissible: Sequence[str]) -> Read:
    """Take only what equals an admissible command, blanks around it aside."""
    if not isinstance(action, str):
        return Read(None, NOT_TEXT)
    command = action.strip()
    return Read(command) if command in admissible else Read(None, NOT_ADMISSIBLE)


def read_leniently(action: object, admissible: Sequence[str]) -> Read:
    """Take what equals an admissible command, or else what means exactly one."""
    exact = read_strict(action, admissible)
    if exact.command is not None or not isinstance(action, str) or len(action) > _LONGEST:
        return exact
    said = _words(action)
    fitting = [command for command in admissible if _words(command) == said]
    if not fitting and said and not any(map(str.isdigit, said)):
        fitting = [command for command in admissible if _without_numbers(command) == said]
    if len(fitting) == 1:
        return Read(fitting[0])
    return Read(None, AMBIGUOUS if fitting else NOT_ADMISSIBLE)


@functools.lru_cache(maxsize=4096)
def _words(command: str) -> Words:
    """Normal form: the verb it stands for, no articles, digits, one preposition of putting."""
    apart = re.sub(r"(?<=[a-z])(?=\d)", " ", command.lower())
    raw = [word.strip(".,!?\"'`") for word in apart.split()]
    words = tuple(_NUMBERS.get(word, word) for word in raw if word and word not in _ARTICLES)
    for beginning, verb in _VERBS:
        rest = words[len(beginning) :]
        if words[: len(beginning)] == beginning:
            if verb == "put":
                rest = tuple("to" if word in _PREPOSITIONS else word for word in rest)
            return (verb, *rest)
    return words


@functools.lru_cache(maxsize=4096)
def _without_numbers(command: str) -> Words:
    return tuple(word for word in _words(command) if not word.isdigit())
