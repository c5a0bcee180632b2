"""Download the published data of an environment, check it, and say what came of it.

    python -m scripts.download_data alfworld
    python -m scripts.download_data alfworld --help

A subcommand is a module `download` in an environment's folder; it has HELP, add_options(parser) and
run(options, advance), which returns a Report or None. Interrupted, it goes on where it stopped when
run again. Environments need no download: without data they generate their own, and say so.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import cast

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

from milegpo_envs.errors import EnvError
from milegpo_envs.parts import Command, offering, part
from milegpo_envs.reports import Report


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one environment's download with progress bars, and print its report."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.download_data",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_subparsers(dest="what", required=True)
    known = {name: cast(Command, part(name, "download")) for name in offering("download")}
    for name, download in known.items():
        download.add_options(what.add_parser(name, help=download.HELP))
    options = parser.parse_args(arguments)
    console = Console(stderr=True)
    columns = (
        *(TextColumn("{task.description}", markup=False), BarColumn()),
        *(TextColumn("{task.percentage:>3.0f}%"), TimeRemainingColumn()),
    )
    try:
        with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
            report = known[options.what].run(options, _Bars(bars))
    except (EnvError, OSError) as error:
        sys.exit(f"{error}")
    except KeyboardInterrupt:
        sys.exit("Interrupted. Run this again to go on where it stopped.")
    if report is not None:
        show(cast(Report, report))


class _Bars:
    """A bar for everything that is reported, in the order in which it begins."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, done: int, total: int, what: str) -> None:
        if what not in self._tasks:
            self._tasks[what] = self._bars.add_task(what, total=None)
        self._bars.update(self._tasks[what], completed=done, total=total or None)


def show(report: Report) -> None:
    """Print a report as a table."""
    table = Table(title=report.title)
    for number, column in enumerate(report.columns):
        table.add_column(column, justify="right" if number in (1, 2) else "left")
    for row in report.rows:
        table.add_row(*(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row))
    console = Console()
    console.print(table)
    for note in report.notes:
        console.print(note, markup=False, highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main()
