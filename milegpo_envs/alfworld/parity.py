"""The fast engine against textworld, step by step: texts, commands, wins and facts must be equal.

    python -m scripts.doctor parity alfworld --data FOLDER

Generated games of all six types, in small and full rooms and in the wording of every data release,
and every game below a folder, are walked through on two engines at a time: by an expert, at random,
with commands that are none, and on past the end of a game. Two comparisons: the fast engine with
textworld memoised, for many states, and with textworld as alfworld ships it, for fewer.

The first difference ends a walk, since all that follows may follow from it. Left out are the facts
that no step asks for (see `engine.CHANGING`).
"""

import argparse
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from milegpo_envs.alfworld import games
from milegpo_envs.alfworld.compiled import compiled
from milegpo_envs.alfworld.engine import Engine, EngineStep, UnsupportedGame
from milegpo_envs.alfworld.experts import SearchingExpert, UnreadableTask
from milegpo_envs.alfworld.fast_engine import FastEngine
from milegpo_envs.alfworld.folder import load_game
from milegpo_envs.alfworld.games import Game
from milegpo_envs.alfworld.index import GAME_FILE
from milegpo_envs.alfworld.old_wordings import in_old_words, with_plain_help
from milegpo_envs.alfworld.textworld_engine import ShippedTextWorldEngine, TextWorldEngine
from milegpo_envs.draws import Draws
from milegpo_envs.errors import DataMissing
from milegpo_envs.reports import Advance, Report

HELP = "ALFWorld's fast engine against textworld"

NONSENSE = ("", "go to nowhere 1", "LOOK", "take", "open fridge 9", "\x00", "examine", "go to")
ACTING = ("open", "close", "take", "move", "put", "clean", "heat", "cool", "use", "slice")
LONGEST = 49  # steps of a walk; its start is one more state
EXPERT = (0.4, 1.0, 0.0)  # share of expert moves in a game's first, second, third walk, and so on
FEW = 12  # generated games for the slow engine: each type in small and full rooms
SHOWN = 5  # mismatches written out


@dataclass(frozen=True)
class Mismatch:
    """The first difference of a walk: what textworld answered, and what the fast engine did."""

    game: str
    actions: tuple[str, ...]
    field: str
    expected: object
    found: object

    def __str__(self) -> str:
        """Say it over four lines."""
        return (
            f"{self.game}: {self.field} differs after {list(self.actions)}\n"
            f"  textworld: {self.expected!r}\n"
            f"  fast:      {self.found!r}"
        )


