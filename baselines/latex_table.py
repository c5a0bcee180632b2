r"""A comparison as a LaTeX table in the layout of the papers; needs \usepackage{booktabs}.

ALFWorld has a column for each kind of task and one for all, WebShop score and success, any other
environment success. Entries are percentages, mean and population standard deviation over training
seeds (of what is not trained, over evaluation seeds).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, pstdev

from baselines.comparison import Row
from baselines.panel_words import panel_size

SHORT: Mapping[str, str] = {
    "pick_and_place_simple": "Pick",
    "look_at_obj_in_light": "Look",
    "pick_clean_then_place_in_recep": "Clean",
    "pick_heat_then_place_in_recep": "Heat",
    "pick_cool_then_place_in_recep": "Cool",
    "pick_two_obj_and_place": "Pick2",
}
"""ALFWorld's kinds of tasks, in the papers' order and names."""

Value = Callable[[Row, int | None], float]
"""A percentage of a row, over the episodes of one evaluation seed or of all (None)."""


def latex(rows: Sequence[Row]) -> str:
    """Write the table.

    Raises:
        ModuleNotFoundError: pandas or jinja2 is missing; names the extra that installs them.
    """
    try:
        import jinja2  # noqa: F401  # pandas writes LaTeX with it
        import pandas as pd
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            'Tables in LaTeX need pandas and jinja2: pip install "milegpo[report]"'
        ) from error

    columns = _columns(rows)
    methods = list(dict.fromkeys(row.method for row in rows))
    body = [
        [_entry([r for r in rows if r.method == method], value) for value in columns.values()]
        for method in methods
    ]
    frame = pd.DataFrame(
        body, index=pd.Index([_escaped(m) for m in methods], name="Method"), columns=[*columns]
    )
    one = rows[0]
    caption = (
        f"{one.env_id}, panel {one.panel['name']} ({panel_size(one.panel)}, hash "
        f"{one.panel['hash']}), in per cent, mean and population standard deviation over seeds."
    )
    text: str = frame.style.to_latex(
        hrules=True, caption=_escaped(caption), column_format="l" + "c" * len(columns)
    )
    return text


def _columns(rows: Sequence[Row]) -> dict[str, Value]:
    env_id = rows[0].env_id
    if env_id.startswith("milegpo/WebShop"):
        return {"Score": _mean("score"), "Succ.": _mean("success")}
    kinds = {kind for row in rows for kind in row.success_by}
    ordered = [*(k for k in SHORT if k in kinds), *sorted(kinds - set(SHORT))]
    own = {SHORT.get(k, _escaped(k)): _mean("success", k) for k in ordered}
    return {**own, "All": _mean("success")} if own else {"Success": _mean("success")}


def _mean(what: str, kind: str | None = None) -> Value:
    def value(row: Row, seed: int | None) -> float:
        return 100 * fmean(
            float(getattr(e, what))
            for e in row.episodes
            if kind in (None, e.task_type) and seed in (None, e.seed)
        )

    return value


def _entry(cells: Sequence[Row], value: Value) -> str:
    if cells[0].trained:
        found = [value(row, None) for row in cells]
    else:
        found = [value(cells[0], seed) for seed in cells[0].eval_seeds]
    return rf"{fmean(found):.1f} {{\small $\pm$ {pstdev(found):.1f}}}"


def _escaped(text: str) -> str:
    return text.replace("_", r"\_").replace("%", r"\%")
