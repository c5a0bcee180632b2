"""From result rows to a table and a picture: reads logged rows, refuses those that do not match.

The interval of a row of the table is the stratified bootstrap of rliable (arXiv:2108.13264): a matrix of
runs x games, each entry a game's success averaged over the evaluation seeds; runs are resampled
with replacement within each game, the mean is taken, and the 2.5 and 97.5 percentiles of 5,000
resamples are reported. Games are not resampled: the interval speaks of this panel. The runs of the
warm start, which is one model, are its evaluation seeds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Row = Mapping[str, Any]  # Any: parsed JSON
RESAMPLES = 5000
WARM_START = "warm start"
SHARED = ("panel", "eval_seeds", "model_hash", "recipe_hash", "convention", "versions", "env_id")
"""What rows of one table have in common."""

# Okabe and Ito's palette, told apart with any colour vision.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000")


class MixedRows(ValueError):
    """Rows that cannot stand in one table."""


@dataclass(frozen=True)
class Line:
    """One line of the table; rates are shares, low and high the 95 % interval if there is one."""

    name: str
    runs: int
    success: float
    low: float | None
    high: float | None
    success_by: Mapping[str, float]
    steps: float
    rows_trained: float

    def verdict(self, warm_success: float) -> str:
        """Say where the interval lies relative to the warm start's success."""
        if self.low is None or self.high is None:
            return "too few runs"
        if self.low > warm_success:
            return "yes"
        return "below" if self.high < warm_success else "no: interval includes it"


def check_rows(rows: Sequence[Row]) -> None:
    """Refuse rows of different panels, models, recipes, conventions or versions.

    Raises:
        MixedRows: names the field and two rows that differ in it.
    """
    for row in rows[1:]:
        for key in SHARED:
            if row[key] != rows[0][key]:
                raise MixedRows(
                    f"{cell_name(row)} and {cell_name(rows[0])} differ in {key}: {row[key]} and "
                    f"{rows[0][key]}. Compare runs of one recipe, or choose another --output_dir."
                )


def cell_name(row: Row) -> str:
    """Name a row: estimator and seed."""
    return WARM_START if row["estimator"] is None else f"{row['estimator']}-seed{row['seed']}"


def lines(rows: Sequence[Row]) -> list[Line]:
    """Summarise rows by estimator, the warm start first, in the order in which they come."""
    check_rows(rows)
    names = list(dict.fromkeys(row["estimator"] for row in rows))
    ordered = sorted(names, key=lambda name: name is not None)
    return [_line(name, [row for row in rows if row["estimator"] == name]) for name in ordered]


def interval(scores: NDArray[np.float64]) -> tuple[float, float] | None:
    """Return the 95 % interval of the mean of scores (runs, games); None for a single run.

    What rliable's ``get_interval_estimates`` computes with ``aggregate_mean``; that one draws from
    numpy's global generator whatever ``random_state`` it is given, so it cannot be reproduced.
    """
    runs, games = scores.shape
    if runs < 2:
        return None
    rng = np.random.default_rng(0)
    means = np.empty(RESAMPLES)
    for at in range(RESAMPLES):
        means[at] = scores[rng.integers(runs, size=(runs, games)), np.arange(games)].mean()
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


