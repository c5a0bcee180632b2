"""Train every estimator with every seed from one warm start, and compare them on one panel.

    python -m scripts.compare
    python -m scripts.compare --estimators grpo milegpo --seeds 1 2 --output_dir runs/two

Cells are ``scripts.train`` processes of one thread each, ``--jobs`` side by side. A finished cell
is not run again: start the same command after a stop and it goes on. Writes ``results.jsonl``,
``table.md`` and ``curves.png`` to ``--output_dir`` after every finished cell.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

import baselines
from baselines.comparison import SHARED, cell_name, draw_curves, lines, markdown
from milegpo_algo import estimator_names

MAIN_JOB = Path(baselines.__file__).parent / "recipes" / "main_job.yaml"
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
_POLL_SECONDS = 0.5
_PLAIN_SECONDS = 15.0


@dataclass(frozen=True)
class Cell:
    """One process: what to run, and the folder it leaves its result in."""

    name: str
    folder: Path
    options: tuple[str, ...]

    @property
    def result(self) -> Path:
        """Where the result row will be."""
        return self.folder / "result.json"


def train_command(cell: Cell) -> list[str]:
    """Write the command of a cell."""
    return [sys.executable, "-m", "scripts.train", *cell.options, "--output_dir", str(cell.folder)]


def main(argv: Sequence[str] | None = None) -> int:
    """Run what is missing; 0 if every cell finished."""
    arguments = _parse(argv)
    out = Path(arguments.output_dir)
    config = ("--config", str(arguments.config))
    warm = Cell("warm start", out / "warm_start", (*config, "--warm_start_only", "true"))
    console = Console()
    if arguments.dry_run:
        for cell in [warm, *_cells(arguments, config, out, "the warm start's folder")]:
            console.print(f"{cell.name}: {'finished' if cell.result.exists() else 'to run'}")
        return 0
    run = Runner(console, train_command)
    failed = run([warm], 1, lambda: None)
    if failed:
        return 1
    start = json.loads(warm.result.read_text())
    cells = _cells(arguments, config, out, start["model"])
    if problem := _stale(cells, start):
        console.print(problem)
        return 2

    def show() -> None:
        _write(out, [warm, *cells], len(cells), console)

    show()
    failed = run(cells, arguments.jobs, show)
    if all(cell.result.exists() for cell in cells) and not failed:
        console.print(f"Learning curves: {out / 'curves.png'}; rows: {out / 'results.jsonl'}")
    for cell in failed:
        console.print(f"Failed: {cell.name}; its log is {cell.folder / 'log.txt'}")
    return 1 if failed else 0


class Runner:
    """Runs cells side by side, shows how far they are, and stops them if it is stopped."""

    def __init__(self, console: Console, command: Callable[[Cell], list[str]]) -> None:
        self._console = console
        self._command = command
        self._spoken = 0.0

    def __call__(
        self, cells: Sequence[Cell], jobs: int, on_finished: Callable[[], None]
    ) -> list[Cell]:
        """Run the cells without a result; return those that failed."""
        waiting = [cell for cell in cells if not cell.result.exists()]
        running: dict[Cell, tuple[subprocess.Popen[bytes], TaskID]] = {}
        failed: list[Cell] = []
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[at]}"))
        with Progress(
            *columns, TimeElapsedColumn(), console=self._console, disable=not self._live
        ) as bars:
            overall = bars.add_task("cells", total=len(cells), at="")
            try:
                while waiting or running:
                    while waiting and len(running) < jobs:
                        cell = waiting.pop(0)
                        self._plain(f"{cell.name}: started")
                        running[cell] = self._start(cell), bars.add_task(cell.name, at="starting")
                    time.sleep(_POLL_SECONDS)
                    for cell, (process, bar) in list(running.items()):
                        what, done, total = _progress(cell)
                        bars.update(bar, completed=done, total=total, at=f"{what} {done}/{total}")
                        if process.poll() is None:
                            continue
                        del running[cell]
                        bars.remove_task(bar)
                        if process.returncode or not cell.result.exists():
                            failed.append(cell)
                            self._console.print(_tail(cell), markup=False)
                        else:
                            self._plain(f"{cell.name}: finished")
                            on_finished()
                    bars.update(overall, completed=len(cells) - len(waiting) - len(running))
                    self._speak(running, len(waiting))
            finally:
                for process, _ in running.values():
                    process.terminate()
                for process, _ in running.values():
                    process.wait()
        return failed

    @property
    def _live(self) -> bool:
        return self._console.is_terminal

    def _plain(self, text: str) -> None:
        if not self._live:
            self._console.print(text, markup=False)

    def _speak(
        self, running: dict[Cell, tuple[subprocess.Popen[bytes], TaskID]], left: int
    ) -> None:
        """Where nobody sees a bar, say now and then how far everything is."""
        now = time.monotonic()
        if self._live or not running or now - self._spoken < _PLAIN_SECONDS:
            return
        self._spoken = now
        parts = ["{}: {} {}/{}".format(cell.name, *_progress(cell)) for cell in running]
        self._plain("; ".join(parts) + f"; {left} waiting")

    def _start(self, cell: Cell) -> subprocess.Popen[bytes]:
        cell.folder.mkdir(parents=True, exist_ok=True)
        (cell.folder / "progress.json").unlink(missing_ok=True)
        with (cell.folder / "log.txt").open("wb") as log:
            return subprocess.Popen(
                self._command(cell),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **ONE_THREAD},
            )


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="compare.py", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--config", type=Path, default=MAIN_JOB, help="options of scripts.train")
    parser.add_argument(
        "--estimators", nargs="+", default=["grpo", "gigpo", "graphgpo", "milegpo"], metavar="NAME"
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3], metavar="N")
    parser.add_argument("--output_dir", default="runs/compare")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--dry_run", action="store_true", help="list the cells and stop")
    arguments = parser.parse_args(argv)
    for name in arguments.estimators:
        if name not in estimator_names():
            valid = ", ".join(estimator_names())
            parser.error(f"unknown estimator {name!r}. Valid: {valid}")
    if not arguments.config.is_file():
        known = ", ".join(str(path) for path in sorted(MAIN_JOB.parent.glob("*.yaml")))
        parser.error(f"no file {arguments.config}. Recipes that come along: {known}")
    if arguments.jobs < 1:
        parser.error("--jobs is at least 1")
    return arguments


def _cells(
    arguments: argparse.Namespace, config: tuple[str, str], out: Path, model: str
) -> list[Cell]:
    """List the cells seed by seed, so that a partial table compares like with like."""
    return [
        Cell(
            f"{name}-seed{seed}",
            out / "cells" / f"{name}-seed{seed}",
            (*config, "--model", model, "--estimator", name, "--seed", str(seed)),
        )
        for seed in dict.fromkeys(arguments.seeds)
        for name in dict.fromkeys(arguments.estimators)
    ]


def _stale(cells: Sequence[Cell], start: dict[str, object]) -> str:
    """Say which finished cells belong to another comparison, if any."""
    for cell in cells:
        if not cell.result.exists():
            continue
        row = json.loads(cell.result.read_text())
        for key in SHARED:
            if row[key] != start[key]:
                return (
                    f"{cell.folder} holds a result with another {key} ({row[key]}, now "
                    f"{start[key]}). Choose another --output_dir, or move that folder away."
                )
    return ""


def _write(out: Path, cells: Sequence[Cell], planned: int, console: Console) -> None:
    """Write rows, table and curves of the finished cells, and print the table."""
    finished = [cell for cell in cells if cell.result.exists()]
    rows = [json.loads(cell.result.read_text()) for cell in finished]
    text = markdown(lines(rows), rows, planned)
    _replace(out / "results.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    _replace(out / "table.md", text + "\n")
    folders = {cell_name(row): cell.folder for row, cell in zip(rows, finished, strict=True)}
    draw_curves(rows, folders, out / "curves.png")
    console.print(text, markup=False, soft_wrap=True, highlight=False)


def _replace(path: Path, text: str) -> None:
    unfinished = path.with_name(f"{path.name}.unfinished")
    unfinished.write_text(text)
    unfinished.replace(path)


def _progress(cell: Cell) -> tuple[str, int, int]:
    path = cell.folder / "progress.json"
    if not path.exists():
        return "starting", 0, 1
    found = json.loads(path.read_text())
    return found["what"], found["done"], found["total"]


def _tail(cell: Cell) -> str:
    text = (cell.folder / "log.txt").read_text(errors="replace")
    return f"{cell.name} failed:\n" + "\n".join(text.splitlines()[-20:])


if __name__ == "__main__":
    sys.exit(main())
