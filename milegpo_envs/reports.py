"""What a measurement or a check hands to a script: a table of numbers, and notes on them.

Environments and baselines fill a `Report`; only scripts print it.
"""

import resource
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

Cell = str | float | None
Advance = Callable[[int, int, str], None]
"""Called as `advance(done, total, what)` while something long runs."""


@dataclass(frozen=True)
class Report:
    """A table of numbers, and what to know about them. Cells of None were not measured."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Check:
    """Whether something works on this machine.

    found: what there is, or what is wrong. remedy: the command that mends it; "" where there is
    nothing to mend. required: whether the project cannot do without.
    """

    name: str
    works: bool
    found: str
    remedy: str = ""
    required: bool = False


@dataclass(frozen=True)
class Truth:
    """What an environment knows of a state that rollouts do not show; for reports.

    An environment offers it by a module `report` in its folder, `truth(env, info) -> Truth`, called
    after every reset and step with the whole environment and its info.

    distance: fewest steps to success, None where there is none or where it is not known.
    lost: whether success can surely no longer be reached. values: whatever else, by name.
    """

    distance: int | None
    lost: bool
    values: Mapping[str, Cell]


class Stopwatch:
    """CPU seconds of this process spent inside `with stopwatch:`, added up.

    CPU time, so that neighbours on the machine count little.
    """

    def __init__(self) -> None:
        self.seconds = 0.0

    def __enter__(self) -> None:
        self._start = time.process_time()

    def __exit__(self, *_: object) -> None:
        self.seconds += time.process_time() - self._start


def quickest(run: Callable[[], object], repeats: int = 7) -> float:
    """Least CPU milliseconds of a run."""
    best = float("inf")
    for _ in range(repeats):
        watch = Stopwatch()
        with watch:
            run()
        best = min(best, watch.seconds)
    return 1000 * best


def resident() -> float:
    """Memory of this process now, in MB (Linux)."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 2**20
