import json
import os
import signal
import subprocess
import sys
import time

import pytest

from baselines import jobs
from baselines.cells import Cell, train_command
from scripts.compare import main
from tests.scripts.fake_compare import command, write_rows


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(jobs, "POLL_SECONDS", 0.02)


@pytest.fixture
def options(tmp_path):
    write_rows(tmp_path)
    config = tmp_path / "recipe.yaml"
    config.write_text("max_steps: 10\n")
    return [*("--config", str(config)), *("--estimators", "grpo", "milegpo"), "--seeds", "1", "2"]


def compare(options, out, *more):
    return main([*options, "--output_dir", str(out), *more], command)


def started(out):
    return (out / "cells" / "started").read_text().split()


def test_every_cell_is_trained_once_seed_by_seed_and_tabulated(options, tmp_path, capsys):
    out = tmp_path / "out"
    assert compare(options, out, "--jobs", "1") == 0
    cells = ["grpo-seed1", "milegpo-seed1", "grpo-seed2", "milegpo-seed2"]
    assert started(out) == cells
    said = capsys.readouterr().out
    assert "Partial: 2 of 4 cells." in said
    assert "grpo-seed1: started" in said
    table = (out / "table.md").read_text()
    assert "Partial" not in table
    assert "| milegpo | 1, 2 | 100.0 | 100.0 to 100.0 |" in table
    rows = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    assert [(r["estimator"], r["seed"]) for r in rows[:3]] == [
        (None, None),
        ("grpo", 1),
        ("milegpo", 1),
    ]
    assert rows[1]["config"] == {"max_steps": 10}
    assert rows[1]["command"].startswith("python -m scripts.train --config")
    assert {"table.csv", "curves.png"} <= {path.name for path in out.iterdir()}

    assert compare(options, out) == 0  # again: nothing is left to do
    assert started(out) == cells


def test_a_killed_run_started_again_gives_the_table_of_an_uninterrupted_one(options, tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert compare(options, whole) == 0
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "tests.scripts.fake_compare"),
            *(*options, "--output_dir", str(killed), "--jobs", "1"),
        ],
        env={**os.environ, "FAKE_SLOW": "grpo-seed2"},
        stdout=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + 30
    while not (killed / "cells" / "grpo-seed2" / "log.txt").exists():
        assert time.monotonic() < until
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "goes on from here" in said
    assert "Partial: 2 of 4" in (killed / "table.md").read_text()

    assert compare(options, killed) == 0
    for name in ("table.md", "table.csv"):
        assert (killed / name).read_text() == (whole / name).read_text()
    assert started(killed).count("grpo-seed1") == 1


def test_a_failed_cell_shows_its_log_and_the_others_go_on(options, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("FAKE_BAD", "grpo-seed1")
    out = tmp_path / "out"
    assert compare(options, out) == 1
    said = capsys.readouterr().out
    assert "boom" in said
    assert "Failed: grpo-seed1" in said
    assert "Partial: 3 of 4" in (out / "table.md").read_text()
    monkeypatch.delenv("FAKE_BAD")
    assert compare(options, out) == 0


def test_results_of_another_recipe_are_refused_and_moved_aside_on_demand(options, tmp_path, capsys):
    out, one = tmp_path / "out", ["--seeds", "1"]
    assert compare([*options, *one], out) == 0
    (tmp_path / "recipe.yaml").write_text("max_steps: 20\n")
    before = (out / "table.md").read_text()
    assert compare([*options, *one], out) == 2
    said = capsys.readouterr().out
    assert "max_steps" in said
    assert "--fresh" in said
    assert (out / "table.md").read_text() == before
    assert compare([*options, *one], out, "--fresh") == 0
    assert (out / "earlier-1" / "table.md").read_text() == before
    assert (out / "earlier-1" / "cells" / "grpo-seed1" / "result.json").exists()


def test_a_cell_from_other_weights_is_refused_by_folder_and_field(options, tmp_path, capsys):
    out = tmp_path / "out"
    assert compare(options, out) == 0
    path = out / "cells" / "grpo-seed2" / "result.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "model_hash": "other"}))
    assert compare(options, out) == 2
    said = capsys.readouterr().out
    assert "grpo-seed2" in said
    assert "model_hash" in said
    assert path.exists()


def test_an_unknown_estimator_exits_with_2_and_the_valid_names(capsys):
    with pytest.raises(SystemExit) as error:
        main(["--estimators", "grpo", "grp"])
    assert error.value.code == 2
    assert "unknown estimator grp. Valid:" in capsys.readouterr().err


def test_a_missing_config_exits_with_2_and_the_recipes_there_are(capsys):
    with pytest.raises(SystemExit) as error:
        main(["--config", "nowhere.yaml"])
    assert error.value.code == 2
    assert "main_job.yaml" in capsys.readouterr().err


def test_a_dry_run_lists_the_cells_and_touches_nothing(tmp_path, capsys):
    assert main(["--dry_run", "--seeds", "1", "2", "--output_dir", str(tmp_path / "out")]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert listed[:3] == ["warm start: to run", "grpo-seed1: to run", "gigpo-seed1: to run"]
    assert len(listed) == 9  # the warm start, and 4 estimators x 2 seeds
    assert not list(tmp_path.iterdir())


def test_commands_are_those_of_scripts_train(tmp_path):
    cell = Cell("milegpo", 3, tmp_path)
    assert train_command(tmp_path / "c.yaml", cell, "warm", python="python") == (
        *("python", "-m", "scripts.train", "--config", str(tmp_path / "c.yaml")),
        *("--model", "warm", "--estimator", "milegpo", "--seed", "3"),
        *("--output_dir", str(tmp_path / "cells" / "milegpo-seed3")),
        *("--resume_from_checkpoint", "last"),
    )


def test_nothing_here_waits_for_torch():
    code = "import sys, scripts.compare; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--seeds", "1", "-1"), "numbers from 0"),
        (("--output_dir", "{file}"), "is a file"),
        (("--rows", "{file}"), "holds no row"),
        (("--rows", "{bytes}"), "cannot be read"),
    ],
)
def test_what_cannot_be_compared_ends_in_one_line(tmp_path, capsys, asked, said):
    files = {"file": tmp_path / "empty.json", "bytes": tmp_path / "bytes.jsonl"}
    files["file"].touch()
    files["bytes"].write_bytes(b"\xff\xfe")
    with pytest.raises(SystemExit) as ended:
        main([word.format(**files) for word in asked], command)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
