"""Measure the three ALFWorld engines side by side: the same games, the same commands.

Then whole environments, pools of them in this and in other processes, and memory.

python -m scripts.bench alfworld
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import gymnasium as gym

from milegpo_envs.alfworld import bench_pools, games
from milegpo_envs.alfworld.compiled import compiled
from milegpo_envs.alfworld.engine import Engine
from milegpo_envs.alfworld.fast_engine import FastEngine
from milegpo_envs.draws import Draws
from milegpo_envs.reports import Advance, Cell, Report, Stopwatch

HELP = "the three ALFWorld engines side by side"

WALK = 50  # steps
BATCH = 128  # environments
MEMORY_GAMES = 40  # more than textworld keeps translated


def add_options(parser: argparse.ArgumentParser) -> None:
    """How much to measure."""
    parser.add_argument("--games", type=int, default=3, help="number of games (default 3)")
    parser.add_argument("--size", choices=games.SIZES, default="full")
    parser.add_argument(
        "--shipped-steps", type=int, default=20, help="steps a game of the slowest engine"
    )
    parser.add_argument("--resets", type=int, default=1000, help="resets whose memory is measured")
    parser.add_argument(
        "--textworld-resets", type=int, default=200, help="the same for textworld (0.1 s each)"
    )
    parser.add_argument(
        "--workers", type=int, nargs="*", default=[1, 2], help="processes of the pools measured"
    )


def pools(size: str, ids: Sequence[str], workers: Sequence[int]) -> list[tuple[Cell, ...]]:
    """Steps a second of pools, in this process where the engine can, and in others."""
    plans: list[tuple[str, int, int | None]] = [("fast", WALK, None)]
    plans += [(engine, n, w) for engine, n in (("fast", WALK), ("textworld", 10)) for w in workers]
    rows: list[tuple[Cell, ...]] = []
    for engine, steps, count in plans:
        rate = bench_pools.steps_a_second(engine, size, ids, steps, count)
        where = "in this process" if count is None else f"of {count} process(es)"
        rows.append((f"{engine}, pool {where}", *(None,) * 6, rate))
    return rows


@dataclass(frozen=True)
class Costs:
    """Mean CPU milliseconds of one engine."""

    load: float
    reset: float
    step: float

    @property
    def batch(self) -> float:
        """CPU seconds for a reset and 50 steps of 128 environments, games loaded."""
        return BATCH * (self.reset + WALK * self.step) / 1000


def run(options: argparse.Namespace, advance: Advance) -> Report:
    """Cost of load, reset and step of each engine, and of a batch of environments."""
    # Importing textworld takes a second, and no help text needs it.
    from milegpo_envs.alfworld.textworld_engine import ShippedTextWorldEngine, TextWorldEngine

    kinds = games.TASK_TYPES
    ids = [
        games.task_ids("train", options.size, [kinds[i % len(kinds)]])[i // len(kinds)]
        for i in range(options.games)
    ]
    made = [games.generate(id) for id in ids]
    spare = games.generate(games.task_ids("valid_seen", "small")[0])
    TextWorldEngine(spare).close()  # imports and the first library are no game's cost
    shipped = costs(ShippedTextWorldEngine, made, options.shipped_steps)
    memoised = costs(TextWorldEngine, made, WALK)
    fast = costs(lambda game: FastEngine(compiled.__wrapped__(game)), made, WALK, repeats=40)
    rows: list[tuple[Cell, ...]] = [
        (name, c.load, c.reset, c.step, shipped.step / c.step, batch, None, None)
        for name, c, batch in (
            ("textworld as shipped", shipped, shipped.batch),
            ("textworld memoised", memoised, memoised.batch),
            ("fast", fast, batch_of_engines(made)),
        )
    ]
    step, batch = batch_of_environments(ids, options.size)
    several = games.task_ids("train", options.size)[:MEMORY_GAMES]
    for engine, its_step, its_batch, resets in (
        ("textworld", None, None, options.textworld_resets),
        ("fast", step, batch, options.resets),
    ):
        more = bench_pools.grown(engine, options.size, several, resets)
        faster = None if its_step is None else shipped.step / its_step
        name = f"{engine}, whole environment"
        rows.append((name, None, None, its_step, faster, its_batch, more, None))
    rows += pools(options.size, several, options.workers)
    return Report(
        title=f"ALFWorld: {options.games} {options.size} game(s), one core, CPU time",
        columns=(
            "engine",
            "load ms",
            "reset ms",
            "step ms",
            "times faster a step",
            f"{BATCH} x {WALK} steps, s",
            "MB grown",
            "steps/s",
        ),
        rows=tuple(rows),
        notes=(
            f"Steps measured a game: {options.shipped_steps} as shipped, {WALK} memoised, "
            f"{40 * WALK} fast. A step includes admissible commands, win and facts.",
            f"{BATCH} x {WALK}: a reset and {WALK} steps of {BATCH} environments, games loaded; "
            "computed from the columns before it for textworld, run for the fast engine.",
            "The whole environment adds state ids, info and gym.make's wrappers.",
            f"MB grown: by {options.resets:,} resets to {MEMORY_GAMES} games ("
            f"{options.textworld_resets:,} for textworld), each game met once before.",
            f"Pools: {bench_pools.SLOTS} environments with prompts, steps a second by the clock.",
        ),
    )


def costs(
    make: Callable[[games.Game], Engine], made: Sequence[games.Game], steps: int, repeats: int = 1
) -> Costs:
    """Load every game, and play the beginning of its walk as often as told."""
    load, reset, step = Stopwatch(), Stopwatch(), Stopwatch()
    for game in made:
        walk = random_walk(game)[:steps]
        with load:
            engine = make(game)
        for _ in range(repeats):
            with reset:
                engine.reset()
            with step:
                for command in walk:
                    engine.step(command)
        engine.close()
    plays = len(made) * repeats
    return Costs(
        load=1000 * load.seconds / len(made),
        reset=1000 * reset.seconds / plays,
        step=1000 * step.seconds / (plays * steps),
    )


def random_walk(game: games.Game) -> list[str]:
    """Fifty admissible commands, the same for every engine."""
    engine, draws = FastEngine(compiled(game)), Draws(f"bench/{game.id}")
    now = engine.reset()
    out = []
    for _ in range(WALK):
        out.append(draws.choice(now.admissible_commands))
        now = engine.step(out[-1])
    return out


def batch_of_engines(made: Sequence[games.Game]) -> float:
    """CPU seconds for the batch on the fast engine alone."""
    walks = [random_walk(game) for game in made]
    engines = [FastEngine(compiled(made[i % len(made)])) for i in range(BATCH)]
    watch = Stopwatch()
    with watch:
        for engine in engines:
            engine.reset()
        for t in range(WALK):
            for i, engine in enumerate(engines):
                engine.step(walks[i % len(made)][t])
    return watch.seconds


def batch_of_environments(ids: Sequence[str], size: str) -> tuple[float, float]:
    """CPU milliseconds a step, and seconds for the batch, of whole environments on random walks.

    Every environment draws its own commands, so few states are met twice.
    """
    envs = [gym.make("milegpo/ALFWorld-v0", size=size) for _ in range(BATCH)]
    draws = Draws("bench/environments")
    reset, step = Stopwatch(), Stopwatch()
    with reset:
        infos = [env.reset(options={"task": ids[i % len(ids)]})[1] for i, env in enumerate(envs)]
    for _ in range(WALK):
        chosen = [draws.choice(info["admissible_actions"]) for info in infos]
        with step:
            infos = [env.step(c)[4] for env, c in zip(envs, chosen, strict=True)]
    return 1000 * step.seconds / (BATCH * WALK), reset.seconds + step.seconds
