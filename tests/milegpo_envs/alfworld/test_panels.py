from collections import Counter
from pathlib import Path

import gymnasium as gym
import pytest

import milegpo_envs  # noqa: F401  # registers the environments
from milegpo_envs.alfworld import games
from milegpo_envs.alfworld.folder import write_game
from milegpo_envs.alfworld.index import read_folder
from milegpo_envs.alfworld.manifest import Manifest, Split, write_manifest
from milegpo_envs.alfworld.panels import PANELS, task_type_in
from milegpo_envs.errors import DataMissing, UnknownName
from milegpo_envs.panels import named_panel, panel_names, panel_of

GAMES = Path(__file__).parents[4] / "shared" / "data" / "alfworld" / "games"


def test_every_split_and_type_has_a_panel_with_its_number_of_games():
    assert set(PANELS) <= set(panel_names())
    assert len(PANELS) == 3 * 3 * 7
    for split in games.SPLITS:
        assert len(named_panel(f"alfworld/{split}").task_ids) == sum(games.COUNTS[split])
        sizes = [len(named_panel(f"alfworld/{split}/{t}").task_ids) for t in games.TASK_TYPES]
        assert tuple(sizes) == games.COUNTS[split]


def test_named_panels_never_change_within_a_generator_version():
    hashes = {name: named_panel(name).hash for name in HASHES}
    assert hashes == HASHES


HASHES = {
    "alfworld/train": "49f58190d4e670b5",
    "alfworld/valid_seen": "21db09c4afe28f4a",
    "alfworld/valid_unseen": "c9c535449702acc6",
    "alfworld/valid_unseen:42": "b97b03a19bdcc21c",
    "alfworld/valid_seen/pick_and_place_simple": "12cac636109df4cf",
    "alfworld/small/valid_unseen": "c7c0b91da4d3a437",
}


def test_a_whole_panel_is_that_of_its_environment():
    env = gym.make("milegpo/ALFWorld-v0", split="valid_unseen")
    assert named_panel("alfworld/valid_unseen") == panel_of(env, "alfworld/valid_unseen")


def test_slices_are_balanced_and_nested():
    large = named_panel("alfworld/valid_unseen:42")
    assert set(Counter(map(task_type_in, large.task_ids)).values()) == {7}
    assert named_panel("alfworld/valid_unseen", 12).task_ids == large.task_ids[:12]
    assert large.name == "alfworld/valid_unseen:42"


def test_generated_games_say_so():
    panel = named_panel("alfworld/valid_seen:3")
    assert panel.task_ids == named_panel("alfworld/generated/valid_seen:3", data=None).task_ids
    assert panel.data == "generated"
    small = named_panel("alfworld/small/valid_seen:3")
    assert small.task_ids == named_panel("alfworld/valid_seen:3", size="small").task_ids


@pytest.fixture
def folder(tmp_path):
    for task in games.task_ids("valid_seen", "small")[:4]:
        write_game(tmp_path, "valid_seen", games.generate(task))
    return tmp_path


def test_a_folder_says_how_much_of_a_split_it_holds(folder):
    with pytest.raises(DataMissing, match="4 of 140"):
        named_panel("alfworld/valid_seen", data=folder)
    panel = named_panel("alfworld/valid_seen:2", data=folder, allow_partial=True)
    assert (len(panel.task_ids), panel.data) == (2, "official 4/140")
    listing = read_folder(folder / "json_2.1.1" / "valid_seen")
    counts = {t: list(listing.task_types.values()).count(t) for t in games.TASK_TYPES}
    split = Split(counts, listing.digest)
    write_manifest(folder / "json_2.1.1", Manifest("generated", "test", {"valid_seen": split}))
    assert named_panel("alfworld/valid_seen", data=folder).data == "generated 4/4"


@pytest.mark.skipif(not GAMES.is_dir(), reason="no real game in ../shared")
def test_a_folder_of_no_known_layout_has_a_panel():
    panel = named_panel("alfworld/train", data=GAMES)
    assert panel.data == "folder 3"
    assert set(map(task_type_in, panel.task_ids)) == {"pick_heat_then_place_in_recep"}


@pytest.mark.parametrize(
    ("name", "settings", "error", "message"),
    [
        ("alfworld/valid_unsen", {}, UnknownName, "Did you mean 'alfworld/valid_unseen'"),
        ("alfworld/valid_seen", {"split": "train"}, ValueError, "split='valid_seen'"),
        ("alfworld/small/train", {"data": "x"}, ValueError, "data=None"),
        ("alfworld/train", {"colour": 1}, ValueError, "colour"),
        ("alfworld/train", {"engine": "slow"}, UnknownName, "textworld"),
        ("alfworld/train:0", {}, ValueError, "cannot have 0"),
        ("alfworld/train:many", {}, ValueError, "NAME:N"),
        ("alfworld/train:3", {"count": 4}, ValueError, "NAME:N"),
        ("alfworld/valid_seen:141", {}, ValueError, "has 140"),
    ],
)
def test_what_cannot_be_is_refused_by_name(name, settings, error, message):
    with pytest.raises(error, match=message):
        named_panel(name, **settings)
