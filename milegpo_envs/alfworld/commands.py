"""Reading a player's command leniently: `actions="resolve"`.

A command that is not admissible as it stands may still mean exactly one that is: with another verb
("put the mug on desk 1"), other prepositions, an article, a number spelled or glued ("fridge one",
"fridge1"), or without a number where only one thing fits. What fits two admissible
commands fits none, and what is left out or written otherwise is never guessed beyond that: other
things, other numbers, or "turn off" for a lamp that can only be turned on, mean nothing.
"""

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Words = tuple[str, ...]

NOT_TEXT = "not text"
NOT_ADMISSIBLE = "not admissible"
AMBIGUOUS = "ambiguous"

_LONGEST = 200  # characters; no command comes near

_UNITS = (
    *("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"),
    *("twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_NUMBERS = {word: number for number, word in enumerate(_UNITS, start=1)} | {
    word: number for number, word in zip(range(20, 100, 10), _TENS, strict=True)
}
_ARTICLES = frozenset(("the", "a", "an", "my", "some"))
# Ways to begin a command, longest first where one begins another; the verb it stands for.
_VERBS: tuple[tuple[Words, str], ...] = (
    (("check", "inventory"), "inventory"),
    (("pick", "up"), "take"),
    (("put", "down"), "put"),
    (("set", "down"), "put"),
    (("look", "at"), "examine"),
    (("look", "around"), "look"),
    *(((word, "on"), "use") for word in ("turn", "switch")),
    *(((word, "to"), "go") for word in ("go", "walk", "move", "head", "navigate", "return")),
    *(((word,), "go") for word in ("go", "goto", "walk", "visit", "approach")),
    *(((word,), "take") for word in ("take", "grab", "get", "pick", "remove")),
    *(((word,), "put") for word in ("put", "move", "place", "insert", "drop", "leave", "set")),
    *(((word,), "use") for word in ("use", "toggle", "activate")),
    *(((word,), "examine") for word in ("examine", "inspect", "check")),
    *(((word,), "clean") for word in ("clean", "wash", "rinse")),
    *(((word,), "heat") for word in ("heat", "warm", "microwave")),
    *(((word,), "cool") for word in ("cool", "chill")),
    *(((word,), "slice") for word in ("slice", "cut")),
    *(((word,), "close") for word in ("close", "shut")),
    *(((word,), "inventory") for word in ("inventory", "i")),
)
_SWITCHING = frozenset(("turn", "switch"))  # "on" may also follow the object
_PUTTING = frozenset(("in", "on", "in/on", "into", "onto", "inside", "to", "at", "upon", "down"))
_TAKING = frozenset(("from", "off", "out", "of", "up"))
_PROCESSING = frozenset(("with", "using", "in", "at", "on", "by", "inside", "under"))
# The prepositions of a verb, all of which mean its first one.
_PREPOSITIONS: Mapping[str, tuple[str, frozenset[str]]] = {
    "put": ("to", _PUTTING),
    "take": ("from", _TAKING),
    **dict.fromkeys(("clean", "heat", "cool"), ("with", _PROCESSING)),
    "slice": ("with", frozenset(("with", "using", "by"))),
}


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
    if not said:
        return exact
    fitting = [command for command in admissible if _words(command) == said]
    if not fitting:
        fitting = [command for command in admissible if _shortened(_words(command), said)]
    if len(fitting) == 1:
        return Read(fitting[0])
    return Read(None, AMBIGUOUS if fitting else NOT_ADMISSIBLE)


@functools.lru_cache(maxsize=4096)
def _words(command: str) -> Words:
    """Normal form: the verb it stands for, its one preposition, digits, no articles."""
    apart = re.sub(r"(?<=[a-z])[-_]?(?=\d)|(?<=[a-z])-(?=[a-z])", " ", command.lower())
    raw = [word.strip(".,!?;:\"'`#()") for word in apart.split()]
    words = _in_digits([word for word in raw if word and word not in _ARTICLES])
    if len(words) > 2 and words[0] in _SWITCHING and words[-1] == "on":
        words = (words[0], "on", *words[1:-1])
    for beginning, verb in _VERBS:
        if words[: len(beginning)] == beginning:
            return (verb, *_with_one_preposition(verb, words[len(beginning) :]))
    return words


def _in_digits(words: Sequence[str]) -> Words:
    """Write numbers in digits: "two", "02", "twenty one"."""
    out: list[str] = []
    tens = False  # whether the last word was a number word that a unit may complete
    for word in words:
        number = _NUMBERS.get(word, 0)
        if tens and 0 < number < 10:
            out[-1] = str(int(out[-1]) + number)
        elif number:
            out.append(str(number))
        else:
            out.append(word.lstrip("0") or word if word.isascii() and word.isdigit() else word)
        tens = number >= 20
    return tuple(out)


def _with_one_preposition(verb: str, words: Words) -> Words:
    """Say every preposition of a verb in one way, and two in a row ("out of") as one."""
    if verb not in _PREPOSITIONS:
        return words
    usual, others = _PREPOSITIONS[verb]
    said = [usual if word in others else word for word in words]
    return tuple(
        word
        for before, word in zip(["", *said], said, strict=False)
        if (before, word) != (usual, usual)
    )


def _shortened(full: Words, said: Words) -> bool:
    """Whether words are a command's with some of its numbers left out."""
    left = list(reversed(said))
    for word in full:
        if left and left[-1] == word:
            left.pop()
        elif not word.isdigit():
            return False
    return not left
