import json

import pytest

from milegpo_envs.alfworld import games
from milegpo_envs.alfworld.folder import FolderGames, find_split, load_game, write_game
from milegpo_envs.alfworld.index import read_folder
from milegpo_envs.alfworld.manifest import Manifest, Split, write_manifest
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
    chosen = FolderGames(data, "train", [wanted], allow_partial=True)
    assert len(chosen.task_ids) + chosen.skipped["task type not selected"] == 3
    assert {chosen.game(id).task_type for id in chosen.task_ids} == {wanted}


def test_a_written_game_is_read_back_whole(data):
    listed = FolderGames(data, "train", allow_partial=True)
    for task in TASKS[:3]:
        written = games.generate(task)
        [read] = [
            g for g in map(listed.game, listed.task_ids) if g.pddl_problem == written.pddl_problem
        ]
        assert (read.params, read.goal, read.scene) == (written.params, written.goal, written.scene)
        assert (read.grammar, read.pddl_domain) == (written.grammar, written.pddl_domain)
        assert read.id.startswith(f"{written.task_type}-{written.params.object_target}-None-")


def test_the_folder_of_the_release_may_be_named_itself(data):
    inside = FolderGames(data / "json_2.1.1", "train", allow_partial=True)
    assert inside.task_ids == FolderGames(data, "train", allow_partial=True).task_ids
    assert inside.source == "official"


def test_missing_games_are_reported_with_the_remedy(data, tmp_path):
    with pytest.raises(DataMissing, match="download_data alfworld"):
        FolderGames(data, "valid_unseen")
    empty = tmp_path / "else" / "train"
    empty.mkdir(parents=True)
    with pytest.raises(DataMissing, match="No playable"):
        FolderGames(tmp_path / "else", "train")
    with pytest.raises(UnknownName, match="valid_unseen"):
        FolderGames(data, "dev")
    with pytest.raises(UnknownName):
        FolderGames(data, "train", allow_partial=True).game("nowhere")
    with pytest.raises(DataMissing, match="truncated"):
        load_game(data / "json_2.1.1" / "train", "truncated/trial_1")


def test_a_split_with_fewer_games_than_officially_is_refused_unless_asked_for(data):
    with pytest.raises(
        DataMissing, match=r"3 of 3,553 games.*no solvable key.*allow_partial=True.*3/3553"
    ):
        FolderGames(data, "train")
    listed = FolderGames(data, "train", allow_partial=True)
    assert str(listed.coverage) == "3/3553"
    assert not listed.coverage.complete
    assert listed.source == "official"
    kind = games.generate(TASKS[0]).task_type
    expected = games.COUNTS["train"][games.TASK_TYPES.index(kind)]
    assert FolderGames(data, "train", [kind], True).coverage.expected == expected


def test_a_manifest_says_what_should_be_there(data):
    base = data / "json_2.1.1"
    listing = read_folder.__wrapped__(base / "train")
    counts = {t: list(listing.task_types.values()).count(t) for t in games.TASK_TYPES}

    def claim(counts, digest):
        write_manifest(base, Manifest("generated", "test", {"train": Split(counts, digest)}))

    claim(counts, listing.digest)
    listed = FolderGames(data, "train")
    assert (listed.source, str(listed.coverage)) == ("generated", "3/3")
    claim(counts, "0" * 16)
    with pytest.raises(DataMissing, match="not those of its manifest"):
        FolderGames(data, "train")
    kind = games.generate(TASKS[0]).task_type
    claim(counts | {kind: counts[kind] + 2}, listing.digest)
    with pytest.raises(DataMissing, match="3 of 5 games"):
        FolderGames(data, "train")
    assert str(FolderGames(data, "train", None, True).coverage) == "3/5"
    (base / "manifest.json").write_text("{")
    with pytest.raises(DataMissing, match=r"manifest\.json cannot be read"):
        FolderGames(data, "train", None, True)


def test_any_folder_with_games_is_a_train_split_and_nothing_else(tmp_path):
    written = write_game(tmp_path / "data", "train", games.generate(TASKS[0]))
    written.parent.rename(tmp_path / "mine")
    listed = FolderGames(tmp_path, "train")
    assert (listed.source, str(listed.coverage)) == ("folder", "1")
    assert listed.coverage.complete
    assert listed.game(listed.task_ids[0]).task_type == games.generate(TASKS[0]).task_type
    with pytest.raises(DataMissing, match="split 'train'"):
        FolderGames(tmp_path, "valid_unseen")


def test_split_folders_of_another_name_have_no_expected_number(tmp_path):
    write_game(tmp_path, "train", games.generate(TASKS[0]))
    (tmp_path / "json_2.1.1").rename(tmp_path / "mine")
    listed = FolderGames(tmp_path / "mine", "train")
    assert (listed.source, listed.coverage.expected) == ("folder", None)
    with pytest.raises(DataMissing, match="valid_seen"):
        FolderGames(tmp_path / "mine", "valid_seen")
    with pytest.raises(UnknownName, match="valid_unseen"):
        find_split(tmp_path / "mine", "test")


def test_each_game_left_out_is_listed_with_its_reason(data):
    left_out = read_folder.__wrapped__(data / "json_2.1.1" / "train").left_out
    assert list(left_out) == sorted(left_out)
    assert left_out["truncated/trial_1"] == "unreadable game file"
    assert left_out["no-key/trial_1"] == "no solvable key"
    assert left_out["no-game/trial_1"] == "no game file"
