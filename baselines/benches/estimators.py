"""Measure credit: for one iteration of random walks, and for very many steps.

python -m scripts.bench estimators --long
"""

import argparse
import resource
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from importlib import import_module

import numpy as np

from milegpo_algo import Rollouts, StepEstimator, estimator_names, make_estimator
from milegpo_algo.data.checks import intern
from milegpo_envs.reports import Advance, Cell, Report, quickest, resident

HELP = "credit for the steps of an iteration"

TASKS, GROUP = 16, 8
WALK = 50  # steps
STATES = 300  # of a task
LONG = (100_000, 1_000_000)  # steps
MOVES = (-3, -1, 0, 1, 2, 5)


def add_options(parser: argparse.ArgumentParser) -> None:
    """What else to measure."""
    parser.add_argument("--long", action="store_true", help="also 100,000 and 1,000,000 steps")
    parser.add_argument(
        "--reference",
        action="store_true",
        help="also the plain-Python reading in the tests, from a checkout",
    )


def run(options: argparse.Namespace, advance: Advance) -> Report:
    """Cost of reading steps and of every step-level estimator."""
    records = walks(TASKS, observation=600)
    rollouts = Rollouts.from_steps(records)
    shape = f"{TASKS} x {GROUP} x {WALK}"
    rows: list[tuple[Cell, ...]] = [interning(records)]
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


def interning(records: Sequence[Mapping[str, object]]) -> tuple[Cell, ...]:
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


def long_rollouts() -> list[tuple[Cell, ...]]:
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
    rows: list[tuple[Cell, ...]] = []
    for name, (short, long) in work.items():
        pairs = [(quickest(short, 3), quickest(long, 1)) for _ in range(5)]
        less, more = (min(spent) for spent in zip(*pairs, strict=True))
        rows.append((name, f"{LONG[0]:,}", less))
        rows.append((name, f"{LONG[1]:,}", more, more / less, f"{LONG[0]:,} steps"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rows.append((f"MB beyond the records: {peak - held:,.0f}", f"{LONG[1]:,}"))
    return rows
