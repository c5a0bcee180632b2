"""The replay script from Parquet to JSON and figures."""

import json

import pytest

from milegpo_algo import Rollouts, estimator_names
from scripts import replay
from tests.milegpo_algo.toy_rollouts import random_records
from tests.scripts.report_runs import fork, write_lines

pytest.importorskip("pyarrow")


@pytest.fixture
def files(tmp_path):
    names = [tmp_path / f"iteration-{i}.parquet" for i in range(2)]
    for i, name in enumerate(names):
        Rollouts.from_steps(random_records(i)).to_parquet(name)
    return names


@pytest.mark.parametrize("recipe", ["alfworld", "webshop", "sokoban"])
def test_replay_writes_one_json_report(files, recipe, capsys):
    replay.main([*map(str, files), "--recipe", recipe])
    report = json.loads(capsys.readouterr().out)
    assert report["counts"]["iterations"] == 2
    assert report["counts"]["tasks"] == 6
    assert 0.0 <= report["shared_states"]["share"] <= 1.0
    assert set(report["corrected"]) == {"uniform", "rcs", "pcc"}
    assert set(report["effective_rows"]) == set(estimator_names()) - {"ppo"}
    assert report["seconds_per_iteration"]["graph"] >= 0.0


def test_replay_draws_one_png_per_figure(files, tmp_path):
    pytest.importorskip("matplotlib")
    figures = tmp_path / "figures"
    report = tmp_path / "report.json"
    replay.main([*map(str, files), "--json", str(report), "--figures", str(figures)])
    assert json.loads(report.read_text())["counts"]["steps"] > 0
    assert {file.name for file in figures.iterdir()} == {
        "shared_states.png",
        "tie_correction.png",
        "support.png",
        "evidence.png",
        "effective_rows.png",
    }
    for file in figures.iterdir():
        assert file.read_bytes().startswith(b"\x89PNG")


def test_replay_of_what_cannot_be_read_ends_in_one_line(tmp_path, capsys):
    (tmp_path / "cut.parquet").write_text("PAR1")
    for name in ("cut.parquet", "missing.parquet"):
        with pytest.raises(SystemExit) as ended:
            replay.main([str(tmp_path / name)])
        assert ended.value.code == 2
        assert f"{name} cannot be read as rollouts" in capsys.readouterr().err


def test_replay_judges_a_training_run_s_episodes(tmp_path, capsys):
    write_lines(tmp_path / "iteration-000002.jsonl", fork())
    replay.main([str(tmp_path / "iteration-000002.jsonl")])
    counts = json.loads(capsys.readouterr().out)["counts"]
    assert (counts["trajectories"], counts["successes"], counts["steps"]) == (5, 3, 13)
