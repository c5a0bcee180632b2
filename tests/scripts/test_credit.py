"""The credit table, and that the documentation shows what the command prints."""

import re
from pathlib import Path

import numpy as np
import pytest

from milegpo_algo import estimator_names, make_estimator
from scripts import credit
from tests.scripts.report_runs import fork, write_lines

PAGE = (Path(__file__).parents[2] / "docs" / "estimators.md").read_text(encoding="utf-8")
TABLES = re.findall(r"<!-- python -m scripts\.credit ?(.*) -->\n((?:\|.*\n)+)", PAGE)


@pytest.mark.parametrize(("arguments", "shown"), TABLES)
def test_the_page_shows_what_the_command_prints(arguments, shown, capsys):
    credit.main(arguments.split())
    assert capsys.readouterr().out == shown


def test_the_page_has_its_three_tables_and_every_name():
    assert len(TABLES) == 3
    for name in estimator_names():
        assert f"| `{name}` |" in PAGE


def test_the_page_names_settings_that_exist():
    known = {key for name in estimator_names() for key in make_estimator(name).settings()}
    for name in re.findall(r"\| `(\w+)`(?: \(`\w+`\))? \| \"", PAGE):
        assert name in known


def test_one_task_of_a_file_can_be_shown(tmp_path, capsys):
    pytest.importorskip("pyarrow")
    credit.example().to_parquet(tmp_path / "steps.parquet")
    arguments = [str(tmp_path / "steps.parquet"), "--estimators", "grpo", "--task"]
    credit.main([*arguments, "q"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 12
    assert lines[2] == "| 1 | 0 | S | A | 0.730 |"
    with pytest.raises(SystemExit) as ended:
        credit.main([*arguments, "p"])
    assert ended.value.code == 2
    assert "no task 'p' among the 1 given: q" in capsys.readouterr().err


def test_a_malformed_step_says_so():
    assert "1 (malformed)" in credit.table(credit.example(), {"x": np.zeros(10)})


def test_a_training_run_s_episodes_can_be_shown(tmp_path, capsys):
    write_lines(tmp_path / "iteration-000002.jsonl", fork())
    credit.main([str(tmp_path / "iteration-000002.jsonl"), "--estimators", "grpo"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 2 + 2 + 2 + 4 + 3
    # Returns 10, 10, 10, 0, 0: mean 6, sample deviation sqrt(30).
    assert lines[2] == "| 0 | 0 | S | A | 0.730 |"
    assert lines[-1] == "| 4 | 2 | X | X | -1.095 |"


@pytest.mark.parametrize("name", ["missing.parquet", "empty.parquet", "cut.parquet", "cut.jsonl"])
def test_a_file_without_rollouts_ends_in_one_line(name, tmp_path, capsys):
    if name != "missing.parquet":
        (tmp_path / name).write_text("" if name == "empty.parquet" else '{"task_id":')
    with pytest.raises(SystemExit) as ended:
        credit.main([str(tmp_path / name)])
    assert ended.value.code == 2
    assert name in capsys.readouterr().err
