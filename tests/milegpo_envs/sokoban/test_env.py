import argparse
import copy
import os
import pickle
import random
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

import milegpo_envs  # noqa: F401  # registers the environments
from milegpo_envs.errors import UnknownName
from milegpo_envs.panels import named_panel
from milegpo_envs.sokoban import bench
from milegpo_envs.sokoban.board import MOVES, Position
from milegpo_envs.sokoban.canonical import Views, canonical, views_of
from milegpo_envs.sokoban.env import read_move
from milegpo_envs.sokoban.experts import SolvingExpert
from milegpo_envs.sokoban.notation import for_prompt, rows_of
from milegpo_envs.sokoban.solver import plan
from milegpo_envs.state import state_id
from milegpo_envs.wrappers import Prompted
from tests.milegpo_envs.contract import check_contract, check_info, gymnasium_is_content
from tests.milegpo_envs.sokoban.boards import board

ROOT = Path(__file__).parents[3]


def make(**arguments):
    return gym.make("milegpo/Sokoban-v0", **arguments)


@pytest.fixture
def of(tmp_path):
    """An environment on one board, whose rows are set apart by /, after reset."""

    def making(text, **arguments):
        file = tmp_path / "one.txt"
        file.write_text(text.replace("/", "\n"))
        env = make(levels=file, **arguments)
        env.reset(seed=0)
        return env

    return making


def id_of(text):
    return state_id(canonical(text.split("/")))


def plan_of(env, task):
    env.reset(options={"task": task})
    level = env.unwrapped.level
    return list(plan(level.room, level.start))


@pytest.mark.parametrize("observation", ["text", "image", "both"])
@pytest.mark.parametrize("render_mode", [None, "rgb_array", "ansi"])
def test_gymnasium_finds_nothing_to_say(observation, render_mode):
    env = make(observation=observation, render_mode=render_mode)
    with gymnasium_is_content():
        check_env(env.unwrapped)
        check_env(make(observation=observation, render_mode=render_mode))


@pytest.mark.parametrize(
    "arguments",
    [{}, {"observation": "image"}, {"observation": "both"}, {"boxes": 2, "size": (7, 7)}],
)
def test_the_environment_contract(arguments):
    env = make(**arguments)
    for task in env.unwrapped.task_ids()[:4]:
        horizon = make(**arguments, max_episode_steps=100)
        check_contract(horizon, task, plan_of(env, task))


def test_the_info_of_a_first_step():
    env = make()
    _, info = env.reset(options={"task": "gen1/6x6/1/train/00000"})
    assert info == {
        "task_id": "gen1/6x6/1/train/00000",
        "state_id": state_id(info["state"]),
        "state": {"board": ["######", "#   @#", "# #$##", "#   ##", "#  .##", "######"]},
        "admissible_actions": ["down", "left", "right", "up"],
        "action_valid": True,
        "invalid_reason": None,
        "success": False,
        "score": 0.0,
        "deadlocked": False,
        "boxes_on_target": 0,
    }


def test_infos_are_fresh():
    env = make()
    env.reset(seed=1)
    first = env.step("up")[4]
    first["state"]["board"].clear()
    first["admissible_actions"].clear()
    first.clear()
    check_info(env.step("up")[4], env.unwrapped.level.id)


def test_a_push_into_a_wall_is_legal_and_keeps_the_state(of):
    env = of("######/#@ $.#/#    #/######")
    _, info = env.reset()
    _, _, _, _, after = env.step("up")
    assert after["action_valid"]
    assert (after["state_id"], after["state"]) == (info["state_id"], info["state"])


@pytest.mark.parametrize(
    "text",
    [
        "#######/#. $  #/#  @$ #/# .   #/#######",
        "###/#@#/#$#/#.#/###",
        "#############/#@ $  .  . $#/#############",
        "   ####/####  #/#@ $. #/#######",  # blanks outside the walls
    ],
)
def test_a_view_is_what_the_plain_writers_write(text):
    room, start = board(text)
    views, draws = Views(room), random.Random(0)
    for _ in range(200):
        player, *boxes = draws.sample(room.floor, 1 + start.boxes.bit_count())
        position = Position(player, sum(1 << b for b in boxes))
        view, rows = views.at(position), rows_of(room, position)
        assert (view.rows, view.text) == (rows, for_prompt(rows))
        assert view.state_id == state_id(canonical(rows))
        assert view.solved == all(room.targets >> b & 1 for b in boxes)
        assert view.on_target == sum(room.targets >> b & 1 for b in boxes)


