import json
import os
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import pytest

import milegpo_envs  # noqa: F401  # registers the environments
from milegpo_envs.alfworld import export as exporting
from milegpo_envs.alfworld import games
from milegpo_envs.alfworld.compiled import compiled
from milegpo_envs.alfworld.export import Occupied, export
from milegpo_envs.alfworld.fast_engine import FastEngine
from milegpo_envs.alfworld.folder import FolderGames
from milegpo_envs.alfworld.index import read_folder
from milegpo_envs.errors import DataMissing
from milegpo_envs.panels import named_panel
from scripts import make_alfworld_data


def quiet(done, total, what):
    pass


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """One game of each type to train on, three to evaluate on."""
    data = tmp_path_factory.mktemp("made")
    make_alfworld_data.main([str(data), "--splits", "train", "--count", "8"])
    make_alfworld_data.main([str(data), "--splits", "valid_seen", "--count", "3"])
    return data


def originals(split, count):
    """Problem -> the generated game that has it."""
    made = map(games.generate, games.task_ids(split)[:count])
    return {game.pddl_problem: game for game in made}


def test_a_written_split_holds_the_same_games_under_other_ids(data):
    known = originals("train", 8)
    listed = FolderGames(data, "train")
    assert (listed.source, str(listed.coverage)) == ("generated", "8/8")
    assert len(listed.task_ids) == 8
    for id in listed.task_ids:
        read = listed.game(id)
        made = known.pop(read.pddl_problem)
        assert (read.params, read.goal, read.scene) == (made.params, made.goal, made.scene)
        assert made.id.split("/")[3] in id
        assert read.task_type in id
        assert FastEngine(compiled(read)).reset() == FastEngine(compiled(made)).reset()
    assert known == {}


def test_the_walkthrough_wins(data):
    listed = FolderGames(data, "train")
    for id in listed.task_ids:
        plan = json.loads((listed.root / id / "game.tw-pddl").read_text())["walkthrough"]
        engine = FastEngine(compiled(listed.game(id)))
        engine.reset()
        assert [engine.step(command).won for command in plan] == [False] * (len(plan) - 1) + [True]


def test_our_environment_plays_the_folder_and_its_panel_says_where_from(data):
    env = gym.make("milegpo/ALFWorld-v0", data=data, split="valid_seen")
    assert len(env.unwrapped.task_ids()) == 3
    assert "Your task is to" in env.reset(seed=1)[0]
    assert named_panel("alfworld/valid_seen", data=data).data == "generated 3/3"


def test_a_game_that_went_missing_or_changed_is_noticed(data, tmp_path):
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-r", data, copy], check=True)
    first, second, *_ = sorted(copy.rglob("game.tw-pddl"))
    text = first.read_text()
    first.write_text(f"{text} ")
    with pytest.raises(DataMissing, match="not those of its manifest"):
        FolderGames(copy, "train")
    second.unlink()
    read_folder.cache_clear()
    with pytest.raises(DataMissing, match="7 of 8 games"):
        FolderGames(copy, "train")


def test_nothing_is_mixed_or_overwritten(data, tmp_path):
    with pytest.raises(Occupied, match="is there already"):
        export(data, "train", quiet, count=2)
    with pytest.raises(Occupied, match="gen1/full"):
        export(data, "valid_unseen", quiet, size="small", count=2)
    (tmp_path / "json_2.1.1" / "train").mkdir(parents=True)
    with pytest.raises(Occupied, match="no manifest"):
        export(tmp_path, "valid_seen", quiet, count=2)
    with pytest.raises(SystemExit, match="is there already"):
        make_alfworld_data.main([str(data)])


def test_an_interrupted_split_does_not_exist(tmp_path, monkeypatch):
    def stop(done, total, what):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export(tmp_path, "train", stop, count=3)
    with pytest.raises(DataMissing):
        FolderGames(tmp_path, "train")
    export(tmp_path, "train", quiet, count=3)
    assert len(FolderGames(tmp_path, "train").task_ids) == 3
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_a_game_that_cannot_be_won_is_never_written(tmp_path, monkeypatch):
    monkeypatch.setattr(exporting, "shortest_plan", lambda *_: None)
    with pytest.raises(RuntimeError, match="generator's fault"):
        export(tmp_path, "train", quiet, count=1)


@pytest.mark.parametrize(
    ("which", "split", "method", "count"),
    [
        ("eval_in_distribution", "valid_seen", "dqn", 2),
        ("train", "train", "dagger", 1),
    ],
)
def test_alfworld_itself_plays_the_folder_unchanged(data, tmp_path, which, split, method, count):
    program = Path(__file__).with_name("official_play.py")
    env = {**os.environ, "ALFWORLD_DATA": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(program), str(data), which, method, str(count)],
        env=env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    played = json.loads(done.stdout)
    listed = FolderGames(data, split)
    assert len({game["id"] for game in played}) == count
    assert {game["id"] for game in played} <= set(listed.task_ids)
    for game in played:
        engine = FastEngine(compiled(listed.game(game["id"])))
        start = engine.reset()
        assert game["first"] == start.feedback
        assert tuple(game["admissible"]) == start.admissible_commands
        assert game["answer"] == engine.step(game["admissible"][0]).feedback
        assert not game["done"]
        assert (game["expert"] in start.admissible_commands) is (method == "dagger")
