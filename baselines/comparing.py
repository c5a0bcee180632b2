"""A comparison in one environment: its plan, and one walk through it.

The warm start first, then the cells that are not finished, side by side. Everything is written
again after every finished cell, so that a comparison that is stopped, in whatever way, has the
outputs of what was finished, and the same command goes on from there.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from baselines import report_table
from baselines.cells import Cell, Command, train_command
from baselines.comparison import WARM_START, Row, check_rows, read_row
from baselines.displays import Display
from baselines.jobs import Ended, Job, run_jobs
from baselines.outputs import FILES, write_outputs
from baselines.recipe_files import Plan
from baselines.runs import code_version, versions, write_json

SCRIPTED = ("expert", "random")
"""Agents that need no model."""
_OURS = ("warm_start", "cells", "comparison.json", *FILES)


class Stale(Exception):
    """The folder holds results that do not belong to this comparison."""


@dataclass(frozen=True)
class Chosen:
    """What of a plan is compared, and how.

    out: folder; an environment that the plan names has one in it.
    jobs: cells side by side.
    model: that all start from, instead of the recipe's.
    """

    out: Path
    methods: tuple[str, ...]
    seeds: tuple[int, ...]
    agents: tuple[str, ...] = ()
    jobs: int = 1
    model: str | None = None


class Comparison:
    """The plan, and one walk through it."""

    def __init__(
        self, plan: Plan, environment: str, chosen: Chosen, command: Command, console: Console
    ) -> None:
        self.out = chosen.out / environment
        self._plan = plan
        self._environment = environment
        self._settings = plan.options(environment)
        if chosen.model is not None:
            self._settings["model"] = chosen.model
        self._chosen = chosen
        self._command = command
        self._console = console
        self._warm = Cell(None, None, self.out, environment)
        self._agents = [
            Cell(None, None, self.out, environment, agent=name) for name in chosen.agents
        ]
        self._order = [*chosen.agents, *chosen.methods]
        self._cells = [
            *self._agents,
            *(
                Cell(name, seed, self.out, environment, plan.declared)
                for seed in chosen.seeds
                for name in chosen.methods
            ),
        ]
        self._asked = shlex.join(
            [
                *("python", "-m", "scripts.compare", "--config", str(_shown(plan.path))),
                *(("--environments", environment) if environment else ()),
                *("--methods" if plan.declared else "--estimators", *chosen.methods),
                *("--seeds", *map(str, chosen.seeds)),
                *(("--model", chosen.model) if chosen.model is not None else ()),
            ]
        )

    def show_plan(self) -> None:
        """List the cells in the order in which they run, and which are finished."""
        for cell in (self._warm, *self._cells):
            state = "finished" if cell.result.exists() else "to run"
            where = f"{self._environment}: " if self._environment else ""
            self._console.print(f"{where}{cell.name}: {state}", markup=False, highlight=False)

    def run(self, lock: int, fresh: bool) -> int:
        """Run the warm start and the cells that are not finished; see ``main``.

        Raises:
            Stale: results of another comparison are in the way.
        """
        self.out.mkdir(parents=True, exist_ok=True)
        if fresh:
            self._move_aside()
        if not self._warm_start_is_ours():
            what = self._environment or "Warm start"
            self._console.print(f"{what}: making or finding the policy that all start from")
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
        ours: dict[str, Mapping[str, object]] = {
            "config": self._settings,
            "versions": versions(),
            "code": {"sources": code_version()["sources"]},
        }
        if self._plan.declared:
            ours["methods"] = self._plan.methods[self._environment]
        if note.exists():
            found = json.loads(note.read_text(encoding="utf-8"))
            if found == ours:
                if not self._warm.result.exists():
                    return False
                model = _trusted(self._warm).model
                return Path(str(model)).is_dir() or model == self._settings.get("model")
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
                self._command(self._plan.path, cell, self._start(cell, start)),
                threads=1 if start else min(2, os.cpu_count() or 1),
            )
            for cell in cells
        ]
        total = len(self._cells) if start else 1
        failed: list[str] = []
        with (
            Display(self._console, total, total - len(jobs), self._chosen.jobs) as display,
            closing(run_jobs(jobs, self._chosen.jobs, display, lock)) as all_ended,
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

    def rows(self) -> list[Row]:
        """Return the finished rows, in the order of the table."""
        done = [cell for cell in (self._warm, *self._cells) if cell.result.exists()]
        return sorted((read_row(cell.result) for cell in done), key=self._place)

    def _write(self) -> None:
        """Write rows, table and curves of what is finished, and print the table."""
        done = [cell for cell in (self._warm, *self._cells) if cell.result.exists()]
        rows = [read_row(cell.result) for cell in done]
        by_cell = list(zip(rows, done, strict=True))
        start = rows[0]
        whole = [
            {**row.logged, "command": self._again(cell, start), "config": self._settings}
            for row, cell in by_cell
        ]
        rows = sorted(rows, key=self._place)
        notes = report_table.notes(rows, len(self._cells), self._asked)
        folders = {row.name: cell.folder for row, cell in by_cell}
        table = write_outputs(self.out, rows, folders, whole, notes, self._plan.target_success)
        shown = notes if len(done) == 1 + len(self._cells) else notes[:1]  # all of them only once
        if not self._console.is_terminal:
            brief = report_table.markdown(table, shown)
            self._console.print(brief, markup=False, highlight=False, soft_wrap=True)
            return
        self._console.print(report_table.terminal(table))
        for note in shown:
            self._console.print(note, markup=False, highlight=False)

    def _start(self, cell: Cell, start: Row | None) -> str | None:
        """Return the model that a cell starts from, where it is told one."""
        if cell.agent in SCRIPTED:
            return None
        return self._chosen.model if start is None else start.model

    def _again(self, cell: Cell, start: Row) -> str:
        """Write the command that makes a row again."""
        model = self._start(cell, None if cell is self._warm else start)
        words = train_command(_shown(self._plan.path), cell, model, python="python")
        return shlex.join(
            words[: words.index("--resume_from_checkpoint")] if cell.method else words
        )

    def _place(self, row: Row) -> tuple[int, int]:
        first = -1 if row.method == WARM_START else self._order.index(row.method)
        return first, row.seed or 0

    def _move_aside(self) -> None:
        """Move all that an earlier comparison left into a new folder beside it."""
        found = [self.out / n for n in _OURS if (self.out / n).exists()]
        if not found:
            return
        number = 1
        while (aside := self.out / f"earlier-{number}").exists():
            number += 1
        aside.mkdir()
        for path in found:
            path.rename(aside / path.name)
        self._console.print(f"Moved what was in {self.out} to {aside}")


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
    if row.name != cell.name:
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
