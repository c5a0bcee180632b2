"""Generated games rewritten into the wording of the released data, before alfworld 0.4."""

import re
from dataclasses import replace

from milegpo_envs.alfworld.games import Game

SPELLINGS = (
    ("move {o} to {r}", "put {o} in/on {r}"),
    ("You move the {o.name} to the {r.name}.", "You put the {o.name} in/on the {r.name}."),
    ("You arrive at {r.name}.", "You arrive at {lend.name}."),
)


def in_old_words(game: Game) -> Game:
    """The game as json_2.1.1 would spell it: "put X in/on Y", and no `help`."""
    grammar = game.grammar
    for new, old in SPELLINGS:
        assert new in grammar
        grammar = grammar.replace(new, old)
    grammar = grammar.split("action help {")[0]
    domain = re.sub(r"\(:action help.*", ")", game.pddl_domain, flags=re.DOTALL)
    return replace(game, id=f"{game.id}/old", grammar=grammar, pddl_domain=domain)


def with_plain_help(game: Game) -> Game:
    """The game with its help text as a plain string, as json_2.1.2 has it."""
    plain = (
        'action help {\n    template :: "help";\n'
        '    feedback :: "\nAvailable commands:\n  look\n";\n}\n'
    )
    grammar = game.grammar.split("action help {")[0] + plain
    return replace(game, id=f"{game.id}/plain", grammar=grammar)
