import hashlib
import json
import os
import random
import subprocess
import sys
from collections import Counter

import pytest

from milegpo_envs.alfworld import games, package
from milegpo_envs.alfworld.compiled import compiled
from milegpo_envs.alfworld.experts import shortest_plan
from milegpo_envs.alfworld.fast_engine import FastEngine
from milegpo_envs.alfworld.rooms import TEST_ROOMS, UNSEEN_ROOMS, room
from milegpo_envs.errors import UnknownName

OFFICIAL = {"train": 3553, "valid_seen": 140, "valid_unseen": 134}
PROGRAM = """
import hashlib, json, os, sys
from milegpo_envs.alfworld import games
out = {}
for size in games.SIZES:
    for split in games.SPLITS:
        ids = games.task_ids(split, size)
        problems = "".join(games.generate(id).pddl_problem for id in ids[:12])
        out[f"{size}/{split}"] = [hashlib.blake2b("".join(ids).encode()).hexdigest(),
                                  hashlib.blake2b(problems.encode()).hexdigest()]
print(json.dumps([out, os.environ.get("ALFWORLD_DATA"), sorted(os.listdir(os.environ["HOME"])),
                  sorted(m for m in sys.modules if m.split(".")[0] in ("alfworld", "textworld"))]))
"""


def some(split, size, each=3):
    """A few tasks of every type."""
    out = []
    for task_type in games.TASK_TYPES:
        out += games.task_ids(split, size, [task_type])[:each]
    return out


def floor_plan(task_id):
    return int(task_id.rsplit("-", 1)[1])


@pytest.mark.parametrize("size", games.SIZES)
@pytest.mark.parametrize("split", games.SPLITS)
def test_a_split_has_the_official_number_of_games_of_every_type(split, size):
    ids = games.task_ids(split, size)
    assert len(ids) == len(set(ids)) == OFFICIAL[split]
    by_type = Counter(map(games.task_type_of, ids))
    assert tuple(by_type[t] for t in games.TASK_TYPES) == games.COUNTS[split]


def test_any_slice_of_a_split_has_about_its_proportions():
    ids = games.task_ids("train")
    for start in (0, 500, 3000):
        share = Counter(map(games.task_type_of, ids[start : start + 100]))
        for task_type, count in zip(games.TASK_TYPES, games.COUNTS["train"], strict=True):
            assert abs(share[task_type] - 100 * count / 3553) <= 2


def test_unseen_rooms_are_seen_in_no_other_split_and_test_rooms_in_none():
    rooms = {s: {floor_plan(id) for id in games.task_ids(s)} for s in games.SPLITS}
    assert rooms["valid_unseen"] == set(UNSEEN_ROOMS) == {10, 219, 308, 424}
    assert rooms["valid_seen"] <= rooms["train"]
    assert len(rooms["train"]) == 108
    assert not (rooms["train"] & {*UNSEEN_ROOMS, *TEST_ROOMS})


def test_choosing_task_types_keeps_ids_and_order():
    wanted = ["look_at_obj_in_light", "pick_two_obj_and_place"]
    expected = [id for id in games.task_ids("train") if games.task_type_of(id) in wanted]
    assert list(games.task_ids("train", task_types=wanted)) == expected


def test_ids_and_games_are_the_same_under_another_hash_seed_and_touch_nothing(tmp_path):
    def run(hash_seed, home):
        home.mkdir()
        env = {k: v for k, v in os.environ.items() if k != "ALFWORLD_DATA"}
        env |= {"PYTHONHASHSEED": hash_seed, "HOME": str(home)}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)

    first, second = run("1", tmp_path / "a"), run("2", tmp_path / "b")
    assert first == second
    assert first[1:] == [None, [], []]  # no variable, nothing in the home folder, no heavy import


GOLDEN = {
    "gen1/full/train/0000/pick_two_obj_and_place/room-18": "bc2a172e93ac9492",
    "gen1/full/valid_unseen/0002/pick_heat_then_place_in_recep/room-10": "be22f9e43583346c",
    "gen1/small/train/0005/look_at_obj_in_light/room-225": "daf77ee37d869747",
    "gen1/small/valid_seen/0001/pick_clean_then_place_in_recep/room-5": "9dd4e18cd1b6f2a6",
}


@pytest.mark.parametrize("task_id", GOLDEN)
def test_a_generated_game_never_changes_within_a_generator_version(task_id):
    game = games.generate(task_id)
    text = json.dumps([game.goal, game.pddl_problem])
    assert hashlib.blake2b(text.encode(), digest_size=8).hexdigest() == GOLDEN[task_id]


@pytest.mark.parametrize("size", games.SIZES)
@pytest.mark.parametrize("split", games.SPLITS)
def test_every_game_can_be_won_and_is_not_won_yet(split, size):
    for id in some(split, size):
        game = games.generate(id)
        world = compiled(game)
        assert not FastEngine(world).reset().won
        plan = shortest_plan(world, game.task_type, game.params)
        assert plan is not None
        assert 3 <= len(plan) <= 12


def test_a_small_game_is_small():
    for id in some("train", "small", each=10):
        game = games.generate(id)
        world = compiled(game)
        things = {fact[1] for fact in world.start if fact[0] == "inreceptacle"}
        assert 3 <= len(world.receptacles) <= 5
        assert 4 <= len(things) <= 6
        assert len(world.instances(game.params.object_target)) <= 2
        places = [world.location_of[r] for r in world.receptacles]
        assert len(set(places)) == len(places)


def test_a_full_game_has_the_whole_room():
    game = games.generate(games.task_ids("train")[4])
    plan = room(game.scene)
    world = compiled(game)
    assert len(world.receptacles) == len(plan.receptacles) > 15
    assert sum(fact[0] == "inreceptacle" for fact in world.start) > 20


def test_domain_and_grammar_are_the_unmodified_ones():
    game = games.generate(games.task_ids("valid_seen", "small")[0])
    assert game.pddl_domain == package.domain()
    assert game.grammar == package.grammar().replace("UNKNOWN GOAL.", game.goal)


def test_unknown_names_are_refused_with_the_valid_ones():
    with pytest.raises(UnknownName, match="valid_unseen"):
        games.task_ids("test")
    with pytest.raises(UnknownName, match="small"):
        games.task_ids("train", "tiny")
    with pytest.raises(UnknownName, match="pick_two_obj_and_place"):
        games.task_ids("train", task_types=["pick_three"])
    with pytest.raises(UnknownName, match="gen1/full/train"):
        games.generate("gen1/full/train/0000/pick_two_obj_and_place/room-19")
    with pytest.raises(UnknownName):
        games.GeneratedGames("valid_seen").game(games.task_ids("train")[0])


def test_generating_reads_and_seeds_no_global_generator():
    before = random.getstate()
    games.generate.__wrapped__(games.task_ids("train")[7])
    assert random.getstate() == before
