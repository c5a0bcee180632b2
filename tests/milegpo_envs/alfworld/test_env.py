from dataclasses import replace

import gymnasium as gym
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

import milegpo_envs  # noqa: F401  # registers the environments
from milegpo_envs.alfworld import games
from milegpo_envs.alfworld.compiled import compiled
from milegpo_envs.alfworld.engine import UnsupportedGame
from milegpo_envs.alfworld.experts import shortest_plan
from milegpo_envs.alfworld.folder import write_game
from milegpo_envs.errors import DataMissing, UnknownName
from milegpo_envs.pool import EnvPool
from milegpo_envs.wrappers import Prompted
from tests.milegpo_envs.contract import gymnasium_is_content

KEYS = {
    "task_id": str,
    "task_type": str,
    "state_id": str,
    "state": dict,
    "admissible_actions": list,
    "action_valid": bool,
    "invalid_reason": (str, type(None)),
    "rewritten_from": (str, type(None)),
    "rewritten_to": (str, type(None)),
    "success": bool,
    "score": float,
}
SMALL = games.task_ids("train", "small")


def make(**arguments):
    return gym.make("milegpo/ALFWorld-v0", **{"size": "small", **arguments})


def plan_of(task_id):
    game = games.generate(task_id)
    return shortest_plan(compiled(game), game.task_type, game.params)


def check_info(info):
    assert info.keys() == KEYS.keys()
    for key, kind in KEYS.items():
        assert isinstance(info[key], kind), key
    assert info["admissible_actions"] == sorted(info["admissible_actions"])
    assert len(info["state_id"]) == 32


@pytest.mark.parametrize(
    "arguments", [{}, {"size": "full"}, {"state": "graphgpo"}, {"actions": "resolve"}]
)
def test_gymnasium_finds_nothing_to_say(arguments):
    with gymnasium_is_content():
        check_env(make(**arguments).unwrapped)
        check_env(make(**arguments))


@pytest.mark.parametrize("task_type", games.TASK_TYPES)
def test_winning_pays_ten_once_and_terminates(task_type):
    env = make(task_types=[task_type])
    for task in env.unwrapped.task_ids()[:3]:
        observation, info = env.reset(options={"task": task})
        assert "Your task is to: " in observation
        assert info["task_type"] == task_type
        assert (info["success"], info["action_valid"], info["invalid_reason"]) == (
            False,
            True,
            None,
        )
        check_info(info)
        *before, last = plan_of(task)
        for command in before:
            observation, reward, terminated, truncated, info = env.step(command)
            check_info(info)
            assert (reward, terminated, truncated, info["success"]) == (0.0, False, False, False)
        _, reward, terminated, truncated, info = env.step(last)
        assert (reward, terminated, truncated) == (10.0, True, False)
        assert info["success"]
        assert info["score"] == 1.0


def test_the_horizon_truncates_and_is_no_success():
    env = make()
    env.reset(seed=1)
    for step in range(1, 51):
        _, reward, terminated, truncated, info = env.step("look")
        assert (reward, terminated, truncated) == (0.0, False, step == 50)
    assert not info["success"]


def test_an_invalid_action_costs_a_step_and_changes_nothing():
    env = make()
    _, start = env.reset(seed=2)
    observation, reward, terminated, _, info = env.step("go to the moon")
    assert observation == "Nothing happens."
    assert (reward, terminated) == (0.0, False)
    assert (info["action_valid"], info["invalid_reason"]) == (False, "not admissible")
    for key in ("state_id", "state", "admissible_actions", "task_id"):
        assert info[key] == start[key]


@pytest.mark.parametrize("arguments", [{}, {"actions": "resolve"}])
def test_no_action_raises(arguments):
    env = make(**arguments).unwrapped
    env.reset(seed=3)

    @given(
        st.one_of(
            st.text(), st.text(st.characters()), st.binary().map(lambda b: b.decode("latin-1"))
        )
    )
    @settings(max_examples=60, deadline=None)
    def check(action):
        observation, *_, info = env.step(action)
        assert env.observation_space.contains(observation)
        check_info(info)

    check()
    for action in (None, 7, b"look", "\ud800", "look" * 10**6):
        *_, info = env.step(action)
        assert not info["action_valid"]


def test_resolving_executes_the_one_command_meant_and_says_so():
    task = SMALL[0]
    strict, lenient = make(), make(actions="resolve")
    plan = plan_of(task)
    for env, valid in ((strict, False), (lenient, True)):
        env.reset(options={"task": task})
        said = plan[0].replace("go to", "walk to the")
        observation, *_, info = env.step(said)
        assert info["action_valid"] is valid
        assert info["rewritten_from"] == (said if valid else None)
        assert info["rewritten_to"] == (plan[0] if valid else None)
        assert (observation == "Nothing happens.") is not valid
    *_, info = lenient.step(f"  {plan[1]} ")
    assert info["action_valid"]
    assert info["rewritten_from"] is None


