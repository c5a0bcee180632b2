"""Games in the wording of released data, before alfworld 0.4.2, for comparisons.

The data of 0.3 says "put X in/on Y" and knows no `help`; that of 0.4.0 holds its help text as a
plain string.
"""

import re
from dataclasses import replace

from milegpo_envs.alfworld.engine import UnsupportedGame
from milegpo_envs.alfworld.games import Game

_SPELLINGS = (
    ("move {o} to {r}", "put {o} in/on {r}"),
    ("You move the {o.name} to the {r.name}.", "You put the {o.name} in/on the {r.name}."),
    ("You arrive at {r.name}.", "You arrive at {lend.name}."),
)
_HELP = "action help {"
_PLAIN_HELP = (
    _HELP + '\n    template :: "help";\n    feedback :: "\nAvailable commands:\n  look\n";\n}\n'
)


def in_old_words(game: Game) -> Game:
    """The game as json_2.1.1 would spell it: "put X in/on Y", and no `help`."""
    grammar = _without_help(game)
    for new, old in _SPELLINGS:
        if new not in grammar:
            raise UnsupportedGame(f"{game.id} is not in the wording of the wheel: no {new!r}.")
        grammar = grammar.replace(new, old)
    domain = re.sub(r"\(:action help.*", ")", game.pddl_domain, flags=re.DOTALL)
    return replace(game, id=f"{game.id}/old", grammar=grammar, pddl_domain=domain)


def with_plain_help(game: Game) -> Game:
    """The game with its help text as a plain string, as json_2.1.2 has it."""
    return replace(game, id=f"{game.id}/plain", grammar=_without_help(game) + _PLAIN_HELP)


def _without_help(game: Game) -> str:
    """The grammar up to its help action, which comes last."""
    return game.grammar.split(_HELP)[0]
