"""What every engine of an ALFWorld game offers, and the facts it answers with."""

from dataclasses import dataclass
from typing import Protocol

from milegpo_envs.errors import EnvError

Fact = tuple[str, ...]
"""A ground atom, lower case: ("inreceptacle", "apple_bar__plus_00...", "fridge_bar_...")."""

Action = tuple[str, str, str]
"""The fast engine's commands: (verb, object, receptacle), empty where the verb has none."""

# The predicates that an action can change and that tell situations apart. Left out are `checked`
# and `holdsany`, which say nothing new, and `ison`, which no precondition, goal or text reads and
# which textworld mirrors wrongly.
CHANGING = frozenset(
    (
        "atlocation",
        "holds",
        "opened",
        "inreceptacle",
        "objectatlocation",
        "isclean",
        "ishot",
        "iscool",
        "istoggled",
        "issliced",
    )
)

NOTHING_HAPPENS = "Nothing happens."


class UnsupportedGame(EnvError):
    """A domain, grammar or goal that the fast engine does not know; textworld plays such a game."""


@dataclass(frozen=True, slots=True)
class EngineStep:
    """What a game shows after a reset or a command."""

    feedback: str
    admissible_commands: tuple[str, ...]  # sorted
    won: bool
    facts: frozenset[Fact]  # the changing ones


class Engine(Protocol):
    """A game being played.

    A command that is not admissible answers `NOTHING_HAPPENS` and changes no fact.
    """

    def reset(self) -> EngineStep:
        """Start over."""

    def step(self, command: str) -> EngineStep:
        """Send one command; surrounding blanks do not count."""

    def close(self) -> None:
        """Free what the engine holds; it cannot be used afterwards."""
