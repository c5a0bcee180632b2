"""Measure what the parts cost.

    python -m scripts.bench alfworld            # textworld as shipped, memoised, and fast
    python -m scripts.bench alfworld --json -   # the same as one JSON object
    python -m scripts.bench estimators --long   # credit for an iteration, and for 1,000,000 steps

A subcommand is a module `bench` in an environment's folder, or a module in baselines/benches; it
has HELP, add_options(parser) and run(options, advance) -> Report. Printing and progress bars are
shared, and stand here.
Nothing here downloads. Times are CPU times of one process unless a title says otherwise.
"""

import argparse
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import cast

from rich.console import Console
from rich.table import Table

import baselines.benches
import milegpo_envs  # noqa: F401  # registers the environments
from baselines.bars import progress_bars
from milegpo_envs.parts import Command, offering, part
from milegpo_envs.reports import Cell, Report


def benches() -> Mapping[str, Command]:
    """Every subcommand by its name, sorted."""
    found = {name: cast(Command, part(name, "bench")) for name in offering("bench")}
    for module in iter_modules(baselines.benches.__path__):
        found[module.name] = cast(Command, import_module(f"baselines.benches.{module.name}"))
    return dict(sorted(found.items()))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one subcommand and print its report."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.bench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_subparsers(dest="what", required=True)
    known = benches()
    for name, bench in known.items():
        one = what.add_parser(name, help=bench.HELP)
        one.add_argument("--json", metavar="FILE", help="write JSON to a file, or - for stdout")
        bench.add_options(one)
    options = parser.parse_args(arguments)
    with progress_bars() as advance:
        report = known[options.what].run(options, advance)
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
        table.add_row(*map(written, row))
    console = Console()
    if not console.is_terminal:  # a file or a pipe has no width of its own
        console = Console(width=160)
    console.print(table)
    for note in report.notes:
        console.print(note, highlight=False)


def written(cell: Cell) -> str:
    """Three significant digits, thousands grouped."""
    if isinstance(cell, float):
        return f"{cell:,.0f}" if cell >= 100 else f"{cell:.3g}"
    return "" if cell is None else str(cell)


if __name__ == "__main__":
    main()
