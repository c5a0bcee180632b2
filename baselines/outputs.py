"""What a comparison writes of its finished rows: rows, tables, statistics, curves."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from baselines import report_table, statistics_table
from baselines.comparison import Line, Row, lines
from baselines.curves import draw_curves, read_curve
from baselines.latex_table import joint_latex, latex

FILES = (
    *("results.jsonl", "table.md", "table.csv", "table.tex"),
    *("statistics.md", "statistics.csv", "curves.png"),
)


def write_outputs(
    out: Path,
    rows: Sequence[Row],
    folders: Mapping[str, Path],
    logged: Sequence[Mapping[str, object]],
    notes: Sequence[str],
    target: float,
) -> list[Line]:
    """Write every output; each file is written whole or not at all.

    Args:
        out: folder to write to.
        rows: in the order of the table, the warm start first.
        folders: run folder of each row, by the row's name.
        logged: rows as they go into results.jsonl.
        notes: under the table.
        target: success to which costs are counted.

    Returns:
        The lines of the table.

    Raises:
        MixedRows: rows that do not match.
    """
    table = lines(rows)
    statistics = statistics_table.statistics(rows, folders, target)
    _replace(out / "results.jsonl", "".join(json.dumps(row) + "\n" for row in logged))
    _replace(out / "table.md", report_table.markdown(table, notes))
    _replace(out / "table.csv", report_table.csv_text(table))
    _replace(out / "table.tex", latex(rows))
    _replace(out / "statistics.md", statistics_table.markdown(statistics, rows, target))
    _replace(out / "statistics.csv", statistics_table.csv_text(statistics))
    curves = {row.name: read_curve(row, folders[row.name]) for row in rows}
    draw_curves(rows, curves, out / "curves.png")
    return table


def write_joint_table(path: Path, tables: Mapping[str, Sequence[Row]]) -> None:
    """Write the LaTeX table of several environments.

    Raises:
        MixedRows: they were not made by the same code, versions and convention.
    """
    _replace(path, joint_latex(tables))


def _replace(path: Path, text: str) -> None:
    unfinished = path.with_name(f"{path.name}.unfinished")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)