def markdown(table: Sequence[Line], rows: Sequence[Row], planned: int) -> str:
    """Write the table with everything a reader needs to judge it."""
    warm = next((line.success for line in table if line.name == WARM_START), float("nan"))
    kinds = list(table[0].success_by)
    head = ["estimator", "seeds", "success %", "95 % interval", *kinds, "steps", "rows trained"]
    head += ["above the warm start"]
    body = []
    for line in table:
        first = line.name == WARM_START
        bounds = (
            "n/a" if line.low is None else f"{100 * line.low:.1f} to {100 * (line.high or 0):.1f}"
        )
        body.append(
            [
                line.name,
                "" if first else str(line.runs),
                f"{100 * line.success:.1f}",
                bounds,
                *(f"{100 * line.success_by[kind]:.1f}" for kind in kinds),
                f"{line.steps:.1f}",
                "" if first else f"{line.rows_trained:,.0f}",
                "" if first else line.verdict(warm),
            ]
        )
    cells = [head, ["---"] * len(head), *body]
    done = sum(row["estimator"] is not None for row in rows)
    one = rows[0]
    versions = ", ".join(f"{name} {number}" for name, number in one["versions"].items())
    notes = [
        "" if done == planned else f"Partial: {done} of {planned} cells.\n",
        f"Panel {one['panel']['name']} ({one['panel']['size']} games, hash "
        f"{one['panel']['hash']}), each game once per evaluation seed "
        f"({', '.join(map(str, one['eval_seeds']))}); success is the environment's own criterion.",
        "Interval: stratified bootstrap over runs within each game, 5,000 resamples (the warm "
        "start's runs are its evaluation seeds).",
        f"Model {one['model_hash']}, recipe {one['recipe_hash']}, convention {one['convention']}, "
        f"checkpoint: {one['checkpoint_rule']}. {versions}.",
    ]
    return "\n".join("| " + " | ".join(row) + " |" for row in cells) + "\n\n" + "\n".join(notes)


def draw_curves(rows: Sequence[Row], folders: Mapping[str, Path], path: Path) -> None:
    """Draw held-out success by iteration: mean over seeds, band from lowest to highest."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    names = list(dict.fromkeys(row["estimator"] for row in rows if row["estimator"] is not None))
    for name, colour in zip(names, _COLOURS, strict=False):
        cells = [row for row in rows if row["estimator"] == name]
        curves = [dict(_curve(folders[cell_name(row)])) for row in cells]
        at = sorted(set.intersection(*(set(curve) for curve in curves)))
        values = 100 * np.array([[curve[x] for x in at] for curve in curves])  # (seeds, points)
        label = f"{name} ({len(cells)} seeds)" if len(cells) > 1 else f"{name} (1 seed)"
        axes.plot(at, values.mean(0), color=colour, marker="o", markersize=4, label=label)
        axes.fill_between(at, values.min(0), values.max(0), color=colour, alpha=0.15, linewidth=0)
    for row in rows:
        if row["estimator"] is None:
            axes.axhline(100 * row["success"], color="grey", linestyle="--", label=WARM_START)
    panel = rows[0]["panel"]
    axes.set(
        xlabel="iteration",
        ylabel="held-out success, %",
        ylim=(0, 100),
        title=f"{rows[0]['env_id']}, {panel['name']} ({panel['size']} games)",
    )
    axes.legend(frameon=False)
    unfinished = path.with_name(f"unfinished-{path.name}")
    figure.savefig(unfinished, dpi=150)
    plt.close(figure)
    unfinished.replace(path)


def _line(name: str | None, rows: Sequence[Row]) -> Line:
    scores = np.concatenate([_scores(row, by_seed=name is None) for row in rows])
    bounds = interval(scores)
    kinds = sorted({kind for row in rows for kind in row["success_by"]})
    return Line(
        name=WARM_START if name is None else name,
        runs=len(rows),
        success=float(scores.mean()),
        low=bounds and bounds[0],
        high=bounds and bounds[1],
        success_by={k: float(np.mean([row["success_by"][k] for row in rows])) for k in kinds},
        steps=float(np.mean([row["steps"] for row in rows])),
        rows_trained=float(np.mean([row["rows_trained"] for row in rows])),
    )


def _scores(row: Row, by_seed: bool) -> NDArray[np.float64]:
    """Success of a row's games: (seeds, games), or their mean over seeds (1, games)."""
    seeds = row["eval_seeds"]
    games = sorted({episode["task_id"] for episode in row["episodes"]})
    found = {(e["seed"], e["task_id"]): float(e["success"]) for e in row["episodes"]}
    scores = np.array([[found[seed, game] for game in games] for seed in seeds])
    return scores if by_seed else scores.mean(axis=0, keepdims=True)


def _curve(folder: Path) -> list[tuple[int, float]]:
    path = folder / "evaluations.jsonl"
    if not path.exists():
        return []
    records = [json.loads(line) for line in path.read_text().splitlines()]
    return [(int(record["iteration"]), float(record["success"])) for record in records]
