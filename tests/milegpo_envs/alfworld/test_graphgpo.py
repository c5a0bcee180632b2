from dataclasses import replace

import gymnasium as gym
import pytest

import milegpo_envs  # noqa: F401  # registers the environments
from milegpo_envs.alfworld import games
from milegpo_envs.alfworld.compiled import compiled, things
from milegpo_envs.alfworld.engine import UnsupportedGame
from milegpo_envs.alfworld.experts import SearchingExpert
from milegpo_envs.alfworld.graphgpo import GraphGPOObservation
from milegpo_envs.wrappers import Prompted
from tests.toys import HOUSE_ID

TASK = games.task_ids("train", "small", ["pick_cool_then_place_in_recep"])[0]
# In this game: a potato in the sink basin, closed fridge and microwave, an open bin.


def make(**arguments):
    return gym.make("milegpo/ALFWorld-v0", **{"size": "small", **arguments})


def play(env, *commands):
    """The observations, the first included."""
    return [env.reset(options={"task": TASK})[0], *(env.step(command)[0] for command in commands)]


def test_the_context_follows_the_feedback():
    commands = (
        "go to sinkbasin 1",
        "take potato 1 from sinkbasin 1",
        "clean potato 1 with sinkbasin 1",
        "go to garbagecan 1",
        "move potato 1 to garbagecan 1",
        "dance",
    )
    plain, shown = play(make(), *commands), play(make(observation="graphgpo"), *commands)
    context = [
        "Location: {}.\nHolding: {}.\nMoved: {}.".format(*line)
        for line in (
            ("sinkbasin 1", "nothing", "nothing"),
            ("sinkbasin 1", "potato 1", "nothing"),
            ("sinkbasin 1", "potato 1 (clean)", "nothing"),
            ("garbagecan 1", "potato 1 (clean)", "nothing"),
            ("garbagecan 1", "nothing", "potato 1 to garbagecan 1"),
            ("garbagecan 1", "nothing", "potato 1 to garbagecan 1"),
        )
    ]
    assert shown[1:] == [f"{p}\n{c}" for p, c in zip(plain[1:], context, strict=True)]


def test_at_the_start_the_task_still_ends_the_text():
    [plain], [shown] = play(make()), play(make(observation="graphgpo"))
    room, task = plain.split("\n\nYour task is to: ")
    nothing = "Location: the middle of the room.\nHolding: nothing.\nMoved: nothing."
    assert shown == f"{room}\n{nothing}\n\nYour task is to: {task}"


@pytest.mark.parametrize("style", ["papers", "compact"])
def test_prompts_hold_the_context_and_an_undisturbed_task(style):
    env = Prompted(GraphGPOObservation(make()), style=style)
    first = env.reset(options={"task": TASK})[0][0]["content"]
    later = env.step("<think></think><action>go to fridge 1</action>")[0][0]["content"]
    plain = Prompted(make(), style=style).reset(options={"task": TASK})[0][0]["content"]
    [task] = [line for line in plain.splitlines() if line.startswith(("task: ", "Your task: "))]
    for text, place in ((first, "the middle of the room."), (later, "fridge 1.")):
        assert task in text.splitlines()
        assert f"location: {place}" in text.lower()
        assert "holding: nothing." in text.lower()


def test_the_wrapper_and_the_setting_are_one():
    commands = ("go to sinkbasin 1", "take potato 1 from sinkbasin 1", "look", "nonsense")
    wrapped, set_so = GraphGPOObservation(make()), make(observation="graphgpo")
    assert play(wrapped, *commands) == play(set_so, *commands)
    wrapped.reset(seed=2)
    set_so.reset(seed=2)
    assert wrapped.step("look") == set_so.step("look")
    assert wrapped.spec.make().step  # its arguments are recorded


def test_what_is_shown_changes_no_state():
    plain, shown = make(state="observation"), make(state="observation", observation="graphgpo")
    for env in (plain, shown):
        env.reset(options={"task": TASK})
    one, other = (env.step("go to fridge 1")[4] for env in (plain, shown))
    assert one == other


def test_only_alfworld_is_wrapped():
    with pytest.raises(TypeError, match="ALFWorld"):
        GraphGPOObservation(gym.make(HOUSE_ID))


def test_experts_read_the_longer_texts():
    env = make(observation="graphgpo")
    observation, info = env.reset(options={"task": TASK})
    expert = SearchingExpert()
    expert.reset(observation, info["admissible_actions"])
    for _ in range(20):
        action = expert.act(observation, info["admissible_actions"])
        observation, _, terminated, _, info = env.step(action)
        if terminated:
            break
    assert info["success"]


@pytest.mark.parametrize("size", games.SIZES)
def test_things_are_known_of_a_game_that_cannot_be_compiled(size):
    for task in games.task_ids("train", size)[:4]:
        game = games.generate(task)
        stranger = replace(game, grammar=game.grammar.replace("You are not", "You're not"))
        with pytest.raises(UnsupportedGame):
            compiled(stranger)
        assert things(stranger).names == things(game).names
        assert things(stranger).at == things(game).at
        names = [name.strip() for name in things(game).names.values()]
        assert len(set(names)) == len(names)
