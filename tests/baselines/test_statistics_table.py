import json

import pytest

from baselines.comparison import MixedRows
from baselines.costs import cost_to, read_costs
from baselines.latex_table import joint_latex, latex
from baselines.outputs import FILES, write_outputs
from baselines.statistics_table import csv_text, markdown, statistics
from tests.baselines.toy_rows import row

ROWS = [
    row(None, None, [[0, 0], [1, 0]]),
    row("gigpo", 1, [[1, 1], [1, 1]], in_distribution={"success": 1.0}),
    row("gigpo", 2, [[1, 1], [1, 0]], in_distribution={"success": 0.75}),
    row("grpo", 1, [[0, 0], [0, 0]], in_distribution={"success": 0.5}),
    row("grpo", 2, [[1, 1], [1, 0]], in_distribution={"success": 0.5}),
]


@pytest.fixture
def folders(tmp_path):
    """gigpo reaches 0.5 after 10 iterations, grpo with one seed at once, with the other never."""
    reached = {"gigpo-seed1": 10, "gigpo-seed2": 5, "grpo-seed1": None, "grpo-seed2": 5}
    for name, when in reached.items():
        folder = tmp_path / name
        folder.mkdir()
        lines = [
            {
                **{"iteration": i, "seconds/total": 6.0, "episodes": 8, "episode_length": 2.0},
                **{"rows": 16, "prompt_tokens": 100.0, "completion_tokens": 10.0},
            }
            for i in range(1, 11)
        ]
        (folder / "metrics.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))
        evaluations = [
            {"iteration": i, "success": 0.6 if when is not None and i >= when else 0.1}
            for i in (0, 5, 10)
        ]
        (folder / "evaluations.jsonl").write_text(
            "".join(json.dumps(x) + "\n" for x in evaluations)
        )
    return {**{name: tmp_path / name for name in reached}, "warm start": tmp_path / "warm_start"}


def test_costs_are_summed_up_to_the_first_evaluation_that_reached_the_target(folders):
    spent = cost_to(folders["gigpo-seed2"], 0.5)
    assert (spent.iteration, spent.seconds, spent.rows, spent.episodes) == (5, 30.0, 80, 40)
    assert spent.tokens == 5 * 8 * 2 * 110
    assert cost_to(folders["grpo-seed1"], 0.5) is None
    assert cost_to(folders["gigpo-seed1"], 0.05).tokens == 0.0  # before any training
    assert read_costs(folders["warm start"])[-1].counts()["rows"] == 0


def test_spread_gap_and_costs_of_a_method(folders):
    warm, gigpo, grpo = statistics(ROWS, folders, 0.5).methods
    assert (gigpo.success, gigpo.deviation) == (0.875, 0.125)  # of 1 and 3/4
    assert (gigpo.in_distribution, gigpo.gap) == (0.875, 0.0)
    assert (grpo.success, grpo.gap) == (0.375, 0.125)
    assert (gigpo.reached, gigpo.seconds) == (2, 45.0)  # 60 s and 30 s
    assert (grpo.reached, grpo.seconds, grpo.tokens) == (1, 30.0, 8800.0)
    assert (warm.reached, warm.deviation, warm.in_distribution) == (0, 0.25, None)


def test_pairs_compare_runs_on_each_game(folders):
    [pair] = statistics(ROWS, folders, 0.5).pairs
    # Game 0: gigpo 1, 1 against grpo 0, 1: 3/4. Game 1: 1, 1/2 against 0, 1/2: (1 + 1 + 1 + 1/2)/4.
    assert (pair.method, pair.other, pair.probability) == ("gigpo", "grpo", (0.75 + 0.875) / 2)


def test_statistics_are_written_for_people_and_for_programs(folders):
    found = statistics(ROWS, folders, 0.5)
    text = markdown(found, ROWS, 0.5)
    assert "| gigpo | 2 | 87.5 (12.5) |" in text
    assert "2 of 2 | 0.8 |" in text
    assert "| gigpo | grpo | 0.81 |" in text
    assert "minutes to 50 %" in text
    assert csv_text(found).splitlines()[0].startswith("method,seeds,success,deviation")


def test_latex_has_the_papers_layout():
    alfworld = [
        row("milegpo", seed, wins, env_id="milegpo/ALFWorld-v0")
        for seed, wins in ((1, [[1, 0], [1, 0]]), (2, [[1, 1], [1, 0]]))
    ]
    text = latex(alfworld)
    assert r"\toprule" in text
    assert r"Method & look & pick & All \\" in text
    # All: 50 and 75, mean 62.5, population deviation 12.5.
    assert r"62.5 {\small $\pm$ 12.5}" in text
    shop = latex([row("grpo", 1, [[1, 0], [0, 0]], env_id="milegpo/WebShop-v0")])
    assert "Score & Succ." in shop
    assert "Pick" not in shop


def test_environments_stand_side_by_side_in_one_latex_table():
    half, all_ = [[1, 0], [1, 0]], [[1, 1], [1, 1]]
    tables = {
        "rooms": [row(name, 1, half, env_id="milegpo/ALFWorld-v0") for name in ("a_b&c", "x")],
        "shop": [row("a_b&c", 1, all_, env_id="milegpo/WebShop-v0")],
        "boxes": [row("x", 1, all_, env_id="milegpo/Sokoban-v0", success_by={})],
    }
    lines = joint_latex(tables).splitlines()
    heads = r"& \multicolumn{3}{c}{ALFWorld} & \multicolumn{2}{c}{WebShop} & Sokoban \\"
    assert heads in " ".join(next(x for x in lines if "multicolumn" in x).split())
    assert r"Method & look & pick & All & Score & Succ. & Success \\" in lines
    full, none, fifty = (rf"{x} {{\small $\pm$ 0.0}}" for x in ("100.0", "0.0", "50.0"))
    assert rf"a\_b\&c & {none} & {full} & {fifty} & {full} & {full} & -- \\" in lines
    assert rf"x & {none} & {full} & {fifty} & -- & -- & {full} \\" in lines


def test_two_places_in_one_environment_are_named_as_in_the_recipe_file():
    one = [row("grpo", 1, [[1, 0], [1, 0]], env_id="milegpo/WebShop-v0")]
    text = joint_latex({"webshop": one, "webshop-30": one})
    assert r"\multicolumn{2}{c}{webshop} & \multicolumn{2}{c}{webshop-30}" in text


@pytest.mark.parametrize(
    ("field", "value"),
    [("code", {"sources": "x"}), ("versions", {"torch": "2"}), ("convention", "verl-agent")],
)
def test_environments_of_other_code_are_not_put_side_by_side(field, value):
    win = [[1, 1], [1, 1]]
    with pytest.raises(MixedRows, match="differ in"):
        joint_latex({"one": [row("grpo", 1, win)], "two": [row("grpo", 1, win, **{field: value})]})


def test_every_output_is_written(folders, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    write_outputs(out, ROWS, folders, [r.logged for r in ROWS], ["A note."], 0.5)
    assert sorted(path.name for path in out.iterdir()) == sorted(FILES)
