"""Several environments, agents, tables of rows; fake trainings as in test_compare."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from baselines import jobs
from baselines.runs import run_folders, versions
from scripts.compare import main
from tests.baselines.toy_rows import logged
from tests.scripts.fake_compare import command, write_rows

PLAN = """\
max_steps: 10
methods: {grpo: {}, milegpo: {estimator_settings: {stage: rcs}}}
seeds: [1]
environments: {one: {horizon: 5}, two: {horizon: 6}}
"""


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(jobs, "POLL_SECONDS", 0.02)


@pytest.fixture
def config(tmp_path):
    write_rows(tmp_path)
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN)
    return path


def test_one_file_compares_methods_by_seeds_by_environments(config, tmp_path, capsys):
    out = tmp_path / "out"
    asked = ["--config", str(config), "--output_dir", str(out)]
    assert main([*asked, "--dry-run"], command) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{environment}: {cell}: to run"
        for environment in ("one", "two")
        for cell in ("warm start", "grpo-seed1", "milegpo-seed1")
    ]
    assert main(asked, command) == 0
    for environment in ("one", "two"):
        table = (out / environment / "table.md").read_text()
        assert f"--environments {environment} --methods grpo milegpo --seeds 1" in table
        assert (out / environment / "table.tex").exists()
    assert len(run_folders(out)) == 6
    joint = (out / "table.tex").read_text()
    assert r"\multicolumn{3}{c}{one} & \multicolumn{3}{c}{two}" in joint
    note = json.loads((out / "two" / "comparison.json").read_text())
    assert note["config"] == {"max_steps": 10, "horizon": 6}
    assert note["methods"]["milegpo"]["estimator_settings"] == ["stage=rcs"]


def test_environments_that_do_not_match_are_not_put_side_by_side(config, tmp_path, capsys):
    out = tmp_path / "out"
    asked = ["--config", str(config), "--output_dir", str(out), "--environments"]
    assert main([*asked, "one"], command) == 0
    assert main([*asked, "two"], command) == 0
    assert r"\multicolumn{3}{c}{one} & \multicolumn{3}{c}{two}" in (out / "table.tex").read_text()
    path = out / "one" / "cells" / "grpo-seed1" / "result.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "code": {"sources": "other"}}))
    capsys.readouterr()
    assert main([*asked, "two"], command) == 0
    assert "No table of all environments: " in capsys.readouterr().out
    assert not (out / "table.tex").exists()
    assert (out / "two" / "table.tex").exists()


def test_one_environment_of_a_file_can_be_chosen(config, tmp_path, capsys):
    asked = ["--config", str(config), "--output_dir", str(tmp_path / "out")]
    assert main([*asked, "--environments", "two", "--methods", "grpo", "--dry_run"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "two: warm start: to run",
        "two: grpo-seed1: to run",
    ]
    for wrong, valid in ((("--environments", "x"), "one, two"), (("--methods", "x"), "milegpo")):
        with pytest.raises(SystemExit):
            main([*asked, *wrong])
        assert valid in capsys.readouterr().err


def test_a_comparison_killed_at_any_moment_goes_on_to_the_same_table(config, tmp_path):
    asked = ["--config", str(config), "--environments", "one", "--jobs", "1"]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert main([*asked, "--output_dir", str(whole)], command) == 0
    start = [sys.executable, "-m", "tests.scripts.fake_compare", *asked]
    draws = random.Random(0)
    for moment in ("warm_start", "cells/grpo-seed1"):
        process = subprocess.Popen(
            [*start, "--output_dir", str(killed)],
            stdout=subprocess.DEVNULL,
            env={**os.environ, "FAKE_WAIT": "0.3"},
            start_new_session=True,
        )
        until = time.monotonic() + 60
        while not (killed / "one" / moment / "log.txt").exists() and process.poll() is None:
            assert time.monotonic() < until
            time.sleep(0.01)
        time.sleep(draws.random() / 2)
        process.send_signal(signal.SIGKILL)
        process.wait()
    again = [*start, "--output_dir", str(killed)]
    until = time.monotonic() + 60
    while subprocess.run(again, stdout=subprocess.DEVNULL, check=False).returncode == 2:
        assert time.monotonic() < until  # a killed one's program still holds the folder
        time.sleep(0.1)
    for name in ("table.md", "table.csv", "table.tex", "statistics.md", "statistics.csv"):
        assert (killed / "one" / name).read_text() == (whole / "one" / name).read_text()


def test_agents_that_are_not_trained_have_lines_of_their_own(config, tmp_path):
    config.write_text(PLAN.replace("seeds: [1]", "seeds: [1]\nagents: [random]"))
    untrained = {
        **{"model": None, "model_hash": None, "recipe_hash": None, "convention": None},
        **{"checkpoint_rule": None, "agent": {"kind": "random"}, "versions": versions()},
    }
    row = logged(None, None, [[0, 0], [0, 0]], **untrained)
    (tmp_path / "rows" / "agent-random.json").write_text(json.dumps(row))
    out = tmp_path / "out"
    asked = ["--config", str(config), "--output_dir", str(out), "--environments", "one"]
    assert main(asked, command) == 0
    lines = (out / "one" / "table.md").read_text().splitlines()
    assert [line.split(" | ")[0] for line in lines[2:6]] == [
        *("| warm start", "| random", "| grpo", "| milegpo"),
    ]
    made = [json.loads(x) for x in (out / "one" / "results.jsonl").read_text().splitlines()]
    assert "scripts.evaluate" in made[1]["command"]
    assert "--model" not in made[1]["command"]


def files(tmp_path, *rows):
    paths = []
    for row in rows:
        paths.append(tmp_path / f"{row['estimator']}-{row['seed']}.json")
        paths[-1].write_text(json.dumps(row))
    return [str(path) for path in paths]


def test_rows_from_anywhere_make_a_table(tmp_path, capsys):
    rows = [logged("grpo", 1, [[0, 1], [0, 1]]), logged("rloo", 2, [[1, 1], [1, 1]])]
    given = files(tmp_path, logged(None, None, [[0, 0], [1, 0]]), *rows)
    assert main(["--rows", *given, "--output_dir", str(tmp_path / "out")]) == 0
    assert "| rloo | 2 | 100.0 |" in (tmp_path / "out" / "table.md").read_text()
    with pytest.raises(SystemExit):
        main(["--rows", given[1], given[1]])
    assert "Two rows are of grpo-seed1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("panel", {"name": "toy/held_out", "hash": "other", "size": 2}),
        ("model_hash", "other"),
        ("convention", "verl-agent"),
        ("checkpoint_rule", "best success on toy/validation, the earliest of equals"),
        ("versions", {"python": "3.11", "torch": "2.14"}),
        ("protocol", {"horizon": 30}),
        ("code", {"sources": "abcd"}),
        ("train_panel", {"name": "toy/train", "hash": "other", "size": 2}),
        ("in_distribution", {"success": 1.0, "panel": {"name": "toy/seen", "hash": "other"}}),
    ],
)
def test_rows_that_do_not_match_get_no_table(tmp_path, capsys, field, value):
    win = [[0, 1], [0, 1]]
    panels = {
        "train_panel": {"name": "toy/train", "hash": "abcd", "size": 2},
        "in_distribution": {"success": 1.0, "panel": {"name": "toy/seen", "hash": "abcd"}},
    }
    one = logged("grpo", 1, win, **panels)
    given = files(tmp_path, one, logged("rloo", 1, win, **{**panels, field: value}))
    assert main(["--rows", *given, "--output_dir", str(tmp_path / "out")]) == 2
    assert "differ in" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()


def test_rows_of_one_method_have_the_same_settings(tmp_path, capsys):
    win = [[0, 1], [0, 1]]
    one = logged("grpo", 1, win, settings={"penalty": 0.1})
    given = files(tmp_path, one, logged("grpo", 2, win, settings={"penalty": 0.2}))
    assert main(["--rows", *given, "--output_dir", str(tmp_path / "out")]) == 2
    assert "differ in settings" in capsys.readouterr().out
