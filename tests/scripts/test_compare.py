import io
import json
import sys

import pytest
from rich.console import Console

from scripts.compare import Cell, Runner, main

FAKE = "import json, pathlib, sys; f = pathlib.Path(sys.argv[1]); n = f.name; "
FAKE += "sys.exit('boom') if n == 'bad' else (f / 'result.json').write_text(json.dumps({'n': n}))"


def cells(tmp_path, *names):
    return [Cell(name, tmp_path / name, ()) for name in names]


def runner(output, started):
    def command(cell):
        started.append(cell.name)
        return [sys.executable, "-c", FAKE, str(cell.folder)]

    return Runner(Console(file=output, width=200), command)


def test_finished_cells_are_not_run_again(tmp_path):
    started, output = [], io.StringIO()
    todo = cells(tmp_path, "a", "b")
    assert runner(output, started)(todo[:1], 2, lambda: None) == []
    assert runner(output, started)(todo, 2, lambda: None) == []
    assert started == ["a", "b"]
    assert json.loads((tmp_path / "b" / "result.json").read_text()) == {"n": "b"}


def test_a_failed_cell_shows_its_log_and_the_others_go_on(tmp_path):
    started, output, finished = [], io.StringIO(), []
    failed = runner(output, started)(
        cells(tmp_path, "bad", "c"), 1, lambda: finished.append(len(started))
    )
    assert [cell.name for cell in failed] == ["bad"]
    assert "boom" in output.getvalue()
    assert started == ["bad", "c"]
    assert finished == [2]


def test_where_nobody_sees_a_bar_lines_tell_the_progress(tmp_path):
    output = io.StringIO()
    runner(output, [])(cells(tmp_path, "a"), 1, lambda: None)
    assert "a: started" in output.getvalue()
    assert "a: finished" in output.getvalue()


def test_an_unknown_estimator_exits_with_2_and_the_valid_names(capsys):
    with pytest.raises(SystemExit) as error:
        main(["--estimators", "grpo", "grp"])
    assert error.value.code == 2
    assert "milegpo" in capsys.readouterr().err


def test_a_dry_run_lists_the_cells(tmp_path, capsys):
    assert main(["--dry_run", "--seeds", "1", "2", "--output_dir", str(tmp_path)]) == 0
    listed = capsys.readouterr().out
    assert listed.count("to run") == 9  # the warm start, and 4 estimators x 2 seeds
    assert not list(tmp_path.iterdir())
