"""Say what works on this machine, and the command that mends what does not.

    python -m scripts.doctor                     # Python, packages, data, engines, browser, GPU
    python -m scripts.doctor --json              # the same as JSON
    python -m scripts.doctor parity alfworld     # compare a fast environment with the official one

Nothing is made, changed or downloaded. The exit status is 1 if something is broken that the project
cannot do without, or if a comparison finds a mismatch; what is optional and missing is listed only.
An environment takes part by modules in its folder: `health` (checks() -> Iterable[Check]) and
`parity` (HELP, add_options(parser), run(options, advance) -> Report; its last column: mismatches).
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import cast

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

import baselines.health
from milegpo_envs.errors import EnvError
from milegpo_envs.parts import Command, offering, part
from milegpo_envs.reports import Check, Report


def main(arguments: Sequence[str] | None = None) -> None:
    """Examine the machine, or run a comparison."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.doctor",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print JSON in place of a table")
    what = parser.add_subparsers(dest="what")
    which = what.add_parser("parity", help="compare with the official environment")
    environments = which.add_subparsers(dest="environment", required=True)
    known = {name: cast(Command, part(name, "parity")) for name in offering("parity")}
    for name, parity in known.items():
        one = environments.add_parser(name, help=parity.HELP)
        one.add_argument(
            "--json", action="store_true", default=argparse.SUPPRESS, help="print JSON"
        )
        parity.add_options(one)
    options = parser.parse_args(arguments)
    try:
        sound = _examine(options) if options.what is None else _compare(known, options)
    except EnvError as error:
        sys.exit(f"{error}")
    sys.exit(0 if sound else 1)


def checks() -> Iterator[Check]:
    """All checks: the machine's, then each environment's."""
    yield from baselines.health.checks()
    for name in offering("health"):
        yield from part(name, "health").checks()


def _examine(options: argparse.Namespace) -> bool:
    """Print what works; say whether all that is required does."""
    found = list(checks())
    sound = all(check.works for check in found if check.required)
    if options.json:
        print(json.dumps({"sound": sound, "checks": [asdict(check) for check in found]}, indent=1))
        return sound
    table = Table(title="MileGPO on this machine", show_lines=False)
    for column in ("", "what", "found"):
        table.add_column(column, overflow="fold")
    for check in found:
        mark = "[green]works" if check.works else "[red]BROKEN" if check.required else "missing"
        table.add_row(mark, _plain(check.name), _plain(check.found))
    console = Console()
    console.print(table)
    for check in found:
        if not check.works and check.remedy:
            need = "needed" if check.required else "optional"
            console.print(f"{check.name} ({need}):", markup=False, highlight=False)
            console.print(f"    {check.remedy}", markup=False, highlight=False, soft_wrap=True)
    verdict = "All that is needed works." if sound else "Something that is needed does not work."
    console.print(verdict)
    return sound


def _compare(known: dict[str, Command], options: argparse.Namespace) -> bool:
    """Run a comparison with a progress bar; say whether nothing differed."""
    console = Console(stderr=True)
    columns = (
        *(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
        task = bars.add_task("", total=None)

        def advance(done: int, total: int, what: str) -> None:
            bars.update(task, completed=done, total=total, description=what)

        report: Report = known[options.environment].run(options, advance)
    mismatches = sum(cast(int, row[-1]) for row in report.rows)
    if options.json:
        print(json.dumps({**asdict(report), "total_mismatches": mismatches}))
        return mismatches == 0
    table = Table(title=report.title)
    for number, column in enumerate(report.columns):
        table.add_column(column, justify="right" if number > 1 else "left")
    for row in report.rows:
        table.add_row(*(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row))
    out = Console()
    out.print(table)
    for note in report.notes:
        out.print(note, markup=False, highlight=False, soft_wrap=True)
    out.print(f"{mismatches:,} mismatches." if mismatches else "No mismatch.")
    return mismatches == 0


def _plain(text: str) -> str:
    """Text without rich's markup."""
    return text.replace("[", r"\[")


if __name__ == "__main__":
    main()
