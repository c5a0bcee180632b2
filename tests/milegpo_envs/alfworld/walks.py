"""Walks through games for tests: expert moves, random ones, and commands that are none."""

from collections.abc import Iterator

from milegpo_envs.alfworld.draws import Draws
from milegpo_envs.alfworld.engine import Engine, EngineStep
from milegpo_envs.alfworld.experts import SearchingExpert

NONSENSE = ("", "go to nowhere 1", "LOOK", "take", "open fridge 9", "\x00", "examine", "go to")
ACTING = ("open", "close", "take", "move", "put", "clean", "heat", "cool", "use", "slice")


def walk(
    engines: list[Engine], name: str, steps: int, expert: float = 0.4
) -> Iterator[tuple[str, list[EngineStep]]]:
    """Send the same commands to all engines, past the end of the game; yields command and answers.

    The draws are named by a text. Commands that change something are preferred among random ones.
    """
    draws = Draws(name)
    now = [engine.reset() for engine in engines]
    yield "", now
    player = SearchingExpert()
    player.reset(now[0].feedback, now[0].admissible_commands)
    for _ in range(steps):
        admissible = now[0].admissible_commands
        advised = player.act(now[0].feedback, admissible)
        acting = [c for c in admissible if c.split()[0] in ACTING]
        if draws.chance(expert):
            command = advised
        elif draws.chance(0.05):
            command = draws.choice(NONSENSE)
        else:
            command = draws.choice(acting if acting and draws.chance(0.5) else admissible)
        now = [engine.step(command) for engine in engines]
        yield command, now