@dataclass(frozen=True)
class Amount:
    """How far a set of games is walked through: `games * walks * (steps + 1)` states."""

    walks: int
    steps: int

    @classmethod
    def of(cls, states: int, games: int) -> "Amount":
        """Reach at least so many states with every game."""
        walks = max(1, -(-states // (games * (LONGEST + 1))))
        return cls(walks, max(1, -(-states // (games * walks)) - 1))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--games", type=int, default=200, help="generated games (default %(default)s)"
    )
    parser.add_argument(
        "--states", type=int, default=20_000, help="against textworld memoised (default 20000)"
    )
    parser.add_argument(
        *("--shipped-states", "--shipped_states"),
        type=int,
        default=500,
        help="against textworld as shipped, at 0.1 s each (default 500; 0 leaves it out)",
    )
    parser.add_argument("--data", type=Path, help="every game below this folder is compared too")
    parser.add_argument("--seed", type=int, default=0, help="of the games and walks (default 0)")


def run(options: argparse.Namespace, advance: Advance) -> Report:
    """Compare, and report states and mismatches by engine and kind of game."""
    made = generated_games(options.games, options.seed)
    real, left_out = ({}, []) if options.data is None else folder_games(options.data)
    few = dict(itertools.islice(made.items(), FEW))
    rows: list[tuple[str | float | None, ...]] = []
    found: list[Mismatch] = []
    for name, make, states, chosen in (
        ("textworld memoised", TextWorldEngine, options.states, made | real),
        ("textworld as shipped", ShippedTextWorldEngine, options.shipped_states, few | real),
    ):
        if states < 1 or not chosen:
            continue
        engine = make(next(iter(chosen)))
        amount = Amount.of(states, len(chosen))
        tally = {kind: [0, 0, 0] for kind in dict.fromkeys(chosen.values())}
        total, done = len(chosen) * amount.walks * (amount.steps + 1), 0
        for game, kind in chosen.items():
            engine.load(game)
            reached, mismatches = compare(game, engine, amount, options.seed)
            found += mismatches
            done += amount.walks * (amount.steps + 1)
            counts = (1, reached, len(mismatches))
            tally[kind] = [a + b for a, b in zip(tally[kind], counts, strict=True)]
            advance(done, total, f"fast and {name}")
        engine.close()
        rows += [(name, kind, *counts) for kind, counts in tally.items()]
    return Report(
        title="ALFWorld: the fast engine against textworld",
        columns=("compared with", "games of", "games", "states", "mismatches"),
        rows=tuple(rows),
        notes=(
            f"{len(made)} generated games"
            + (f", {len(real)} from {options.data}. " if options.data else ". ")
            + "Compared in every state: text, admissible commands, won, changing facts.",
            *left_out,
            *map(str, found[:SHOWN]),
            *([f"... and {len(found) - SHOWN} more mismatches."] if len(found) > SHOWN else []),
        ),
    )


def generated_games(count: int, seed: int) -> dict[Game, str]:
    """Games and their kind: types, sizes, splits and wordings in turn."""
    rewrites = (None, None, None, in_old_words, with_plain_help)
    out: dict[Game, str] = {}
    for k in range(count):
        task_type = games.TASK_TYPES[k % 6]
        size = games.SIZES[k // 6 % 2]
        ids = games.task_ids(games.SPLITS[k // 12 % 3], size, [task_type])
        game = games.generate(ids[(k // 36 + 7 * seed) % len(ids)])
        rewrite = rewrites[k % 5]
        out[game if rewrite is None else rewrite(game)] = f"{size} rooms"
    return out


def folder_games(data: Path) -> tuple[dict[Game, str], list[str]]:
    """Every game below a folder, and why others are left out.

    Raises:
        DataMissing: there is none.
    """
    out: dict[Game, str] = {}
    left_out: list[str] = []
    for file in sorted(data.rglob(GAME_FILE)):
        try:
            game = load_game(data, str(file.parent.relative_to(data)))
            compiled(game)
        except (DataMissing, UnsupportedGame) as error:
            left_out.append(f"Left out, as the environment does: {file.parent}: {error}")
            continue
        out[game] = "the folder"
    if not out:
        raise DataMissing(f"No ALFWorld game below {data} that the fast engine plays. {left_out}")
    return out, left_out


def compare(
    game: Game, expected: Engine, amount: Amount, seed: int = 0
) -> tuple[int, list[Mismatch]]:
    """Walk through a game on an engine that has loaded it and on the fast one.

    Returns:
        The number of states compared, and the first mismatch of every walk that has one.
    """
    states, mismatches = 0, []
    for number in range(amount.walks):
        actions: list[str] = []
        engines = [expected, FastEngine(compiled(game))]
        share = EXPERT[number % len(EXPERT)]
        for action, (right, other) in walk(
            engines, f"{seed}/{game.id}/{number}", amount.steps, share
        ):
            actions.append(action)
            states += 1
            if right != other:
                mismatches.append(_mismatch(game, actions[1:], right, other))
                break
    return states, mismatches


def _mismatch(game: Game, actions: Sequence[str], right: EngineStep, other: EngineStep) -> Mismatch:
    """Say what differs: of texts and wins both values, of lists and facts what either has alone."""
    for name in ("feedback", "won"):
        pair = getattr(right, name), getattr(other, name)
        if pair[0] != pair[1]:
            return Mismatch(game.id, tuple(actions), name, *pair)
    name = "admissible_commands"
    if right.admissible_commands == other.admissible_commands:
        name = "facts"
    one, two = getattr(right, name), getattr(other, name)
    only = [sorted(set(a) - set(b)) for a, b in ((one, two), (two, one))]
    if only == [[], []]:  # the same commands in another order, or one of them twice
        only = [list(one), list(two)]
    return Mismatch(game.id, tuple(actions), name, *only)


def walk(
    engines: Sequence[Engine], name: str, steps: int, expert: float = 0.4
) -> Iterator[tuple[str, list[EngineStep]]]:
    """Send the same commands to all engines, past the end of the game; yields command and answers.

    The draws are named by a text. `expert` is the share of a searching expert's moves; commands
    that change something are preferred among random ones.
    """
    draws = Draws(name)
    now = [engine.reset() for engine in engines]
    yield "", now
    player = SearchingExpert()
    try:
        player.reset(now[0].feedback, now[0].admissible_commands)
    except UnreadableTask:  # a goal in words of its own: everything is random
        expert = 0.0
    for _ in range(steps):
        admissible = now[0].admissible_commands
        acting = [c for c in admissible if c.split()[0] in ACTING]
        advised = player.act(now[0].feedback, admissible) if expert else "look"
        if draws.chance(expert):
            command = advised
        elif draws.chance(0.05):
            command = draws.choice(NONSENSE)
        else:
            command = draws.choice(acting if acting and draws.chance(0.5) else admissible)
        now = [engine.step(command) for engine in engines]
        yield command, now