def test_player_boxes_targets_and_walls_tell_states_apart():
    boards = [
        "#####/#@$.#/#   #/#####",
        "#####/# $.#/#@  #/#####",  # the player
        "#####/#@ .#/# $ #/#####",  # the box
        "#####/#@$ #/#  .#/#####",  # the target
        "#####/#@$.#/#  ##/#####",  # a wall
        "#####/#+$ #/#   #/#####",  # on a target, or not
    ]
    assert len({id_of(text) for text in boards}) == len(boards)


def test_two_routes_to_a_board_lead_to_one_state(of):
    env = of("######/#@   #/#  $ #/#  . #/######")
    for routes in (["right", "down"], ["down", "right"], ["left", "down", "up", "right", "down"]):
        env.reset()
        last = [env.step(move)[4]["state_id"] for move in routes][-1]
        assert last == id_of("######/#    #/# @$ #/#  . #/######")


def test_rewards_of_the_papers(of):
    env = of("######/#@$ .#/######")
    assert [env.step(m)[1:3] for m in ("left", "right", "right")] == [
        (0.0, False),
        (0.0, False),
        (10.0, True),
    ]


def test_rewards_as_gym_sokoban_has_them(of):
    # One of two boxes stands on its target: that pays nothing, leaving costs 1, returning pays 1.
    env = of("########/#@*  $.#/#      #/########", reward="gym")
    moves = ["right", "down", "right", "right", "up", "left", "left"]
    paid = [round(env.step(m)[1], 9) for m in moves]
    assert paid == [-1.1, -0.1, -0.1, -0.1, -0.1, 0.9, -1.1]
    solving = of("######/#@$.##/######", reward="gym").step("right")
    assert (round(solving[1], 9), solving[2]) == (10.9, True)
    assert round(of("######/#@$.##/######", reward="gym").step("nothing")[1], 9) == -0.1


def test_the_horizon_truncates():
    env = make()
    env.reset(seed=5)
    ends = [env.step("nowhere")[2:4] for _ in range(15)]
    assert ends == [(False, False)] * 14 + [(False, True)]


@pytest.mark.parametrize(
    ("said", "move"),
    [
        ("up", "up"),
        (" Left ", "left"),
        ("RIGHT", "right"),
        ("move down, then right", "down"),
        ("[push right]", "right"),
        ("go up.", "up"),
        ("UP", "up"),
        ("R\u0131ght", None),  # a dotless i, a dotted capital: letters that look like others
        ("R\u0130GHT", None),
        ("\ufb01ght, LEFT", "left"),
        ("upwards", None),
        ("backup", None),
        ("still", None),
        ("", None),
    ],
)
def test_the_first_move_named_counts(said, move):
    assert read_move(said) == (move, None if move else "no move named")


def test_what_is_not_text_is_invalid():
    env = make()
    _, start = env.reset(seed=1)
    for action in (None, 3, ["up"], b"up", Mock(spec=str), {"up": 1}, np.array("up")):
        _, reward, _, _, info = env.step(action)
        assert (info["action_valid"], info["invalid_reason"]) == (False, "not text")
        assert (reward, info["state_id"]) == (0.0, start["state_id"])


def test_a_reply_with_a_letter_like_an_i_is_no_crash():
    env = Prompted(make())
    env.reset(seed=1)
    _, _, _, _, info = env.step("<think>go</think><action>r\u0131ght</action>")
    assert (info["executed_action"], info["action_valid"]) == ("r\u0131ght", False)


@given(st.text() | st.text(alphabet="RrI\u0130\u0131GgHhTt\u017fKk\u212a", min_size=5, max_size=5))
@settings(max_examples=60)
def test_no_text_raises(action):
    env = make()
    env.reset(seed=1)
    check_info(env.step(action)[4], env.unwrapped.level.id)


def test_a_lost_board_is_shown(of):
    env = of("######/#@$ .#/#    #/#    #/######")
    assert env.unwrapped.distance() == 2
    assert env.unwrapped.distance(by="moves") == 2
    for move in ("down", "right", "up"):  # under the box: it cannot go up
        info = env.step(move)[4]
    assert not info["deadlocked"]
    env = of("######/#    #/#@$ .#/#    #/######")
    for move in ("down", "right"):
        env.step(move)
    info = env.step("up")[4]
    assert info["deadlocked"]
    assert not info["success"]
    assert env.unwrapped.distance() is None
    assert env.unwrapped.distance(info["state"]) is None
    with pytest.raises(UnknownName, match="pushes"):
        env.unwrapped.distance(by="time")