def test_a_seed_names_a_task():
    first, second = make(), make()
    tasks = [first.reset(seed=seed)[1]["task_id"] for seed in range(30)]
    assert tasks == [second.reset(seed=seed)[1]["task_id"] for seed in range(30)]
    assert len(set(tasks)) > 20
    assert set(tasks) <= set(SMALL)


def test_unseeded_resets_go_on_through_the_tasks():
    env = make()
    env.reset(seed=4)
    assert len({env.reset()[1]["task_id"] for _ in range(20)}) > 10


@pytest.mark.parametrize(
    ("argument", "value", "valid"),
    [
        ("split", "test", "valid_seen"),
        ("engine", "slow", "textworld"),
        ("state", "text", "graphgpo"),
        ("actions", "loose", "resolve"),
        ("observation", "html", "graphgpo"),
        ("size", "huge", "small"),
        ("task_types", ["cook"], "pick_two_obj_and_place"),
        ("task_types", [], "pick_two_obj_and_place"),
    ],
)
def test_an_unknown_setting_is_refused_with_the_valid_ones(argument, value, valid):
    with pytest.raises(UnknownName, match=valid):
        make(**{argument: value})


def test_an_unknown_task_or_option_is_refused():
    env = make()
    with pytest.raises(UnknownName, match="gen1/small/train"):
        env.reset(options={"task": "gen1/small/train/9999"})
    with pytest.raises(UnknownName, match="gen1/small/train"):
        env.reset(options={"task": games.task_ids("valid_seen", "small")[0]})
    with pytest.raises(UnknownName, match="task"):
        env.reset(options={"tsak": SMALL[0]})


def test_a_step_before_reset_is_refused():
    with pytest.raises(gym.error.ResetNeeded):
        make().unwrapped.step("look")


def test_a_closed_environment_can_be_reset_again():
    env = make()
    env.reset(seed=1)
    env.close()
    env.close()
    assert env.reset(seed=1)[1]["task_id"] in SMALL


def test_textworld_plays_the_same_episode_behind_the_same_contract():
    fast, slow = make(), make(engine="textworld")
    for task in SMALL[:2]:
        assert fast.reset(options={"task": task}) == slow.reset(options={"task": task})
        for command in (*plan_of(task)[:4], "dance", "look"):
            assert fast.step(command) == slow.step(command)
    slow.close()


def test_auto_falls_back_to_textworld_for_an_unknown_grammar(tmp_path):
    game = games.generate(SMALL[0])
    words = ("You are not carrying anything.", "Your hands are empty.")
    write_game(tmp_path, "train", replace(game, grammar=game.grammar.replace(*words)))
    env = gym.make("milegpo/ALFWorld-v0", data=tmp_path, allow_partial=True)
    env.reset(seed=0)
    observation, *_ = env.step("inventory")
    assert observation == "Your hands are empty."
    env.close()
    with pytest.raises(UnsupportedGame):
        gym.make("milegpo/ALFWorld-v0", data=tmp_path, engine="fast", allow_partial=True).reset(
            seed=0
        )


def test_a_folder_of_official_games_is_played_by_relative_path(tmp_path):
    for task in SMALL[:3]:
        write_game(tmp_path, "valid_seen", games.generate(task))
    with pytest.raises(DataMissing, match="3 of 140"):
        gym.make("milegpo/ALFWorld-v0", data=str(tmp_path), split="valid_seen")
    env = gym.make(
        "milegpo/ALFWorld-v0", data=str(tmp_path), split="valid_seen", allow_partial=True
    )
    assert (env.unwrapped.source, str(env.unwrapped.coverage)) == ("official", "3/140")
    tasks = env.unwrapped.task_ids()
    assert len(tasks) == 3
    _, info = env.reset(options={"task": tasks[1]})
    assert info["task_id"] == tasks[1]
    with pytest.raises(DataMissing, match="download_data alfworld"):
        gym.make("milegpo/ALFWorld-v0", data=tmp_path, split="train")
    with pytest.raises(UnknownName, match="full"):
        gym.make("milegpo/ALFWorld-v0", data=tmp_path, split="valid_seen", size="small")


def test_prompts_state_the_task_hide_help_and_stay_short():
    env = Prompted(make(), style="compact")
    messages, info = env.reset(seed=3)
    text = messages[0]["content"]
    assert text.startswith("task: ")
    assert "help" in info["admissible_actions"]
    assert "help" not in text.split()
    assert "Welcome" not in text
    assert len(text.split()) < 120
    papers = Prompted(make(), style="papers").reset(seed=3)[0][0]["content"]
    assert "<action></action>" in papers
    assert "help\n" not in papers


def test_a_pool_plays_many_tasks():
    pool = EnvPool(lambda: Prompted(make(), style="compact"), size=4)
    starts = pool.reset(SMALL[:4])
    assert [info["task_id"] for _, info in starts] == list(SMALL[:4])
    replies = {
        i: f"<think></think><action>{plan_of(t)[0]}</action>" for i, t in enumerate(SMALL[:4])
    }
    assert all(answer[4]["action_valid"] for answer in pool.step(replies).values())
    pool.close()
