"""A table of result rows from anywhere: runs, comparisons, evaluations."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from baselines import report_table
from baselines.comparison import WARM_START, Row, check_rows
from baselines.outputs import write_outputs
from baselines.recipe_files import TARGET_SUCCESS
from baselines.runs import RESULT


def read_rows(paths: Sequence[Path]) -> list[Row]:
    """Read result files: a row as JSON, or a row a line.

    Raises:
        ValueError: a file is not there, or holds something else; names it.
    """
    rows: list[Row] = []
    for path in paths:
        if not path.is_file():
            raise ValueError(f"no file {path}: name result.json or results.jsonl of a run.")
        try:
            text = path.read_text(encoding="utf-8")
            parts = text.splitlines() if path.suffix == ".jsonl" else [text]
            found = [Row.of(json.loads(part)) for part in parts if part.strip()]
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path} cannot be read: {error}") from error
        if not found:
            raise ValueError(f"{path} holds no row: leave it out.")
        rows += found
    return rows


def write_table(paths: Sequence[Path], out: Path, console: Console) -> int:
    """Write tables of rows to a folder, and print the main one; 0 where that went well.

    Costs and curves come from the run folder that a result.json lies in.

    Raises:
        MixedRows: the rows do not belong in one table.
        ValueError: a file is not one of rows, or two rows are of one cell.
    """
    rows = [(row, path) for path in paths for row in read_rows([path])]
    names = [row.name for row, _ in rows]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"Two rows are of {', '.join(twice)}: leave one out.")
    check_rows([row for row, _ in rows])
    rows.sort(key=lambda pair: (pair[0].method != WARM_START, pair[0].trained))
    folders = {
        row.name: path.parent if path.name == RESULT else _cell(path.parent, row)
        for row, path in rows
    }
    out.mkdir(parents=True, exist_ok=True)
    command = " ".join(["python -m scripts.compare --rows", *map(str, paths)])
    own = [row for row, _ in rows]
    planned = sum(row.method != WARM_START for row in own)
    notes = report_table.notes(own, planned, command)
    table = write_outputs(out, own, folders, [r.logged for r in own], notes, TARGET_SUCCESS)
    text = report_table.markdown(table, notes)
    console.print(text, markup=False, highlight=False, soft_wrap=True)
    console.print(f"Written to {out}", markup=False)
    return 0


def _cell(folder: Path, row: Row) -> Path:
    return folder / "cells" / row.name
