"""Measure what the cheap parts cost, on one core.

    python -m scripts.bench alfworld            # textworld as shipped, memoised, and fast
    python -m scripts.bench alfworld --json -   # the same as one JSON object
    python -m scripts.bench estimators --long   # credit for an iteration, and for 1,000,000 steps

A subcommand is a function from its options to a `Report`, registered in `BENCHES`; printing is
shared. Nothing here trains or downloads. Times are CPU times of this process, so that neighbours on
the machine count little.
"""

import argparse
import json
import platform
import resource
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import blake2b
from importlib import import_module
from pathlib import Path

import gymnasium as gym
import numpy as np
from rich.console import Console
from rich.table import Table

import milegpo_envs  # noqa: F401  # registers the environments
from milegpo_algo import Rollouts, StepEstimator, estimator_names, make_estimator
from milegpo_algo.data.checks import intern
from milegpo_envs.alfworld import games
from milegpo_envs.alfworld.compiled import compiled
from milegpo_envs.alfworld.draws import Draws
from milegpo_envs.alfworld.engine import Engine
from milegpo_envs.alfworld.fast_engine import FastEngine


@dataclass(frozen=True)
class Report:
    """A table of numbers, and what to know about them. Cells of None were not measured."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | float | None, ...], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Bench:
    """A subcommand: its help, its options and what it runs."""

    help: str
    options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], Report]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one subcommand and print its report."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.bench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_subparsers(dest="what", required=True)
    for name, bench in BENCHES.items():
        one = what.add_parser(name, help=bench.help)
        one.add_argument("--json", metavar="FILE", help="write JSON to a file, or - for stdout")
        bench.options(one)
    options = parser.parse_args(arguments)
    report = BENCHES[options.what].run(options)
    if options.json is None:
        show(report)
        return
    machine = {"python": platform.python_version(), "platform": platform.platform()}
    text = json.dumps({**asdict(report), "machine": machine})
    if options.json == "-":
        print(text)
    else:
        Path(options.json).write_text(text, encoding="utf-8")


def show(report: Report) -> None:
    """Print a report as a table."""
    table = Table(title=report.title)
    for number, column in enumerate(report.columns):
        table.add_column(column, justify="right" if number else "left")
    for row in report.rows:
        table.add_row(*map(cell, row))
    console = Console()
    console.print(table)
    for note in report.notes:
        console.print(note, highlight=False)


def cell(value: str | float | None) -> str:
    """Three significant digits, thousands grouped."""
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return value or ""


class Stopwatch:
    """CPU seconds of this process spent inside `with stopwatch:`, added up."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __enter__(self) -> None:
        self._start = time.process_time()

    def __exit__(self, *_: object) -> None:
        self.seconds += time.process_time() - self._start


# alfworld: the same games and the same commands on each engine.

WALK = 50  # steps
BATCH = 128  # environments


def alfworld_options(parser: argparse.ArgumentParser) -> None:
    """How much to measure."""
    parser.add_argument("--games", type=int, default=3, help="number of games (default 3)")
    parser.add_argument("--size", choices=games.SIZES, default="full")
    parser.add_argument(
        "--shipped-steps", type=int, default=20, help="steps a game of the slowest engine"
    )


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