def test_a_seed_names_a_level_whatever_the_global_generators_and_the_process():
    code = (
        "import gymnasium as gym, milegpo_envs, random, numpy\n"
        "random.seed(3); numpy.random.seed(3)\n"
        "env = gym.make('milegpo/Sokoban-v0')\n"
        "print(*(env.reset(seed=s)[1]['state_id'] for s in range(8)))"
    )
    out = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "11"},
        capture_output=True,
        text=True,
        check=True,
    )
    env = make()
    assert out.stdout.split() == [env.reset(seed=s)[1]["state_id"] for s in range(8)]
    assert len(set(out.stdout.split())) == 8


@pytest.mark.parametrize("observation", ["text", "both"])
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_plays_on_alike_however_much_was_seen(observation, copied):
    env = make(size=(10, 10), boxes=3, observation=observation, max_episode_steps=10_000)
    env.reset(seed=1)
    views_of.cache_clear()
    env.reset(seed=1)
    before = len(pickle.dumps(env))
    draws = random.Random(0)
    for _ in range(3000):
        env.step(draws.choice(MOVES))
    assert len(pickle.dumps(env)) < before + 2000  # the one position, not all that were seen
    other = copied(env)
    for move in ("left", "up", "right", "down", "right"):
        mine, others = env.step(move), other.step(move)
        assert mine[1:] == others[1:]
        assert mine[4]["state_id"] == state_id(others[4]["state"])


def test_unseeded_resets_go_on_through_the_levels():
    env = make()
    env.reset(seed=4)
    assert len({env.reset()[1]["task_id"] for _ in range(20)}) > 10


@pytest.mark.parametrize(
    ("argument", "value", "valid"),
    [
        ("observation", "sound", "image"),
        ("reward", "score", "gym"),
        ("split", "dev", "validation"),
    ],
)
def test_an_unknown_setting_is_refused_with_the_valid_ones(argument, value, valid):
    with pytest.raises(UnknownName, match=valid):
        make(**{argument: value})


def test_unknown_tasks_options_sizes_and_tiles_are_refused(of):
    env = make()
    with pytest.raises(UnknownName, match="gen1/6x6/1/train"):
        env.reset(options={"task": "gen1/6x6/1/test/00000"})
    with pytest.raises(UnknownName, match="task"):
        env.reset(options={"tsak": "gen1/6x6/1/train/00000"})
    with pytest.raises(ValueError, match="rows"):
        make(size=(6,))
    for wrong in (6, None, "66", (6, 6, 6)):
        with pytest.raises(ValueError, match="rows"):
            make(size=wrong)
    for settings_ in ({"size": (6.5, 6)}, {"boxes": 1.0}, {"boxes": "1"}, {"boxes": True}):
        with pytest.raises(ValueError, match="whole numbers"):
            make(**settings_)
    for tile in (16.5, "16", None):
        with pytest.raises(ValueError, match="whole numbers"):
            make(tile=tile)
    with pytest.raises(ValueError, match="pixels"):
        make(tile=2)
    with pytest.raises(ValueError, match="level file"):
        of("######/#@ $.#/######", boxes=2)
    with pytest.raises(gym.error.ResetNeeded):
        make().unwrapped.step("up")


def test_sizes_come_as_lists_from_recipes():
    _, info = make(size=[7, 9], boxes=2, split="test").reset(seed=0)
    assert info["task_id"].startswith("gen1/7x9/2/test/")
    assert [len(row) for row in info["state"]["board"]] == [9] * 7


def test_the_panels_are_the_splits_and_disjoint():
    test, train = named_panel("sokoban/test"), named_panel("sokoban/train", 200)
    assert set(test.task_ids) == set(make(split="test").unwrapped.task_ids())
    assert not set(test.task_ids) & set(train.task_ids)
    larger = named_panel("sokoban/8x8/2/validation:16")
    assert all(id.startswith("gen1/8x8/2/validation/") for id in larger.task_ids)
    assert named_panel("sokoban/test:10", size=(7, 7)).task_ids[0].startswith("gen1/7x7/1/test/")


