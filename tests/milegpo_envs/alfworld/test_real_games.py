"""A real ALFRED game in the wording of three data releases, where it is at hand."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from milegpo_envs.alfworld.compiled import compiled
from milegpo_envs.alfworld.experts import shortest_plan
from milegpo_envs.alfworld.fast_engine import FastEngine
from milegpo_envs.alfworld.folder import load_game, read_folder
from milegpo_envs.alfworld.handcoded import HandCodedExpert
from milegpo_envs.alfworld.parity import walk
from milegpo_envs.alfworld.textworld_engine import TextWorldEngine

GAMES = Path(__file__).parents[4] / "shared" / "data" / "alfworld" / "games"
RELEASES = ("single", "pseudo211", "pseudo212")
pytestmark = pytest.mark.skipif(not GAMES.is_dir(), reason="no real game in ../shared")


def real(release):
    listing = read_folder(GAMES / release)
    [task_id] = listing.task_types
    return load_game(listing.root, task_id)


@pytest.mark.parametrize("release", RELEASES)
def test_a_real_game_plays_as_on_textworld(release):
    game = real(release)
    slow, fast = TextWorldEngine(game), FastEngine(compiled(game))
    commands = []
    for name, share in (("wandering", 0.4), ("purposeful", 1.0)):
        for command, (expected, found) in walk([slow, fast], f"real/{name}", 50, share):
            commands.append(command)
            assert found == expected, commands
    slow.close()


@pytest.mark.parametrize("release", RELEASES)
def test_a_real_game_can_be_won_in_few_steps(release):
    game = real(release)
    plan = shortest_plan(compiled(game), game.task_type, game.params)
    assert plan is not None
    assert len(plan) == len(shortest_plan(compiled(real("single")), game.task_type, game.params))


@pytest.mark.parametrize("release", RELEASES)
def test_the_hand_coded_expert_wins_a_real_game(release):
    game = real(release)
    engine, expert = FastEngine(compiled(game)), HandCodedExpert(game, compiled(game))
    now = engine.reset()
    expert.reset(now)
    for _ in range(50):
        now = engine.step(expert.act(now).command)
        if now.won:
            break
    assert now.won


def test_the_goal_sentence_and_parameters_are_read():
    game = real("single")
    assert game.task_type == "pick_heat_then_place_in_recep"
    assert game.params.object_target == "Potato"
    assert game.scene == 14
    assert game.goal
    assert json.dumps(replace(game, grammar="").goal)