def alfworld(options: argparse.Namespace) -> Report:
    """Cost of load, reset and step of each engine, and of a batch of environments."""
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
    rows: list[tuple[str | float | None, ...]] = [
        (name, c.load, c.reset, c.step, shipped.step / c.step, batch)
        for name, c, batch in (
            ("textworld as shipped", shipped, shipped.batch),
            ("textworld memoised", memoised, memoised.batch),
            ("fast", fast, batch_of_engines(made)),
        )
    ]
    step, batch = batch_of_environments(ids, options.size)
    rows.append(("fast, whole environment", None, None, step, shipped.step / step, batch))
    return Report(
        title=f"ALFWorld: {options.games} {options.size} game(s), one core, CPU time",
        columns=(
            "engine",
            "load ms",
            "reset ms",
            "step ms",
            "times faster a step",
            f"{BATCH} x {WALK} steps, s",
        ),
        rows=tuple(rows),
        notes=(
            f"Steps measured a game: {options.shipped_steps} as shipped, {WALK} memoised, "
            f"{40 * WALK} fast. A step includes admissible commands, win and facts.",
            f"{BATCH} x {WALK}: a reset and {WALK} steps of {BATCH} environments, games loaded; "
            "computed from the columns before it for textworld, run for the fast engine.",
            "The whole environment adds state ids, info and gym.make's wrappers.",
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


# estimators: credit for one iteration of random walks, and for very many steps.

TASKS, GROUP = 16, 8
STATES = 300  # of a task
LONG = (100_000, 1_000_000)  # steps
MOVES = (-3, -1, 0, 1, 2, 5)


def estimators_options(parser: argparse.ArgumentParser) -> None:
    """What else to measure."""
    parser.add_argument("--long", action="store_true", help="also 100,000 and 1,000,000 steps")
    parser.add_argument(
        "--reference",
        action="store_true",
        help="also the plain-Python reading in the tests, from a checkout",
    )


def estimators(options: argparse.Namespace) -> Report:
    """Cost of reading steps and of every step-level estimator."""
    records = walks(TASKS, observation=600)
    rollouts = Rollouts.from_steps(records)
    shape = f"{TASKS} x {GROUP} x {WALK}"
    rows: list[tuple[str | float | None, ...]] = [interning(records)]
    rows.append(("read and check records", shape, quickest(partial(Rollouts.from_steps, records))))
    spent = {}
    for name in estimator_names():
        made = make_estimator(name)
        if isinstance(made, StepEstimator):
            spent[name] = quickest(partial(made, rollouts))
            rows.append((name, shape, spent[name]))
    if options.reference:
        ratio = plain_milegpo(records) / spent["milegpo"]
        rows.append(("milegpo in plain Python", shape, ratio * spent["milegpo"], ratio, "milegpo"))
    if options.long:
        rows += long_rollouts()
    return Report(
        title="Credit, one core, CPU time",
        columns=("what", "steps", "ms", "times", "of what"),
        rows=tuple((*row, None, None)[:5] for row in rows),
        notes=(f"States: {len(rollouts.states)} in all; best of several runs.",),
    )


def walks(tasks: int, observation: int) -> list[dict[str, object]]:
    """Random walks over states whose ids are texts of `observation` characters."""
    random = np.random.default_rng(0)
    records: list[dict[str, object]] = []
    for task in range(tasks):
        texts = [f"{task}:{state}".ljust(observation, "x") for state in range(STATES)]
        for trajectory in range(GROUP):
            moves = random.choice(MOVES, WALK).tolist()
            success, place = bool(random.random() < 0.5), 0
            for step, move in enumerate(moves):
                after = min(max(place + move, 0), STATES - 1)
                records.append(
                    {
                        "task_id": f"task {task}",
                        "trajectory_id": str(trajectory),
                        "step": step,
                        "state": texts[place],
                        "action": f"move {move}",
                        "next_state": texts[after],
                        "reward": 10.0 if success and step == WALK - 1 else 0.0,
                        "valid": bool(random.random() < 0.95),
                        "success": success,
                    }
                )
                place = after
    return records


def quickest(run: Callable[[], object], repeats: int = 7) -> float:
    """Least CPU milliseconds of a run."""
    best = float("inf")
    for _ in range(repeats):
        watch = Stopwatch()
        with watch:
            run()
        best = min(best, watch.seconds)
    return 1000 * best


def interning(records: Sequence[Mapping[str, object]]) -> tuple[str | float | None, ...]:
    """Numbering fresh observation texts, against hashing them with blake2b-128."""
    texts = [str(record[name]) for record in records for name in ("state", "next_state")]
    numbered, hashed = [], []
    for _ in range(7):
        fresh = [text[:1] + text[1:] for text in texts]  # no hash is remembered
        numbered.append(quickest(partial(intern, fresh), 1))
        hashed.append(quickest(lambda: [blake2b(x.encode(), digest_size=16) for x in texts], 1))
    what = f"number {len(texts):,} texts of 600 characters"
    return (what, None, min(numbered), min(numbered) / min(hashed), "blake2b-128 of them")


def plain_milegpo(records: list[dict[str, object]]) -> float:
    """CPU milliseconds of the slow reading that the tests compare with."""
    slow = import_module("tests.milegpo_algo.slow_reference")
    return quickest(partial(slow.milegpo, records, number=float), 1)


def long_rollouts() -> list[tuple[str | float | None, ...]]:
    """Ten times the steps against ten times the time, and the memory beyond the input.

    Short and long runs alternate: a virtual machine's speed drifts.
    """
    few, many = (walks(steps // (GROUP * WALK), observation=40) for steps in LONG)
    held = resident()
    inputs = [Rollouts.from_steps(records) for records in (few, many)]
    work: dict[str, list[Callable[[], object]]] = {
        "read and check records": [partial(Rollouts.from_steps, x) for x in (few, many)]
    }
    for name in estimator_names():
        made = make_estimator(name)
        if isinstance(made, StepEstimator):
            work[name] = [partial(made, rollouts) for rollouts in inputs]
    rows: list[tuple[str | float | None, ...]] = []
    for name, (short, long) in work.items():
        pairs = [(quickest(short, 3), quickest(long, 1)) for _ in range(5)]
        less, more = (min(spent) for spent in zip(*pairs, strict=True))
        rows.append((name, f"{LONG[0]:,}", less))
        rows.append((name, f"{LONG[1]:,}", more, more / less, f"{LONG[0]:,} steps"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rows.append((f"MB beyond the records: {peak - held:,.0f}", f"{LONG[1]:,}"))
    return rows


def resident() -> float:
    """Memory of this process now, in MB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 2**20


BENCHES: Mapping[str, Bench] = {
    "estimators": Bench("credit for the steps of an iteration", estimators_options, estimators),
    "alfworld": Bench("the three ALFWorld engines side by side", alfworld_options, alfworld),
}

if __name__ == "__main__":
    main()
