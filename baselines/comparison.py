"""From result rows to the lines of a table; rows that do not match are refused.

The interval of a line is that of ``estimates.interval``. The runs of the warm start, which is one
model, are its evaluation seeds, and so are those of an agent that is not trained.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baselines.estimates import interval
from baselines.evaluation import Played

WARM_START = "warm start"
SHARED = ("panel", "eval_seeds", "versions", "env_id", "env_settings", "protocol", "sources")
"""What all rows of one table have in common."""
OF_MODELS = (*("model_hash", "recipe_hash", "convention", "train_panel", "in_distribution_panel"),)
"""What those have in common that say it: a scripted agent has no model, and nobody trained it."""
OF_TRAINED = ("checkpoint_rule",)
"""What those have in common that were trained."""


class MixedRows(ValueError):
    """Rows that cannot stand in one table."""


@dataclass(frozen=True)
class Row:
    """A result row: one policy or agent, evaluated; see ``runs`` for its keys.

    The warm start has neither estimator nor agent. logged: everything that was written.
    """

    estimator: str | None
    seed: int | None
    env_id: str
    env_settings: Mapping[str, object]
    panel: Mapping[str, object]
    eval_seeds: tuple[int, ...]
    model: str | None
    model_hash: str | None
    recipe_hash: str | None
    convention: str | None
    checkpoint_rule: str | None
    versions: Mapping[str, str]
    iterations: int
    rows_trained: int
    success: float
    score: float
    success_by: Mapping[str, float]
    episodes: tuple[Played, ...]
    logged: Mapping[str, Any] = field(repr=False, compare=False)  # Any: parsed JSON

    @classmethod
    def of(cls, logged: Mapping[str, Any]) -> Row:  # Any: parsed JSON
        """Read the logged form.

        Raises:
            ValueError: a key is missing, or games were not played once per evaluation seed.
        """
        names = {f.name for f in fields(cls)} - {"logged"}
        if missing := sorted(names - set(logged)):
            raise ValueError(f"Not a result row: no {', '.join(missing)}.")
        row = cls(
            **{
                **{name: logged[name] for name in names},
                "panel": {**_data(logged), **logged["panel"]},
                "eval_seeds": tuple(logged["eval_seeds"]),
                "episodes": tuple(Played(**episode) for episode in logged["episodes"]),
            },
            logged=logged,
        )
        played = {(e.task_id, e.seed) for e in row.episodes}
        planned = int(logged["panel"]["size"]) * len(row.eval_seeds)
        if not len(played) == len(row.episodes) == planned:
            raise ValueError(
                f"{row.name} played {len(played)} different of {planned} episodes of its panel."
            )
        return row

    @property
    def data(self) -> str:
        """Whose games its panel's are, and how many of a folder's split are there.

        See ``Panel.data``; "" in rows that do not say.
        """
        return str(self.panel.get("data", ""))

    @property
    def trained(self) -> bool:
        """Whether it is of a policy that was trained here."""
        return self.estimator is not None

    @property
    def method(self) -> str:
        """The line of a table that it belongs to: "milegpo", "random", "milegpo react"."""
        if self.estimator is None:
            agent = self.logged.get("agent")
            return WARM_START if agent is None else str(agent["kind"])
        trained = str(self.logged.get("method") or self.estimator)
        return trained if self.prompting is None else f"{trained} {self.prompting['kind']}"

    @property
    def prompting(self) -> Mapping[str, object] | None:
        """The agent that wrote the prompts, with its settings; None for the papers' prompts."""
        agent = self.logged.get("agent")
        return None if agent is None or agent["kind"] == "direct" else dict(agent)

    @property
    def name(self) -> str:
        """The cell's name: method and seed."""
        return cell_name(self.method, self.seed) if self.trained else self.method

    @property
    def protocol(self) -> Mapping[str, object]:
        """How the environment is played; {} in rows that do not say."""
        return dict(self.logged.get("protocol", {}))

    @property
    def train_panel(self) -> Mapping[str, object] | None:
        """The tasks of its training; None in rows that do not say."""
        return self.logged.get("train_panel")

    @property
    def in_distribution_panel(self) -> Mapping[str, object] | None:
        """The panel of ``in_distribution``; None where it was not played."""
        found: Mapping[str, object] | None = self.logged.get("in_distribution", {}).get("panel")
        return found

    @property
    def sources(self) -> str:
        """The hash of the code that made it; "" in rows that do not say."""
        return str(self.logged.get("code", {}).get("sources", ""))

    @property
    def in_distribution(self) -> float | None:
        """Success on tasks like those of training, where they were played."""
        found = self.logged.get("in_distribution")
        return None if found is None else float(found["success"])

    @property
    def scores(self) -> NDArray[np.float64]:
        """Success of the games, sorted by id: (evaluation seeds, games)."""
        found = {(e.seed, e.task_id): float(e.success) for e in self.episodes}
        games = sorted({e.task_id for e in self.episodes})
        return np.array([[found[seed, game] for game in games] for seed in self.eval_seeds])

    @property
    def steps(self) -> float:
        """Mean length of its episodes."""
        return float(np.mean([e.steps for e in self.episodes]))


