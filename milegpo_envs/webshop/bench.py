"""Measure the shop at several sizes of the generated catalogue: building, opening, searching.

python -m scripts.bench webshop
python -m scripts.bench webshop --products 1000 50000 1000000     # builds for minutes, once
python -m scripts.bench webshop --browser                         # steps in Chromium instead
"""

import argparse
import tempfile
from contextlib import ExitStack
from pathlib import Path

from milegpo_envs.reports import Advance, Cell, Report
from milegpo_envs.webshop.bench_browser import TASKS as TASKS_IN_BROWSER
from milegpo_envs.webshop.bench_browser import browser_rows
from milegpo_envs.webshop.bench_queries import QUERIES, QueryCosts, query_costs
from milegpo_envs.webshop.bench_steps import TASKS, StepCosts, step_costs

HELP = "WebShop's search, memory and steps by the number of products"


def add_options(parser: argparse.ArgumentParser) -> None:
    """How much to measure."""
    parser.add_argument(
        "--products", type=int, nargs="+", default=[1000, 50_000], help="default: %(default)s"
    )
    parser.add_argument(
        "--cache", type=Path, help="keep what is built here (default: a folder that is removed)"
    )
    parser.add_argument("--browser", action="store_true", help="steps in Chromium, nothing else")


def run(options: argparse.Namespace, advance: Advance) -> Report:
    """One column a size."""
    if options.browser:
        return _in_browser(options.products[0])
    with ExitStack() as stack:
        cache = options.cache or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        costs = [query_costs(products, cache / "webshop", advance) for products in options.products]
        steps = [step_costs(products, cache, advance) for products in options.products]
    return Report(
        title="WebShop, generated, one core, CPU time",
        columns=("measured", *(f"{products:,} products" for products in options.products)),
        rows=_query_rows(costs) + _step_rows(steps),
        notes=(
            f"Queries: {QUERIES} instructions (and as many product kinds), top 50, index mapped.",
            "Memory: what the process gained by opening and searching, mapped pages included.",
            f"Steps: {TASKS} purchases in the text environment, clickables and state id included.",
        ),
    )


def _in_browser(products: int) -> Report:
    return Report(
        title="WebShop in Chromium, wall-clock",
        columns=("measured", f"{products:,} products"),
        rows=browser_rows(products),
        notes=(f"Medians over {TASKS_IN_BROWSER} purchases; one environment, its own site.",),
    )


def _query_rows(costs: list[QueryCosts]) -> tuple[tuple[Cell, ...], ...]:
    return (
        ("generate all products, s", *(c.generate for c in costs)),
        ("build index and columns, s (0: was there)", *(c.index for c in costs)),
        ("open, ms", *(1000 * c.open for c in costs)),
        ("query, an instruction, ms", *(c.query for c in costs)),
        ("query, two or three words, ms", *(c.short_query for c in costs)),
        ("memory of a process, MB", *(c.memory for c in costs)),
    )


def _step_rows(costs: list[StepCosts]) -> tuple[tuple[Cell, ...], ...]:
    return (
        ("reset, ms", *(c.reset for c in costs)),
        ("step: search, new words, ms", *(c.search for c in costs)),
        ("step: search, known words, ms", *(c.again for c in costs)),
        ("step: click, ms", *(c.click for c in costs)),
        ("step: purchase, ms", *(c.purchase for c in costs)),
        ("step: mean of a purchase, ms", *(c.mean for c in costs)),
        ("memory of one more environment, kB", *(c.memory for c in costs)),
    )
