import json

import pytest

from milegpo_envs.alfworld import games
from milegpo_envs.alfworld.folder import FolderGames, load_game, read_folder, write_game
from milegpo_envs.errors import DataMissing, UnknownName

TASKS = games.task_ids("valid_seen", "small")


@pytest.fixture
def data(tmp_path):
    """Three good games, and one of every kind that is left out."""
    for task in TASKS[:3]:
        write_game(tmp_path, "train", games.generate(task))
    root = tmp_path / "json_2.1.1" / "train"
    good = root / next(iter(read_folder.__wrapped__(root).task_types))

    def broken(name, game=None, trajectory=None):
        folder = root / name / "trial_1"
        folder.mkdir(parents=True)
        texts = {
            "game.tw-pddl": game if game is not None else (good / "game.tw-pddl").read_text(),
            "traj_data.json": trajectory
            if trajectory is not None
            else (good / "traj_data.json").read_text(),
        }
        for file, text in texts.items():
            if text:
                (folder / file).write_text(text)

    whole = json.loads((good / "game.tw-pddl").read_text())
    broken("pick_and_place_with_movable_recep-Pen-Mug-Desk-301")
    broken("pick_and_place_simple-AppleSliced-None-Fridge-1")
    broken("truncated", game=json.dumps(whole)[:-20])
    broken("no-key", game=json.dumps({k: v for k, v in whole.items() if k != "solvable"}))
    broken("unsolvable", game=json.dumps(whole | {"solvable": False}))
    broken("no-game", game="")
    broken("no-grammar", game=json.dumps({"solvable": True}))
    broken("a-list", game="[]")
    broken("bad-trajectory", trajectory='{"task_type": ')
    broken("other-type", trajectory='{"task_type": "stack_things"}')
    broken("no-trajectory", trajectory="")
    return tmp_path


def test_the_official_filters_leave_out_and_count_by_reason(data):
    listing = read_folder.__wrapped__(data / "json_2.1.1" / "train")
    assert len(listing.task_types) == 3
    assert list(listing.task_types) == sorted(listing.task_types)
    assert listing.skipped == {
        "movable receptacle": 1,
        "sliced object": 1,
        "unreadable game file": 3,
        "no solvable key": 1,
        "unsolvable": 1,
        "no game file": 1,
        "unreadable traj_data.json": 1,
        "unknown task type": 1,
        "no traj_data.json": 1,
    }


def test_task_types_are_selected_and_counted(data):
    wanted = games.generate(TASKS[0]).task_type
    chosen = FolderGames(data, "train", [wanted])
    assert len(chosen.task_ids) + chosen.skipped["task type not selected"] == 3
    assert {chosen.game(id).task_type for id in chosen.task_ids} == {wanted}


def test_a_written_game_is_read_back_whole(data):
    listed = FolderGames(data, "train")
    for task in TASKS[:3]:
        written = games.generate(task)
        [read] = [
            g for g in map(listed.game, listed.task_ids) if g.pddl_problem == written.pddl_problem
        ]
        assert (read.params, read.goal, read.scene) == (written.params, written.goal, written.scene)
        assert (read.grammar, read.pddl_domain) == (written.grammar, written.pddl_domain)
        assert read.id.startswith(f"{written.task_type}-{written.params.object_target}-None-")


def test_the_folder_of_the_release_may_be_named_itself(data):
    assert FolderGames(data / "json_2.1.1", "train").task_ids == FolderGames(data, "train").task_ids


def test_missing_games_are_reported_with_the_remedy(data, tmp_path):
    with pytest.raises(DataMissing, match="alfworld-download"):
        FolderGames(data, "valid_unseen")
    empty = tmp_path / "else" / "train"
    empty.mkdir(parents=True)
    with pytest.raises(DataMissing, match="No playable"):
        FolderGames(tmp_path / "else", "train")
    with pytest.raises(UnknownName, match="valid_unseen"):
        FolderGames(data, "dev")
    with pytest.raises(UnknownName):
        FolderGames(data, "train").game("nowhere")
    with pytest.raises(DataMissing, match="truncated"):
        load_game(data / "json_2.1.1" / "train", "truncated/trial_1")
