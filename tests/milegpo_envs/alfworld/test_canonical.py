import json
import os
import subprocess
import sys
from dataclasses import replace

import gymnasium as gym
import pytest

import milegpo_envs  # noqa: F401  # registers the environments
from milegpo_envs.alfworld import games
from milegpo_envs.alfworld.canonical import CANONICAL, facts, graphgpo
from milegpo_envs.alfworld.compiled import compiled
from milegpo_envs.alfworld.fast_engine import FastEngine
from milegpo_envs.draws import Draws
from milegpo_envs.state import state_id

TASK = games.task_ids("train", "small", ["pick_cool_then_place_in_recep"])[0]
# In this game: a potato in the sink basin, closed fridge and microwave, an open bin.


def play(*commands, state="facts", task=TASK):
    env = gym.make("milegpo/ALFWorld-v0", size="small", state=state)
    _, info = env.reset(options={"task": task})
    infos = [info]
    for command in commands:
        *_, info = env.step(command)
        infos.append(info)
    return infos


def test_equal_facts_by_two_routes_are_one_state():
    one = play("go to fridge 1", "go to sinkbasin 1")[-1]
    other = play("look", "go to garbagecan 1", "nonsense", "inventory", "go to sinkbasin 1")[-1]
    assert one["state_id"] == other["state_id"]
    assert one["state"] == other["state"]


def test_undoing_returns_to_the_state():
    before, *_, after = play("go to fridge 1", "open fridge 1", "close fridge 1")[1:]
    assert before["state_id"] == after["state_id"]


def test_one_changed_fact_is_another_state():
    ids = [
        info["state_id"]
        for info in play(
            "go to sinkbasin 1",
            "take potato 1 from sinkbasin 1",
            "clean potato 1 with sinkbasin 1",
            "go to fridge 1",
            "open fridge 1",
            "cool potato 1 with fridge 1",
            "close fridge 1",
        )
    ]
    assert len(set(ids)) == len(ids)


def test_an_invalid_action_and_mere_looking_keep_the_state():
    ids = {i["state_id"] for i in play("dance", "", "look", "inventory", "help", "go to fridge 9")}
    assert len(ids) == 1


@pytest.mark.parametrize("kind", ["facts", "graphgpo"])
@pytest.mark.parametrize("actions", ["strict", "resolve"])
def test_no_invalid_action_changes_the_state_wherever_it_is_taken(kind, actions):
    # Feedback is part of the graphgpo state: there, a second stumble keeps the state of the first.
    env = gym.make("milegpo/ALFWorld-v0", size="small", state=kind, actions=actions)
    _, info = env.reset(options={"task": TASK})
    for number in range(20):
        *_, before = env.step("dance")
        *_, after = env.step(f"take moon {number} from fridge 9")
        assert not before["action_valid"] and not after["action_valid"]
        assert before["state_id"] == after["state_id"]
        if kind == "facts":
            assert before["state_id"] == info["state_id"]
        *_, info = env.step(Draws(f"stumble/{number}").choice(info["admissible_actions"]))


def test_two_situations_that_answer_nothing_happens_are_two_states():
    start, away = play("dance")[-1], play("go to fridge 1", "dance")[-1]
    assert start["state_id"] != away["state_id"]
    start, away = (
        play("dance", state="observation")[-1],
        play("go to fridge 1", "dance", state="observation")[-1],
    )
    assert start["state_id"] == away["state_id"]  # the confusion that the papers' anchor has


def test_twin_facts_of_two_games_are_two_states():
    tasks = games.task_ids("train", "small")[:200]
    assert len({play(task=task)[0]["state_id"] for task in tasks}) == len(tasks)


def test_graphgpo_tells_apart_what_the_same_feedback_hides():
    by_hand = play("go to sinkbasin 1", "take potato 1 from sinkbasin 1", state="graphgpo")
    one, other = play("look", state="graphgpo")[-1], play("inventory", state="graphgpo")[-1]
    assert one["state_id"] != other["state_id"]
    held = by_hand[-1]["state"]["held"]
    assert len(held) == 1
    assert held[0][0].startswith("potato_bar_")
    moved = play(
        "go to sinkbasin 1",
        "take potato 1 from sinkbasin 1",
        "go to garbagecan 1",
        "move potato 1 to garbagecan 1",
        state="graphgpo",
    )[-1]["state"]["moved"]
    assert len(moved) == 1
    assert "garbagecan" in moved[0]


