"""Learning curves of a comparison: success on the held-out panel by training iteration."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from baselines.comparison import WARM_START, Row
from baselines.panel_words import panel_size

# Okabe and Ito's palette, told apart with any colour vision; yellow last, it is faint on white.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")

Curve = Mapping[int, float]  # iteration -> success


def read_curve(row: Row, folder: Path) -> Curve:
    """Read a cell's evaluations while training, and add its result as the last point."""
    path = folder / "evaluations.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    records = [json.loads(line) for line in lines]
    during = {int(record["iteration"]): float(record["success"]) for record in records}
    return {**during, row.iterations: row.success}


def draw_curves(rows: Sequence[Row], curves: Mapping[str, Curve], path: Path) -> None:
    """Draw a method's mean over seeds, a band from its lowest to its highest seed, the start.

    Args:
        rows: finished cells and the warm start.
        curves: of the trained rows, by the row's name.
        path: PNG to write.

    Raises:
        ModuleNotFoundError: matplotlib is missing; names the extra that installs it.
    """
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            'Curves need matplotlib: pip install "milegpo[report]"'
        ) from error

    figure = Figure(figsize=(7.5, 4.8), layout="constrained")  # draws with Agg, without a display
    axes = figure.subplots()
    names = list(dict.fromkeys(row.method for row in rows if row.trained))
    for number, name in enumerate(names):
        colour = _COLOURS[number % len(_COLOURS)]
        cells = [row for row in rows if row.trained and row.method == name]
        own = [curves[row.name] for row in cells]
        at = sorted(set.intersection(*(set(curve) for curve in own)))
        values = 100 * np.array([[curve[x] for x in at] for curve in own])  # (seeds, points)
        seeds = ", ".join(str(row.seed) for row in cells)
        label = f"{name} (seed{'s' if len(cells) > 1 else ''} {seeds})"
        axes.plot(at, values.mean(0), color=colour, marker="o", markersize=4, label=label)
        axes.fill_between(at, values.min(0), values.max(0), color=colour, alpha=0.15, linewidth=0)
    for row in rows:
        if row.method == WARM_START:
            axes.axhline(100 * row.success, color="grey", linestyle="--", label=WARM_START)
            axes.plot([0], [100 * row.success], color="grey", marker="s", markersize=5)
    panel = rows[0].panel
    trained = sorted({row.seed for row in rows if row.seed is not None})
    axes.set(
        xlabel="training iteration",
        ylabel="success on the panel, one evaluation seed, %",
        ylim=(-2, 102),
        title=f"{rows[0].env_id}, seeds {', '.join(map(str, trained)) or 'none yet'}\n"
        f"panel {panel['name']} ({panel_size(panel, 'games')}); mean, lowest and highest seed",
    )
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    unfinished = path.with_name(f"unfinished-{path.name}")
    figure.savefig(unfinished, dpi=150)
    unfinished.replace(path)
