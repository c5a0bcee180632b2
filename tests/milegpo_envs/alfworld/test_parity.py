"""The fast engine against textworld, and textworld memoised against textworld as shipped."""

import os
import subprocess
import sys
import threading

import pytest

from milegpo_envs.alfworld import games
from milegpo_envs.alfworld.compiled import compiled
from milegpo_envs.alfworld.engine import EngineStep
from milegpo_envs.alfworld.fast_engine import FastEngine
from milegpo_envs.alfworld.textworld_engine import (
    EngineClosed,
    ShippedTextWorldEngine,
    TextWorldEngine,
    WrongThread,
)
from tests.milegpo_envs.alfworld.old_grammars import in_old_words, with_plain_help
from tests.milegpo_envs.alfworld.walks import walk


@pytest.fixture(scope="module")
def memoised():
    """One engine for the module: its library is loaded once."""
    engine = TextWorldEngine(games.generate(games.task_ids("train", "small")[0]))
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def shipped():
    engine = ShippedTextWorldEngine(games.generate(games.task_ids("train", "small")[0]))
    yield engine
    engine.close()


def first(size, task_type, split="train"):
    return games.generate(games.task_ids(split, size, [task_type])[0])


def compare(engines, name, steps, expert=0.4):
    """Walk both; every answer must be equal in text, commands, win and facts."""
    commands = []
    for command, (expected, found) in walk(engines, name, steps, expert):
        commands.append(command)
        assert found == expected, commands
        assert isinstance(found, EngineStep)
    return commands


@pytest.mark.parametrize("task_type", games.TASK_TYPES)
def test_small_games_play_as_on_textworld(memoised, task_type):
    for task_id in games.task_ids("train", "small", [task_type])[:2]:
        game = games.generate(task_id)
        memoised.load(game)
        engines = [memoised, FastEngine(compiled(game))]
        compare(engines, f"{task_id}/wandering", 50)
        compare(engines, f"{task_id}/purposeful", 15, expert=1.0)


@pytest.mark.parametrize("task_type", games.TASK_TYPES)
def test_full_games_play_as_on_textworld(memoised, task_type):
    game = first("full", task_type, "valid_unseen")
    memoised.load(game)
    compare([memoised, FastEngine(compiled(game))], task_type, 60)


@pytest.mark.parametrize("rewrite", [in_old_words, with_plain_help])
def test_older_grammars_play_as_on_textworld(memoised, rewrite):
    game = rewrite(first("small", "pick_heat_then_place_in_recep"))
    memoised.load(game)
    compare([memoised, FastEngine(compiled(game))], rewrite.__name__, 60)


@pytest.mark.parametrize("task_type", ["look_at_obj_in_light", "pick_two_obj_and_place"])
def test_games_play_as_on_textworld_as_shipped(shipped, task_type):
    game = first("small", task_type)
    shipped.load(game)
    compare([shipped, FastEngine(compiled(game))], task_type, 16, expert=0.7)


def test_memoising_changes_nothing(shipped, memoised):
    game = first("small", "pick_clean_then_place_in_recep")
    shipped.load(game)
    memoised.load(game)
    compare([shipped, memoised], "memo", 12)


def test_memoising_does_not_outlive_a_call(memoised):
    import fast_downward
    from textworld.envs.pddl import logic, textgen

    def current():
        return [
            textgen._parse_and_convert,
            textgen.Rule,
            textgen.copy_context,
            textgen.Symbol.copy,
            textgen.ContextSensitiveGrammar.replace,
            textgen.ContextSensitiveGrammar.derive,
            fast_downward.pddl2sas,
            fast_downward.load_lib,
            logic.GameLogic,
        ]

    before, arguments = current(), list(sys.argv)
    memoised.reset()
    memoised.step("look")
    assert current() == before
    assert sys.argv == arguments


def test_a_second_thread_is_refused(memoised):
    memoised.reset()
    caught = []

    def use():
        try:
            memoised.step("look")
        except WrongThread as error:
            caught.append(str(error))

    thread = threading.Thread(target=use, name="second")
    thread.start()
    thread.join()
    assert "'second'" in caught[0]
    assert "engine='fast'" in caught[0]
    memoised.step("look")


OPEN_AND_CLOSE = """
import os
from milegpo_envs.alfworld import games
from milegpo_envs.alfworld.textworld_engine import TextWorldEngine

def mapped():
    with open("/proc/self/maps") as maps:
        return len({line.split()[-2] for line in maps if "libdownward" in line})

game = games.generate(games.task_ids("train", "small")[0])
for _ in range(3):
    engines = [TextWorldEngine(game) for _ in range(2)]
    assert all(engine.reset().feedback for engine in engines)
    for engine in engines:
        engine.close()
        engine.close()
print(mapped(), os.environ.get("ALFWORLD_DATA"), os.listdir(os.environ["HOME"]))
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="counts libraries in /proc")
def test_closed_engines_hand_their_library_on_and_leave_no_trace(tmp_path):
    env = {k: v for k, v in os.environ.items() if k != "ALFWORLD_DATA"} | {"HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", OPEN_AND_CLOSE], env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[0] == "2 None []"  # two open at a time: two copies, not six


def test_a_closed_engine_says_so():
    engine = TextWorldEngine(games.generate(games.task_ids("train", "small")[0]))
    engine.close()
    with pytest.raises(EngineClosed):
        engine.reset()
