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
from rich.table import Table

from baselines.bars import progress_bars
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
    try:
        with progress_bars() as advance:
            report = known[options.what].run(options, advance)
    except (EnvError, OSError) as error:
        sys.exit(f"{error}")
    except KeyboardInterrupt:
        sys.exit("Interrupted. Run this again to go on where it stopped.")
    if report is not None:
        show(cast(Report, report))


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