def test_the_expert_solves_every_level_in_fewest_moves():
    env, expert = make(split="test"), SolvingExpert()
    for task in env.unwrapped.task_ids()[:40]:
        fewest = len(plan_of(env, task))
        observation, info = env.reset(options={"task": task})
        expert.reset(observation, info["admissible_actions"])
        for count in range(1, fewest + 1):
            move = expert.act(observation, info["admissible_actions"])
            assert expert.intention in (f"push {move}", f"go {move}")
            observation, _, terminated, _, info = env.step(move)
            assert terminated is (count == fewest)


def test_the_expert_stays_where_it_is_when_all_is_lost(of):
    env, expert = of("######/#@   #/#  ..#/#$  $#/######"), SolvingExpert()
    expert.reset(env.reset()[0], MOVES)
    observation = env.reset()[0]
    assert env.unwrapped.distance() is None
    assert expert.act(observation, MOVES) == "left"
    assert expert.intention == "lost"


def test_the_compact_prompt_is_the_inner_board_and_the_last_moves(of):
    env = Prompted(of("######/#@$  #/#   .#/#    #/######"), style="compact")
    assert env.reset()[0][0]["content"] == "P X _ _ | _ _ _ O | _ _ _ _"
    (message,) = env.step("<think>go</think><action>down</action>")[0]
    assert message["content"] == "1 down\n_ X _ _ | P _ _ O | _ _ _ _"


def test_the_papers_prompt_tells_rules_symbols_history_board_and_moves(of):
    env = Prompted(of("######/#@$  #/#   .#/#    #/######"))
    first = env.reset()[0][0]["content"]
    assert "√ box on a target" in first
    assert " # \t P \t X \t _ \t _ \t # \t\n" in first
    assert "Admissible actions: down, left, right, up" in first
    later = env.step("<think>a</think><action>down</action>")[0][0]["content"]
    assert "[step 1] move: down" in later
    assert later.count(" X \t") == 2  # before and now


@pytest.mark.parametrize("style", ["papers", "compact"])
@pytest.mark.parametrize("observation", ["image", "both"])
def test_a_picture_has_its_place_in_the_prompt_and_travels_in_info(style, observation):
    env = Prompted(make(observation=observation), style=style)
    messages, info = env.reset(seed=1)
    for _ in range(3):
        assert messages in env.observation_space
        for prompt in (messages, *info["shorter_prompts"]):
            parts = prompt[0]["content"]
            assert [p for p in parts if p["type"] == "image"] == [{"type": "image"}]
            assert "<image>" not in "".join(p.get("text", "") for p in parts)
        (picture,) = info["images"]
        assert picture.shape == (96, 96, 3)
        messages, *_, info = env.step("<think></think><action>up</action>")
    text = "".join(p.get("text", "") for p in messages[0]["content"])
    assert ("X" in text.split()) is (observation == "both")
    assert "2 up" in text or "[step 2] move: up" in text


def test_views_are_forgotten_when_there_are_many(monkeypatch):
    monkeypatch.setattr("milegpo_envs.sokoban.canonical._KEPT", 10)
    env = make()
    env.reset(seed=3)
    views_of.cache_clear()
    env.reset(seed=3)
    ids = [[env.reset(seed=3)[1]["state_id"], *_walk(env)] for _ in range(2)]
    assert ids[0] == ids[1]


def _walk(env):
    draws = random.Random(1)
    return [env.step(draws.choice(MOVES))[4]["state_id"] for _ in range(14)]


def test_levels_of_several_sizes_fill_one_picture_with_walls(tmp_path):
    file = tmp_path / "two.txt"
    file.write_text("######\n#@ $.#\n######\n\n#####\n#@$.#\n#   #\n#####\n")
    env = make(levels=file, observation="image", tile=8)
    for task in env.unwrapped.task_ids():
        picture, _ = env.reset(options={"task": task})
        assert picture in env.observation_space
        assert picture.shape == (32, 48, 3)
        np.testing.assert_array_equal(picture[:8, :8], picture[-8:, -8:])


@pytest.mark.parametrize("options", [[], ["--size", "8", "8", "--boxes", "3"]])
def test_the_bench_fills_its_table(options):
    parser = argparse.ArgumentParser()
    bench.add_options(parser)
    report = bench.run(parser.parse_args(["--levels", "4", *options]), lambda *said: None)
    assert [len(row) for row in report.rows] == [2] * 6
    assert all(row[1] is None or row[1] > 0 for row in report.rows)
