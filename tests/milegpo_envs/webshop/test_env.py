import pickle
import random

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

import milegpo_envs  # noqa: F401  # registers the environments
from milegpo_envs.errors import UnknownName
from milegpo_envs.state import state_id
from milegpo_envs.webshop.shortest import shortest_purchase
from milegpo_envs.webshop.text_env import WebShopEnv
from milegpo_envs.wrappers import Prompted
from tests.milegpo_envs.contract import check_contract, check_info, gymnasium_is_content

OWN_KEYS = {"goal_index", "reward_parts", "max_reward"}


def make(**arguments):
    return gym.make("milegpo/WebShop-v0", **{"products": 200, **arguments})


def plan(env, index):
    return shortest_purchase(env.unwrapped.opened, index)


@pytest.mark.parametrize(
    "arguments",
    [{}, {"mode": "official"}, {"observation": "html", "state": "markov"}, {"observation": "url"}],
)
def test_gymnasium_finds_nothing_to_say(arguments):
    with gymnasium_is_content():
        check_env(make(**arguments).unwrapped)
        check_env(make(**arguments))


@pytest.mark.parametrize("observation", ["text_rich", "text", "html", "url"])
def test_a_task_is_solved_by_the_contract(observation):
    env = make(observation=observation)
    check_contract(env, env.unwrapped.task_ids()[3], plan(env, 3))


def test_the_best_purchase_pays_ten_once_and_others_are_graded():
    env = make()
    *before, buy = plan(env, 0)
    _, info = env.reset(options={"task": 0})
    assert (info["score"], info["reward_parts"], info["max_reward"]) == (0.0, {}, 1.0)
    for action in before[:2]:
        _, reward, *_ = env.step(action)
        assert reward == 0.0
    _, reward, terminated, truncated, info = env.step(buy)
    assert (reward, terminated, truncated, info["success"]) == (0.0, True, False, False)
    assert 0.0 < info["score"] < 1.0
    assert info["reward_parts"]["reward"] == info["score"]
    assert {"r_type", "r_att", "r_option", "r_price"} < info["reward_parts"].keys()


def test_after_the_purchase_nothing_happens_any_more():
    env = make().unwrapped
    env.reset(options={"task": 5})
    for action in plan(make(), 5):
        *_, info = env.step(action)
    assert info["success"]
    for action in ("search[tea]", "click[buy now]"):
        _, reward, terminated, _, after = env.step(action)
        assert (reward, terminated) == (0.0, True)
        assert (after["action_valid"], after["invalid_reason"]) == (False, "the purchase is made")
        assert after["state_id"] == info["state_id"]


def test_tasks_are_named_by_id_and_by_index():
    env = make()
    ids = env.unwrapped.task_ids()
    for task in (7, np.int64(7), np.uint8(7), ids[7]):
        _, info = env.reset(options={"task": task})
        assert (info["task_id"], info["goal_index"]) == (ids[7], 7)


@pytest.mark.parametrize(
    "task", [-1, 10**9, np.int64(-1), True, 3.0, "3", "x/3", "", b"3", "fixed-synthetic-x/0", (3,)]
)
def test_what_is_no_task_is_refused(task):
    with pytest.raises(UnknownName, match="goal indices 0 to"):
        make().reset(options={"task": task})


def test_ids_spelled_otherwise_are_refused():
    env = make()
    name = env.unwrapped.task_ids()[3].rpartition("/")[0]
    for number in ("03", " 3", "3.0", "\u0663", "-0", "9" * 5000):
        with pytest.raises(UnknownName):
            env.reset(options={"task": f"{name}/{number}"})


def test_splits_partition_the_goals_in_order():
    everything = make(products=1000).unwrapped.task_ids()
    parts = [make(products=1000, split=s).unwrapped for s in ("test", "validation", "train")]
    assert sum((part.task_ids() for part in parts), ()) == everything
    assert [len(part.task_ids()) for part in parts[:2]] == [500, 1000]
    with pytest.raises(UnknownName, match="goal indices 500 to 1499"):
        parts[1].reset(options={"task": 499})
    with pytest.raises(UnknownName, match="'train'"):
        make(products=20, split="train")


@pytest.mark.parametrize(
    "arguments",
    [
        {"mode": "x"},
        {"observation": "x"},
        {"state": "x"},
        {"split": "x"},
        {"size": "x", "data": "."},
    ],
)
def test_unknown_settings_are_refused_by_name(arguments):
    with pytest.raises(UnknownName):
        make(**arguments)


def test_other_goals_have_other_ids():
    names = {
        make(**arguments).unwrapped.task_ids()[0]
        for arguments in ({}, {"products": 201}, {"mode": "official"}, {"human_goals": True})
    }
    names.add(make(mode="official", seed=1).unwrapped.task_ids()[0])
    assert len(names) == 5
    assert make(seed=1).unwrapped.task_ids() == make(seed=0).unwrapped.task_ids()  # fixed prices


def test_a_seed_names_a_task():
    tasks = [make().reset(seed=seed)[1]["task_id"] for seed in range(30)]
    assert tasks == [make().reset(seed=seed)[1]["task_id"] for seed in range(30)]
    assert len(set(tasks)) > 20