def _data(logged: Mapping[str, Any]) -> dict[str, object]:
    """Whose games a panel's are, in rows that say it beside the panel."""
    return {"data": logged["data"]} if "data" in logged else {}


@dataclass(frozen=True)
class Line:
    """One line of the table; rates are shares, ``interval`` is their 95 % interval if there is one.

    above_warm_start: "yes", "no" (the interval includes the warm start's success), "below", or
    "n/a" for the warm start itself and where there is no interval.
    """

    name: str
    seeds: tuple[int, ...]
    success: float
    interval: tuple[float, float] | None
    success_by: Mapping[str, float]
    score: float
    steps: float
    rows_trained: float
    above_warm_start: str


def cell_name(estimator: str, seed: int | None) -> str:
    """Name a cell, and its folder."""
    return f"{estimator}-seed{seed}"


def read_row(path: Path) -> Row:
    """Read a result file.

    Raises:
        ValueError: the file is not a result row; names it.
    """
    try:
        return Row.of(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} cannot be used: {error} Move it away, or use --fresh.") from error


def check_rows(rows: Sequence[Row]) -> None:
    """Refuse rows of different panels, models, recipes, conventions, rules, code or versions.

    Raises:
        MixedRows: names the field and two rows that differ in it.
    """
    for key in SHARED:
        _refuse_differing(rows, key)
    for key in OF_MODELS:
        _refuse_differing([row for row in rows if getattr(row, key) is not None], key)
    trained = [row for row in rows if row.trained]
    for key in OF_TRAINED:
        _refuse_differing(trained, key)
    for method in dict.fromkeys(row.method for row in trained):
        own = [row for row in trained if row.method == method]
        _refuse_differing(own, "prompting")
        for row in own[1:]:
            one, other = row.logged.get("settings"), own[0].logged.get("settings")
            if one != other:
                raise MixedRows(
                    f"{row.name} and {own[0].name} differ in settings: {one} and {other}."
                )


def check_same_code(rows: Sequence[Row]) -> None:
    """Refuse rows of other code, versions or conventions; all that environments have in common.

    Raises:
        MixedRows: names the field and two rows that differ in it.
    """
    for key in ("versions", "sources"):
        _refuse_differing(rows, key)
    _refuse_differing([row for row in rows if row.convention is not None], "convention")


def _refuse_differing(rows: Sequence[Row], key: str) -> None:
    for row in rows[1:]:
        one, other = getattr(row, key), getattr(rows[0], key)
        if one != other:
            raise MixedRows(f"{row.name} and {rows[0].name} differ in {key}: {one} and {other}.")


def lines(rows: Sequence[Row]) -> list[Line]:
    """Summarise rows by method: the warm start first, then in the order in which they come.

    Raises:
        MixedRows: see ``check_rows``.
    """
    check_rows(rows)
    warm = [row for row in rows if row.method == WARM_START]
    start = warm[0].success if warm else None
    out = [_line(WARM_START, warm[:1], warm[0].scores, None)] if warm else []
    for name in dict.fromkeys(row.method for row in rows if row.method != WARM_START):
        cells = [row for row in rows if row.method == name]
        out.append(_line(name, cells, runs(cells), start))
    return out


def runs(cells: Sequence[Row]) -> NDArray[np.float64]:
    """Return the scores of a method's rows: (runs, games).

    A run is a training seed, and an evaluation seed of what is not trained.
    """
    if cells[0].trained:
        return np.array([row.scores.mean(axis=0) for row in cells])
    return cells[0].scores


def position(bounds: tuple[float, float] | None, start: float | None) -> str:
    """Say where an interval lies relative to the warm start's success; see ``Line``."""
    if bounds is None or start is None:
        return "n/a"
    low, high = bounds
    if low > start:
        return "yes"
    return "below" if high < start else "no"


def _line(
    name: str, cells: Sequence[Row], scores: NDArray[np.float64], start: float | None
) -> Line:
    bounds = interval(scores)
    kinds = sorted({kind for row in cells for kind in row.success_by})
    return Line(
        name=name,
        seeds=tuple(row.seed for row in cells if row.seed is not None),
        success=float(scores.mean()),
        interval=bounds,
        success_by={k: float(np.mean([row.success_by[k] for row in cells])) for k in kinds},
        score=float(np.mean([row.score for row in cells])),
        steps=float(np.mean([row.steps for row in cells])),
        rows_trained=float(np.mean([row.rows_trained for row in cells])),
        above_warm_start=position(bounds, start),
    )