@pytest.mark.parametrize("kind", [kind for kind in CANONICAL if kind != "facts"])
def test_the_readable_state_is_what_the_id_hashes(kind):
    for info in play("go to sinkbasin 1", "take potato 1 from sinkbasin 1", "dance", state=kind):
        assert json.loads(json.dumps(info["state"])) == info["state"]
        assert state_id(info["state"]) == info["state_id"]
        assert info["state"]["task"] == TASK


def restored(state, first, names):
    """All facts, from those of the start and what a readable state says has changed."""
    ids = {name.strip(): id for id, name in names.items()}
    assert len(ids) == len(names)

    def read(line):
        predicate, _, arguments = line.partition(" ")
        return (predicate, *(ids[name] for name in arguments.split(", ")))

    added, removed = ({read(line) for line in state[key]} for key in ("added", "removed"))
    assert removed <= first
    assert not added & first
    return (first - removed) | added


@pytest.mark.parametrize("size", games.SIZES)
def test_a_state_of_facts_says_what_changed_and_that_is_complete(size):
    for task in games.task_ids("valid_seen", size)[:6]:
        env = gym.make("milegpo/ALFWorld-v0", size=size, split="valid_seen").unwrapped
        draws = Draws(f"changes/{task}")
        _, info = env.reset(options={"task": task})
        assert info["state"] == {"task": task, "added": [], "removed": []}
        for _ in range(30):
            *_, info = env.step(draws.choice(info["admissible_actions"]))
            assert json.loads(json.dumps(info["state"])) == info["state"]
            known = restored(info["state"], env.first.facts, env.things.names)
            assert known == env.now.facts
            assert state_id(facts(task, env.first, env.now)) == info["state_id"]


def test_a_state_of_facts_reads_like_the_texts():
    state = play("go to sinkbasin 1", "take potato 1 from sinkbasin 1")[-1]["state"]
    assert "holds agent1, potato 1" in state["added"]
    assert "inreceptacle potato 1, sinkbasin 1" in state["removed"]


def test_ids_of_states_stay_what_they_were():
    infos = play("go to sinkbasin 1", "take potato 1 from sinkbasin 1")
    assert [info["state_id"] for info in infos] == [
        "56524d2dbdd9874538b2c0b095172e68",
        "0f634c75c64d727657d3492ae61ef6ff",
        "278279b6a0c8f2da49798da4c43c759c",
    ]


def test_a_shuffled_list_of_commands_is_the_same_state():
    engine = FastEngine(compiled(games.generate(TASK)))
    first, now = engine.reset(), engine.step("go to sinkbasin 1")
    shuffled = replace(now, admissible_commands=now.admissible_commands[::-1])
    for canonical in CANONICAL.values():
        assert canonical(TASK, first, shuffled) == canonical(TASK, first, now)
    assert graphgpo(TASK, first, now) != graphgpo(TASK, first, first)


def test_infos_share_no_mutable_state():
    env = gym.make("milegpo/ALFWorld-v0", size="small")
    _, first = env.reset(options={"task": TASK})
    first["state"]["added"].append("broken")
    first["admissible_actions"].clear()
    *_, second = env.step("look")
    assert second["state"] == {"task": TASK, "added": [], "removed": []}
    assert second["state_id"] == first["state_id"]
    assert second["admissible_actions"]


def test_distinct_facts_have_distinct_ids_along_random_walks():
    env = gym.make("milegpo/ALFWorld-v0", size="small").unwrapped
    ids: dict[str, frozenset] = {}
    facts: dict[frozenset, str] = {}
    for number in range(20):
        draws = Draws(f"walk/{number}")
        _, info = env.reset(options={"task": TASK})
        for _ in range(40):
            known = env.now.facts
            assert ids.setdefault(info["state_id"], known) == known
            assert facts.setdefault(known, info["state_id"]) == info["state_id"]
            *_, info = env.step(draws.choice(info["admissible_actions"]))
    assert len(ids) > 50


STATE_IDS = """
import gymnasium as gym, milegpo_envs
for state in ("facts", "observation", "graphgpo"):
    env = gym.make("milegpo/ALFWorld-v0", size="small", state=state)
    _, info = env.reset(seed=5)
    out = [info["task_id"], info["state_id"], info["state"]]
    for number in range(10):
        *_, info = env.step(info["admissible_actions"][number % 3])
        out += [info["state_id"], info["state"]]
    print(out)
"""


def test_state_ids_and_seeded_tasks_do_not_depend_on_the_process():
    def run(hash_seed):
        env = {**os.environ, "PYTHONHASHSEED": hash_seed}
        return subprocess.run(
            [sys.executable, "-c", STATE_IDS], env=env, capture_output=True, text=True, check=True
        ).stdout

    assert run("1") == run("2")
