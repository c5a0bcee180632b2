"""Train every estimator with every seed from one warm start, and compare them on one panel.

    python -m scripts.compare
    python -m scripts.compare --estimators grpo milegpo --seeds 1 2 --output_dir runs/two

Cells are ``scripts.train`` processes of one thread each, ``--jobs`` side by side, seed by seed. A
finished cell is not run again: start the same command after a stop and it goes on, and the table is
that of a run without a stop. Writes ``results.jsonl``, ``table.md``, ``table.csv`` and
``curves.png`` to ``--output_dir`` after every finished cell. Rows of another recipe, model, panel
or of other versions are never mixed in, nor deleted: ``--fresh`` moves them aside.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import yaml
from rich.console import Console

import baselines
from baselines import report_table
from baselines.comparison import WARM_START, Row, cell_name, check_rows, lines, read_row
from baselines.curves import draw_curves, read_curve
from baselines.displays import Display
from baselines.jobs import Ended, InUse, Job, alone_in, run_jobs, signals_interrupt
from baselines.runs import versions, write_json
from milegpo_algo import estimator_names

MAIN_JOB = Path(baselines.__file__).parent / "recipes" / "main_job.yaml"
ESTIMATORS = ("grpo", "gigpo", "graphgpo", "milegpo")
_OURS = ("warm_start", "cells", "comparison.json", "results.jsonl", "table.md", "table.csv")


class Stale(Exception):
    """The folder holds results that do not belong to this comparison."""


@dataclass(frozen=True)
class Cell:
    """What to train; the warm start, with no training, where estimator and seed are None."""

    estimator: str | None
    seed: int | None
    out: Path

    @property
    def name(self) -> str:
        """The name of its row."""
        return WARM_START if self.estimator is None else cell_name(self.estimator, self.seed)

    @property
    def folder(self) -> Path:
        """Where its files are."""
        return self.out / ("warm_start" if self.estimator is None else f"cells/{self.name}")

    @property
    def result(self) -> Path:
        """Its result row; exists when it is finished."""
        return self.folder / "result.json"


Command = Callable[[Path, Cell, str | None], tuple[str, ...]]


def train_command(
    config: Path, cell: Cell, model: str | None, python: str = sys.executable
) -> tuple[str, ...]:
    """Write the command of a cell; ``model`` is the warm start's, None for the warm start."""
    base = (python, "-m", "scripts.train", "--config", str(config))
    folder = ("--output_dir", str(cell.folder))
    if cell.estimator is None or model is None:
        return (*base, "--warm_start_only", "true", *folder)
    what = ("--estimator", cell.estimator, "--seed", str(cell.seed))
    return (*base, "--model", model, *what, *folder)


def main(argv: Sequence[str] | None = None, command: Command = train_command) -> int:
    """Run what is missing. 0: all finished; 1: a cell failed; 2: refused; 130: interrupted."""
    arguments = _parse(argv)
    console = Console()
    comparison = Comparison(arguments, command, console)
    if arguments.dry_run:
        comparison.show_plan()
        return 0
    try:
        with signals_interrupt(), alone_in(comparison.out) as lock:
            return comparison.run(lock, arguments.fresh)
    except (Stale, InUse) as refusal:
        console.print(str(refusal), style="red", markup=False, soft_wrap=True)
        return 2
    except KeyboardInterrupt:
        console.print("Interrupted; the same command goes on from here.")
        return 130


