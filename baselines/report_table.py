"""The table of a comparison as Markdown, as CSV and for the terminal, and what stands under it."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from rich.table import Table

from baselines.comparison import WARM_START, Line, Row
from baselines.estimates import RESAMPLES
from baselines.panel_words import panel_size

_POSITIONS = {"no": "no: interval includes the warm start"}


def columns(table: Sequence[Line]) -> list[str]:
    """Name the columns; a score column only where a score is not just success."""
    scored = ["score"] if any(abs(line.score - line.success) > 1e-9 for line in table) else []
    kinds = [f"{kind.replace('_', ' ')} %" for kind in _kinds(table)]
    first = ["estimator", "seeds", "success %", "95 % interval", *scored, *kinds]
    return [*first, "steps an episode", "rows trained a run", "above warm start"]


def cells(table: Sequence[Line]) -> list[list[str]]:
    """Write every line, in the order of ``columns``."""
    scored = "score" in columns(table)
    body = []
    for line in table:
        first = line.name == WARM_START
        bounds = "n/a" if line.interval is None else "{:.1f} to {:.1f}".format(*_percent(line))
        body.append(
            [
                line.name,
                "" if first else ", ".join(map(str, line.seeds)),
                f"{100 * line.success:.1f}",
                bounds,
                *([f"{line.score:.3f}"] if scored else []),
                *(_share(line, kind) for kind in _kinds(table)),
                f"{line.steps:.1f}",
                f"{line.rows_trained:,.0f}",
                "" if first else _POSITIONS.get(line.above_warm_start, line.above_warm_start),
            ]
        )
    return body


def markdown(table: Sequence[Line], notes: Sequence[str]) -> str:
    """Write the table and its notes as Markdown."""
    head = columns(table)
    rows = [head, ["---", *["---:"] * (len(head) - 2), "---"], *cells(table)]
    text = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    return text + "\n\n" + "\n".join(f"- {note}" for note in notes) + "\n"


def csv_text(table: Sequence[Line]) -> str:
    """Write the table's numbers, unrounded; rates as shares."""
    out = io.StringIO()
    kinds = _kinds(table)
    write = csv.writer(out, lineterminator="\n")
    names = ["estimator", "seeds", "success", "low", "high", "score", *kinds]
    write.writerow([*names, "steps", "rows_trained", "above_warm_start"])
    for line in table:
        write.writerow(
            [
                line.name,
                " ".join(map(str, line.seeds)),
                line.success,
                *(line.interval or ("", "")),
                line.score,
                *(line.success_by.get(kind, "") for kind in kinds),
                line.steps,
                line.rows_trained,
                line.above_warm_start,
            ]
        )
    return out.getvalue()


def terminal(table: Sequence[Line]) -> Table:
    """Draw the table for a terminal."""
    drawn = Table()
    for number, name in enumerate(columns(table)):
        drawn.add_column(name, justify="right" if number else "left")
    for row in cells(table):
        drawn.add_row(*row)
    return drawn


def notes(rows: Sequence[Row], planned: int, command: str) -> list[str]:
    """Say what a reader needs to judge the table and to get it again.

    Args:
        rows: that made the table; they share what ``comparison.check_rows`` checks.
        planned: cells of the whole comparison, not counting the warm start.
        command: that made the table.
    """
    one, panel = rows[0], rows[0].panel
    done = sum(row.method != WARM_START for row in rows)
    rule = next((row.checkpoint_rule for row in rows if row.trained), one.checkpoint_rule)
    settings = ", ".join(f"{key}={value}" for key, value in one.env_settings.items())
    seeds = ", ".join(map(str, one.eval_seeds))
    return [
        *([] if done == planned else [f"Partial: {done} of {planned} cells."]),
        f"Panel {panel['name']}: {panel_size(panel, 'games')}, "
        f"hash {panel['hash']}, of {one.env_id} "
        f"({settings or 'default settings'}); each game once per evaluation seed ({seeds}).",
        "Success is the environment's own criterion: mean over training seeds, games and "
        f"evaluation seeds. Evaluated checkpoint: {rule}.",
        f"Interval: 95 % percentile interval of a stratified bootstrap, {RESAMPLES:,} resamples, "
        "generator seed 0. For each game on its own, runs (training seeds; of the warm start, "
        "evaluation seeds) are drawn with replacement; a game's value in a run is its mean over "
        "evaluation seeds. Games are not resampled, and a run's games are drawn independently of "
        "each other. One run has no interval.",
        "Above warm start: yes if the interval's lower end exceeds the warm start's success, "
        "below if its upper end falls short of it.",
        f"All start from weights {_said(rows, 'model_hash')}; recipe "
        f"{_said(rows, 'recipe_hash')}; convention {_said(rows, 'convention')}.",
        "Versions: " + ", ".join(f"{name} {number}" for name, number in one.versions.items()) + ".",
        f"Command: {command}",
    ]


def _said(rows: Sequence[Row], key: str) -> str:
    """Return what the rows that have a key agree on."""
    return str(next((value for row in rows if (value := getattr(row, key)) is not None), "n/a"))


def _kinds(table: Sequence[Line]) -> list[str]:
    return sorted({kind for line in table for kind in line.success_by})


def _share(line: Line, kind: str) -> str:
    return f"{100 * line.success_by[kind]:.1f}" if kind in line.success_by else ""


def _percent(line: Line) -> tuple[float, float]:
    low, high = line.interval or (float("nan"), float("nan"))
    return 100 * low, 100 * high
