"""Progress on the terminal: a bar for everything that says how far it is; silent elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from milegpo_envs.reports import Advance


@contextmanager
def progress_bars() -> Iterator[Advance]:
    """Yield what to call as ``advance(done, total, what)``; a total of 0 is not known.

    Bars stand on stderr, one for each ``what``, and only on a terminal.
    """
    console = Console(stderr=True)
    columns = (
        *(TextColumn("{task.description}", markup=False), BarColumn()),
        *(TextColumn("{task.percentage:>3.0f}%"), TimeRemainingColumn()),
    )
    tasks: dict[str, TaskID] = {}
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:

        def advance(done: int, total: int, what: str) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=None)
            bars.update(tasks[what], completed=done, total=total or None)

        yield advance