class Comparison:
    """The plan, and one walk through it."""

    def __init__(self, arguments: argparse.Namespace, command: Command, console: Console) -> None:
        self.out = Path(arguments.output_dir)
        self._config: Path = arguments.config
        self._settings: Mapping[str, object] = arguments.settings
        self._jobs: int = arguments.jobs
        self._command = command
        self._console = console
        self._warm = Cell(None, None, self.out)
        self._order: list[str] = arguments.estimators
        self._cells = [Cell(n, s, self.out) for s in arguments.seeds for n in arguments.estimators]
        self._asked = shlex.join(
            [
                *("python", "-m", "scripts.compare", "--config", str(_shown(self._config))),
                *("--estimators", *arguments.estimators),
                *("--seeds", *map(str, arguments.seeds)),
            ]
        )

    def show_plan(self) -> None:
        """List the cells in the order in which they run, and which are finished."""
        for cell in (self._warm, *self._cells):
            state = "finished" if cell.result.exists() else "to run"
            self._console.print(f"{cell.name}: {state}", markup=False, highlight=False)

    def run(self, lock: int, fresh: bool) -> int:
        """Run the warm start and the cells that are not finished; see ``main``.

        Raises:
            Stale: results of another comparison are in the way.
        """
        if fresh:
            self._move_aside()
        if not self._warm_start_is_ours():
            self._console.print("Warm start: making or finding the policy that all start from")
            if failed := self._run([self._warm], None, lock):
                return self._report(failed)
        start = _trusted(self._warm)
        for cell in self._cells:
            if cell.result.exists():
                _check(cell, start)
        self._write()
        failed = self._run([c for c in self._cells if not c.result.exists()], start, lock)
        self._console.print(f"Table: {self.out / 'table.md'}; curves: {self.out / 'curves.png'}")
        return self._report(failed)

    def _warm_start_is_ours(self) -> bool:
        """Compare the settings that made what is in the folder with ours, and note ours.

        The result of a warm start does not tell which file it was made with, so that is noted
        beside it.
        """
        note = self.out / "comparison.json"
        ours = {"config": self._settings, "versions": versions()}
        if note.exists():
            found = json.loads(note.read_text(encoding="utf-8"))
            if found == ours:
                if not self._warm.result.exists():
                    return False
                model = _trusted(self._warm).model
                return Path(model).is_dir() or model == self._settings.get("model")
            if self._warm.result.exists() or any(self.out.glob("cells/*/result.json")):
                raise Stale(_remedy(self.out, f"other {_differing(found, ours)}"))
        write_json(note, ours)
        return False

    def _run(self, cells: Sequence[Cell], start: Row | None, lock: int) -> list[str]:
        """Run cells; return the names of those that failed."""
        by_name = {cell.name: cell for cell in cells}
        jobs = [
            Job(
                cell.name,
                cell.folder,
                self._command(self._config, cell, start.model if start else None),
                threads=1 if start else min(2, os.cpu_count() or 1),
            )
            for cell in cells
        ]
        total = len(self._cells) if start else 1
        failed: list[str] = []
        with (
            Display(self._console, total, total - len(jobs), self._jobs) as display,
            closing(run_jobs(jobs, self._jobs, display, lock)) as all_ended,
        ):
            for ended in all_ended:
                problem = _problem(ended, by_name[ended.job.name], start)
                if not problem:
                    row = read_row(ended.job.result)
                    display.ended(ended, f"finished, success {100 * row.success:.1f} %,")
                    if start:
                        self._write()
                    continue
                failed.append(ended.job.name)
                display.ended(ended, "failed")
                self._console.print(problem, markup=False, highlight=False, soft_wrap=True)
        return failed

    def _report(self, failed: Sequence[str]) -> int:
        for name in failed:
            cell = next(c for c in (self._warm, *self._cells) if c.name == name)
            where = cell.folder / "log.txt"
            self._console.print(f"Failed: {name}; its log: {where}", style="red", markup=False)
        return 1 if failed else 0

    def _write(self) -> None:
        """Write rows, table and curves of what is finished, and print the table."""
        done = [cell for cell in (self._warm, *self._cells) if cell.result.exists()]
        rows = [read_row(cell.result) for cell in done]
        start = rows[0]
        whole = [
            {**row.logged, "command": self._again(cell, start), "config": self._settings}
            for row, cell in zip(rows, done, strict=True)
        ]
        table = lines(sorted(rows, key=self._place))
        notes = report_table.notes(rows, len(self._cells), self._asked)
        _replace(self.out / "results.jsonl", "".join(json.dumps(row) + "\n" for row in whole))
        _replace(self.out / "table.md", report_table.markdown(table, notes))
        _replace(self.out / "table.csv", report_table.csv_text(table))
        curves = {r.name: read_curve(r, c.folder) for r, c in zip(rows, done, strict=True)}
        draw_curves(rows, curves, self.out / "curves.png")
        shown = notes if len(done) == 1 + len(self._cells) else notes[:1]  # all of them only once
        if not self._console.is_terminal:
            brief = report_table.markdown(table, shown)
            self._console.print(brief, markup=False, highlight=False, soft_wrap=True)
            return
        self._console.print(report_table.terminal(table))
        for note in shown:
            self._console.print(note, markup=False, highlight=False)

    def _again(self, cell: Cell, start: Row) -> str:
        """Write the command that makes a row again."""
        model = None if cell.estimator is None else start.model
        return shlex.join(train_command(_shown(self._config), cell, model, python="python"))

    def _place(self, row: Row) -> tuple[int, int]:
        first = -1 if row.estimator is None else self._order.index(row.estimator)
        return first, row.seed or 0

    def _move_aside(self) -> None:
        """Move all that an earlier comparison left into a new folder beside it."""
        found = [self.out / n for n in (*_OURS, "curves.png") if (self.out / n).exists()]
        if not found:
            return
        number = 1
        while (aside := self.out / f"earlier-{number}").exists():
            number += 1
        aside.mkdir()
        for path in found:
            path.rename(aside / path.name)
        self._console.print(f"Moved what was in {self.out} to {aside}")


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.compare",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--config", type=Path, default=MAIN_JOB, help="options of scripts.train")
    parser.add_argument("--estimators", nargs="+", default=list(ESTIMATORS), metavar="NAME")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3], metavar="N")
    parser.add_argument("--output_dir", default="runs/compare")
    parser.add_argument(
        "--jobs", type=int, default=min(2, os.cpu_count() or 1), help="cells side by side"
    )
    parser.add_argument("--dry_run", action="store_true", help="list the cells and stop")
    parser.add_argument("--fresh", action="store_true", help="move earlier results aside first")
    arguments = parser.parse_args(argv)
    valid = estimator_names()
    if wrong := [name for name in arguments.estimators if name not in valid]:
        parser.error(f"unknown estimator {', '.join(wrong)}. Valid: {', '.join(valid)}")
    if not arguments.config.is_file():
        known = ", ".join(str(path) for path in sorted(MAIN_JOB.parent.glob("*.yaml")))
        parser.error(f"no file {arguments.config}. Recipes that come along: {known}")
    if arguments.jobs < 1:
        parser.error("--jobs is at least 1")
    try:
        arguments.settings = yaml.safe_load(arguments.config.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        parser.error(f"{arguments.config} is not YAML: {error}")
    if not isinstance(arguments.settings, dict):
        parser.error(f"{arguments.config} does not hold options as 'name: value'")
    arguments.estimators = list(dict.fromkeys(arguments.estimators))
    arguments.seeds = list(dict.fromkeys(arguments.seeds))
    return arguments


def _problem(ended: Ended, cell: Cell, start: Row | None) -> str:
    """Say what is wrong with a job that ended, if anything."""
    if not ended.ok:
        return f"The end of {ended.job.folder / 'log.txt'}:\n{ended.log_tail()}"
    try:
        _check(cell, start or read_row(cell.result))
    except Stale as error:
        return str(error)
    return ""


def _check(cell: Cell, start: Row) -> None:
    """Refuse a cell's row if it does not belong beside the warm start's."""
    row = _trusted(cell)
    try:
        check_rows([start, row])
    except ValueError as error:
        raise Stale(_remedy(cell.folder, f"another result: {error}")) from error
    if (row.estimator, row.seed) != (cell.estimator, cell.seed):
        raise Stale(_remedy(cell.folder, f"the result of {row.name}"))


def _trusted(cell: Cell) -> Row:
    try:
        return read_row(cell.result)
    except ValueError as error:
        raise Stale(str(error)) from error


def _shown(path: Path) -> Path:
    """Write a path as short as it is from here."""
    here = Path.cwd()
    whole = path.absolute()
    return whole.relative_to(here) if whole.is_relative_to(here) else path


def _remedy(folder: Path, what: str) -> str:
    return (
        f"{folder} holds {what} Nothing was changed. Choose another --output_dir, or move the old "
        "results aside with --fresh."
    )


def _differing(found: Mapping[str, Mapping[str, object]], ours: Mapping[str, object]) -> str:
    """Name the settings and versions in which an earlier comparison differs."""
    out = []
    for part, now in ours.items():
        before = found.get(part, {})
        assert isinstance(now, Mapping)
        names = sorted(k for k in {*before, *now} if before.get(k) != now.get(k))
        if names:
            out.append(f"{part} ({', '.join(names)})")
    return " and ".join(out) + "."


def _replace(path: Path, text: str) -> None:
    unfinished = path.with_name(f"{path.name}.unfinished")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)


if __name__ == "__main__":
    sys.exit(main())
