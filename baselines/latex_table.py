r"""Comparisons as a LaTeX table in the layout of the papers; needs \usepackage{booktabs}.

A line a method; for every environment its columns side by side: ALFWorld has one for each kind of
task and one for all, WebShop score and success, any other environment success. Entries are
percentages, mean and population standard deviation over training seeds (of what is not trained,
over evaluation seeds); a method that was not compared in an environment has a dash there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, pstdev

from baselines.comparison import Row, check_rows, check_same_code
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
    """Write the table of one environment; raises what ``joint_latex`` does."""
    return joint_latex({"": rows})


def joint_latex(tables: Mapping[str, Sequence[Row]]) -> str:
    """Write the table of several environments.

    Args:
        tables: rows of each environment, by the name it has in the recipe file.

    Raises:
        MixedRows: rows of different conventions, code or versions, or of one environment that do
            not match.
        ModuleNotFoundError: pandas or jinja2 is missing; names the extra that installs them.
    """
    try:
        import jinja2  # noqa: F401  # pandas writes LaTeX with it
        import pandas as pd
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            'Tables in LaTeX need pandas and jinja2: pip install "milegpo[report]"'
        ) from error

    every = [row for rows in tables.values() for row in rows]
    check_same_code(every)
    for rows in tables.values():
        check_rows(rows)
    methods = list(dict.fromkeys(row.method for row in every))
    columns = [
        ((title, column), rows, value)
        for title, rows in zip(_titles(tables), tables.values(), strict=True)
        for column, value in _columns(rows).items()
    ]
    body = [
        [_entry([r for r in rows if r.method == method], value) for _, rows, value in columns]
        for method in methods
    ]
    frame = pd.DataFrame(body, index=[_escaped(method) for method in methods])
    heads = pd.MultiIndex.from_tuples([head for head, _, _ in columns], names=["", "Method"])
    frame.columns = heads if len(tables) > 1 else heads.droplevel(0)
    text: str = frame.style.to_latex(
        hrules=True,
        multicol_align="c",
        caption=_escaped(_caption(tables)),
        column_format="l" + "c" * len(columns),
    )
    return text


def _titles(tables: Mapping[str, Sequence[Row]]) -> list[str]:
    """Name environments as they are registered; as the recipe file does where two are the same."""
    short = [rows[0].env_id.removeprefix("milegpo/").partition("-v")[0] for rows in tables.values()]
    return [_escaped(name) for name in (short if len({*short}) == len(short) else tables)]


def _caption(tables: Mapping[str, Sequence[Row]]) -> str:
    places = [
        f"{rows[0].env_id}, panel {rows[0].panel['name']} ({panel_size(rows[0].panel)}, hash "
        f"{rows[0].panel['hash']})"
        for rows in tables.values()
    ]
    return f"{'; '.join(places)}; in per cent, mean and population standard deviation over seeds."


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
    if not cells:
        return "--"
    if cells[0].trained:
        found = [value(row, None) for row in cells]
    else:
        found = [value(cells[0], seed) for seed in cells[0].eval_seeds]
    return rf"{fmean(found):.1f} {{\small $\pm$ {pstdev(found):.1f}}}"


_SPECIAL = str.maketrans(
    {
        **{sign: rf"\{sign}" for sign in "_%&#${}"},
        **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    }
)


def _escaped(text: str) -> str:
    return text.translate(_SPECIAL)
