import pytest

from baselines.latex_table import latex
from baselines.panel_words import panel_size
from baselines.report.sources import Run
from baselines.report.tables import results
from baselines.report_table import notes
from baselines.summary_table import summary_tables
from tests.baselines.toy_rows import logged, row

PART = {"name": "toy/held_out", "hash": "abcd", "size": 2, "data": "official 132/134"}
NEW = {"stops": {}, "by_type": {}, "success_std": 0.0, "score_std": 0.0, "steps": 4.5}
NEW |= {"format_valid": 1.0, "action_valid": 1.0, "success_interval": None}


def shown(panel):
    """Everything that shows results of a panel to people, as text."""
    one = row("grpo", 1, [[0, 1], [1, 1]], panel=panel)
    raw = logged("grpo", 1, [[0, 1], [1, 1]], panel=panel, **NEW)
    return {
        "table": "\n".join(notes([one], 1, "")),
        "latex": latex([one]),
        "evaluation": str(summary_tables(raw)[0].title),
        "report": "\n".join(results([Run("grpo-seed1", raw, [], [], [])])[0].notes),
    }


@pytest.mark.parametrize("where", shown(PART))
def test_every_table_says_how_much_of_a_split_its_panel_was_chosen_from(where):
    assert "official 132/134" in shown(PART)[where]


def test_rows_that_do_not_say_whose_tasks_theirs_are_can_be_shown():
    panel = {key: value for key, value in PART.items() if key != "data"}
    assert panel_size(panel) == "2 tasks"
    assert panel_size(PART, "games") == "2 games, official 132/134"
    assert all("official" not in text for text in shown(panel).values())
