"""The fast engine against textworld, and textworld memoised against textworld as shipped."""

import argparse
import copy
import os
import pickle
import subprocess
import sys
import threading
from dataclasses import replace

import pytest

from milegpo_envs.alfworld import games, parity
from milegpo_envs.alfworld.compiled import compiled
from milegpo_envs.alfworld.fast_engine import FastEngine
from milegpo_envs.alfworld.folder import write_game
from milegpo_envs.alfworld.index import GAME_FILE
from milegpo_envs.alfworld.textworld_engine import (
    EngineClosed,
    ShippedTextWorldEngine,
    TextWorldEngine,
    WrongThread,
)
from milegpo_envs.errors import DataMissing


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


def small(task_type="pick_and_place_simple"):
    return games.generate(games.task_ids("train", "small", [task_type])[0])


def options(*arguments):
    parser = argparse.ArgumentParser()
    parity.add_options(parser)
    return parser.parse_args(arguments)


def mismatches(report):
    assert report.columns[-1] == "mismatches"
    return sum(row[-1] for row in report.rows)


def test_a_part_of_the_parity_command_finds_no_mismatch():
    heard = []
    report = parity.run(
        options("--games", "24", "--states", "700", "--shipped-states", "0"),
        lambda done, total, what: heard.append((done, total)),
    )
    assert mismatches(report) == 0, report.notes
    assert sum(row[2] for row in report.rows) == 24
    assert sum(row[3] for row in report.rows) >= 700
    assert heard[-1][0] == heard[-1][1]


def test_generated_games_are_of_every_type_size_split_and_wording():
    chosen = parity.generated_games(200, seed=0)
    assert len(chosen) == 200
    kinds = {(game.task_type, game.id.split("/")[1], game.id.split("/")[2]) for game in chosen}
    assert len(kinds) == 6 * 2 * 3
    for wording in ("/old", "/plain"):
        assert {g.task_type for g in chosen if g.id.endswith(wording)} == set(games.TASK_TYPES)
    assert not set(chosen) & set(parity.generated_games(200, seed=1))


@pytest.mark.parametrize(
    ("states", "count"), [(20_000, 203), (500, 15), (1, 1), (20, 40), (99, 1), (101, 2)]
)
def test_enough_states_are_walked_through_for_every_game(states, count):
    amount = parity.Amount.of(states, count)
    assert amount.steps <= parity.LONGEST
    assert amount.walks * (amount.steps + 1) * count >= states


@pytest.mark.parametrize("copied", [copy.deepcopy, pickle.dumps])
def test_textworlds_engine_says_that_it_cannot_be_copied(copied, memoised):
    with pytest.raises(TypeError, match="Use engine='fast'"):
        copied(memoised)


class Deaf(FastEngine):
    """Says something else when a receptacle is closed."""

    def step(self, command):
        now = super().step(command)
        return replace(now, feedback="Bang.") if command.startswith("close ") else now


class Forgetful(FastEngine):
    """Loses a fact, a command, or a win, once something is held."""

    lost = "facts"

    def step(self, command):
        now = super().step(command)
        if not any(fact[0] == "holds" for fact in now.facts):
            return now
        return replace(
            now,
            **{
                "facts": {"facts": now.facts - {f for f in now.facts if f[0] == "holds"}},
                "admissible_commands": {"admissible_commands": now.admissible_commands[1:]},
                "won": {"won": True},
            }[self.lost],
        )


@pytest.mark.parametrize("field", ["feedback", "facts", "admissible_commands", "won"])
def test_a_broken_engine_is_found_and_shown(field, monkeypatch, memoised):
    monkeypatch.setattr(Forgetful, "lost", field)
    monkeypatch.setattr(parity, "FastEngine", Deaf if field == "feedback" else Forgetful)
    monkeypatch.setattr(parity, "TextWorldEngine", lambda game: memoised)
    monkeypatch.setattr(memoised, "close", lambda: None)
    report = parity.run(
        options("--games", "6", "--states", "300", "--shipped-states", "0"), lambda *_: None
    )
    assert mismatches(report) > 0
    shown = [note for note in report.notes if f": {field} differs after [" in note]
    assert shown, report.notes
    assert "textworld: " in shown[0]
    assert "fast: " in shown[0]


def test_the_actions_before_a_mismatch_lead_to_it(monkeypatch, memoised):
    monkeypatch.setattr(parity, "FastEngine", Deaf)
    game = small("pick_cool_then_place_in_recep")
    memoised.load(game)
    _, found = parity.compare(game, memoised, parity.Amount(walks=3, steps=40))
    assert found
    for mismatch in found:
        engine = FastEngine(compiled(game))
        engine.reset()
        answers = [engine.step(action) for action in mismatch.actions]
        assert answers[-1].feedback == mismatch.expected
        assert mismatch.found == "Bang."


def test_a_folder_is_compared_whole_and_says_what_is_left_out(tmp_path):
    for task in games.task_ids("train", "small")[:3]:
        write_game(tmp_path, "train", games.generate(task))
    [broken, *_] = sorted(tmp_path.rglob(GAME_FILE))
    broken.write_text("{")
    chosen, left_out = parity.folder_games(tmp_path)
    assert len(chosen) == 2
    assert len(left_out) == 1
    assert str(broken.parent) in left_out[0]
    with pytest.raises(DataMissing, match="nowhere"):
        parity.folder_games(tmp_path / "nowhere")


@pytest.mark.parametrize("task_type", ["look_at_obj_in_light", "pick_two_obj_and_place"])
def test_games_play_as_on_textworld_as_shipped(shipped, task_type):
    game = small(task_type)
    shipped.load(game)
    assert parity.compare(game, shipped, parity.Amount(walks=1, steps=16)) == (17, [])


def test_memoising_changes_nothing(shipped, memoised):
    game = small("pick_clean_then_place_in_recep")
    shipped.load(game)
    memoised.load(game)
    for command, (expected, found) in parity.walk([shipped, memoised], "memo", 12):
        assert found == expected, command


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
