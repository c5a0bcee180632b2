"""A result row on the terminal: how well, how sure, by kind of task, and how episodes went."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from baselines.panel_words import panel_size

Row = Mapping[str, Any]  # Any: a result row as it is written, JSON


def summary_tables(row: Row) -> list[Table]:
    """Draw a result row: all tasks and each kind of task, then how its episodes ended."""
    panel = row["panel"]
    seeds = ", ".join(map(str, row["eval_seeds"]))
    found = Table(
        title=f"{panel['name']}, {panel_size(panel)}, seeds {seeds}",
        caption=_interval(row),
    )
    found.add_column("tasks")
    for name in (
        *("episodes", "success % (sd)", "score (sd)", "steps"),
        *("format valid %", "action valid %"),
    ):
        found.add_column(name, justify="right")
    kinds = row["by_type"] if len(row["by_type"]) > 1 else {}
    for kind, part in kinds.items():
        found.add_row(kind.replace("_", " "), str(part["episodes"]), *_cells(part))
    found.add_row("all", str(len(row["episodes"])), *_cells(row), style="bold")
    ends = Table(title="ends of episodes")
    ends.add_column("reason")
    ends.add_column("episodes", justify="right")
    for reason, number in row["stops"].items():
        ends.add_row(reason, str(number))
    return [found, ends]


def _cells(part: Row) -> list[str]:
    return [
        f"{100 * part['success']:.1f} ({100 * part['success_std']:.1f})",
        f"{part['score']:.3f} ({part['score_std']:.3f})",
        f"{part['steps']:.1f}",
        f"{100 * part['format_valid']:.1f}",
        f"{100 * part['action_valid']:.1f}",
    ]


def _interval(row: Row) -> str:
    deviations = "sd: population standard deviation over seeds"
    if row["success_interval"] is None:
        return f"{deviations}; one seed has no interval"
    low, high = row["success_interval"]
    return (
        f"{deviations}; success: 95 % interval {100 * low:.1f} to {100 * high:.1f} %, "
        "stratified bootstrap over seeds"
    )