@pytest.mark.parametrize("arguments", [{}, {"mode": "official", "observation": "url"}])
def test_no_action_raises(arguments):
    env = make(**arguments).unwrapped
    env.reset(seed=3)
    task = env.reset(seed=3)[1]["task_id"]
    named = st.tuples(
        st.sampled_from(["search[", "click[", "search[<a> ", "search[<r>"]), st.text()
    )
    clicks = st.integers(0, 10**6)

    @given(st.one_of(st.text(), named.map(lambda parts: "".join(parts) + "]"), clicks))
    @settings(max_examples=150)
    def check(action):
        if isinstance(action, int):
            offered = env.step("")[4]["admissible_actions"]
            action = offered[action % len(offered)] if offered else ""
        observation, *_, info = env.step(action)
        assert env.observation_space.contains(observation)
        check_info(info, task)
        assert info.keys() >= OWN_KEYS

    check()
    for action in (None, 7, b"look", ["x"]):
        assert env.step(action)[4]["invalid_reason"] == "not text"
    for action in ("search[" + "x" * 3_000_000 + "]", "search[\ud800]", "click[\x00]", "search[ ]"):
        assert env.observation_space.contains(env.step(action)[0])


@pytest.mark.parametrize("mode", ["fixed", "official"])
@pytest.mark.parametrize("words", ["\ud800", "\x00", " ", "x" * 100_000, "dress" + " x" * 50_000])
def test_any_words_are_a_valid_search(words, mode):
    env = make(mode=mode)
    env.reset(options={"task": 1})
    _, reward, terminated, _, info = env.step(f"search[{words}]")
    assert (info["action_valid"], reward, terminated) == (True, 0.0, False)
    assert info["state"]["page"] == "results"
    assert (info["state"]["total"] > 0) is words.startswith("dress")
    assert env.step("click[back to search]")[4]["state"] == {"page": "index"}


def test_two_environments_never_influence_each_other():
    """Interleaved steps give what steps alone give."""
    walks = {4: plan(make(), 4), 9: plan(make(), 9)}
    alone = {}
    for task, actions in walks.items():
        env = make()
        alone[task] = [env.reset(options={"task": task})] + [env.step(a) for a in actions]
    envs = {task: make() for task in walks}
    together = {task: [env.reset(options={"task": task})] for task, env in envs.items()}
    for step in range(max(map(len, walks.values()))):
        for task, env in envs.items():
            if step < len(walks[task]):
                together[task].append(env.step(walks[task][step]))
    assert together == alone


def test_the_hosts_random_numbers_are_left_alone():
    random.seed(5)
    np.random.seed(5)
    before = random.getstate(), pickle.dumps(np.random.get_state())
    env = make(products=150, mode="official")
    env.reset(seed=1)
    for action in plan(env, 0):
        env.step(action)
    assert (random.getstate(), pickle.dumps(np.random.get_state())) == before


def test_admissible_actions_are_accepted_and_the_query_entry_stands_with_the_search_bar():
    env = make()
    _, info = env.reset(options={"task": 1})
    assert info["admissible_actions"] == ["search[<your query>]"]
    env.step("search[small]")
    *_, info = env.step("click[next >]")
    assert "search[<your query>]" not in info["admissible_actions"]
    for action in info["admissible_actions"]:
        env.reset(options={"task": 1})
        env.step("search[small]")
        env.step("click[next >]")
        assert env.step(action)[4]["action_valid"], action


def test_a_state_of_observations_is_the_text_seen():
    env = make(state="observation")
    observation, info = env.reset(seed=0)
    assert info["state"] == {"observation": observation}
    assert info["state_id"] == state_id(info["state"])


def test_environments_of_a_process_share_their_shop():
    assert make().unwrapped.shop is make(split=None, observation="text").unwrapped.shop
    assert make(mode="official").unwrapped.shop is not make().unwrapped.shop


def test_the_official_mode_searches_on_after_the_purchase():
    env = make(mode="official").unwrapped
    env.reset(options={"task": 2})
    for action in plan(make(mode="official"), 2):
        env.step(action)
    _, reward, terminated, _, info = env.step("search[tea]")
    assert (reward, terminated, info["action_valid"], info["success"]) == (0.0, False, True, False)


def test_step_before_reset_is_refused():
    with pytest.raises(gym.error.ResetNeeded):
        WebShopEnv(products=50).step("search[tea]")


def test_environments_run_side_by_side_in_gymnasium():
    envs = gym.vector.SyncVectorEnv([make, make])
    envs.reset(seed=1)
    envs.step(["search[small]", ""])
    assert envs.step(["click[next >]", "search[tea]"])[0]
    envs.close()


@pytest.mark.parametrize("observation", ["text_rich", "text"])
def test_prompts_state_the_task_once_and_list_the_actions(observation):
    env = Prompted(make(observation=observation))
    env.reset(options={"task": 1})
    task = env.unwrapped.goal.instruction_text
    for action in plan(make(), 1)[:2]:
        messages, *_, info = env.step(f"<think>x</think><action>{action}</action>")
        content = messages[0]["content"]
        assert content.count(task) == 1
        assert all(entry in content for entry in info["admissible_actions"])
        assert "search[" in content  # in the history
