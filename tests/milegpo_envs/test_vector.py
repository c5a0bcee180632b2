from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import milegpo_envs
from milegpo_envs.errors import UnknownName
from milegpo_envs.vector import make_vector
from milegpo_envs.wrappers import Prompted
from tests.toys import HOUSE_ID, solution, well_formed

ALFWORLD = "milegpo/ALFWorld-v0"
HOUSE = f"tests.toys:{HOUSE_ID}"
TASKS = ["reach-study", "reach-attic", "reach-study"]


def houses(**settings):
    return make_vector(HOUSE, 3, autoreset_mode="Disabled", **settings)


@pytest.mark.parametrize("processes", [False, True])
def test_every_slot_plays_its_own_task(processes):
    envs = houses(processes=processes)
    observations, infos = envs.reset(options={"task": TASKS})
    assert infos["task_id"].tolist() == TASKS
    assert observations in envs.observation_space
    observations, rewards, terminations, truncations, infos = envs.step(("go to study",) * 3)
    assert observations in envs.observation_space
    assert rewards.tolist() == [10.0, 0.0, 10.0]
    assert terminations.tolist() == [True, False, True]
    assert not truncations.any()
    assert infos["success"].tolist() == [True, False, True]
    mask = np.array([True, False, True])
    _, infos = envs.reset(options={"reset_mask": mask, "task": ["reach-garden", "", "reach-attic"]})
    assert infos["task_id"].tolist() == ["reach-garden", None, "reach-attic"]
    _, rewards, *_ = envs.step(("go to garden", "go to attic", "look"))
    assert rewards.tolist() == [10.0, 10.0, 0.0]
    envs.close()


def test_one_task_can_be_for_all_and_a_wrong_one_is_named():
    envs = houses()
    assert set(envs.reset(options={"task": "reach-attic"})[1]["task_id"]) == {"reach-attic"}
    with pytest.raises(ValueError, match="2 tasks for 3 slots"):
        envs.reset(options={"task": TASKS[:2]})
    with pytest.raises(UnknownName, match="reach-attic"):
        envs.reset(options={"task": ["reach-atic"] * 3})


def test_prompts_are_a_matter_of_wrappers():
    envs = houses(wrappers=(partial(Prompted, style="compact"),))
    observations, _ = envs.reset(options={"task": TASKS})
    assert observations in envs.observation_space
    assert observations[0][0]["role"] == "user"
    *_, infos = envs.step(tuple(well_formed(solution(task)[0]) for task in TASKS))
    assert infos["format_valid"].all()


@pytest.mark.parametrize("env_id", [ALFWORLD])
def test_make_vec_makes_what_make_makes(env_id):
    envs = gym.make_vec(env_id, num_envs=2, split="valid_seen", size="small", max_episode_steps=3)
    assert isinstance(envs.unwrapped, SyncVectorEnv)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert envs.spec.id == env_id
    env = gym.make(env_id, split="valid_seen", size="small")
    tasks = env.unwrapped.task_ids()[:2]
    observations, infos = envs.reset(options={"task": tasks})
    for slot, task in enumerate(tasks):
        observation, info = env.reset(options={"task": task})
        assert observations[slot] == observation
        assert infos["state_id"][slot] == info["state_id"]
        assert infos["admissible_actions"][slot] == info["admissible_actions"]
    for _ in range(3):
        *_, truncations, infos = envs.step(("look", "look"))
    assert truncations.all()
    envs.step(("look", "look"))  # the next step resets
    assert not envs.step(("look", "look"))[3].any()
    envs.close()


def test_seeds_decide_the_tasks_and_gymnasiums_wrappers_work():
    def drawn(seed):
        envs = RecordEpisodeStatistics(gym.make_vec(ALFWORLD, 3, size="small", max_episode_steps=2))
        ids = envs.reset(seed=seed)[1]["task_id"].tolist()
        envs.step(("look",) * 3)
        assert envs.step(("look",) * 3)[4]["episode"]["l"].tolist() == [2, 2, 2]
        return ids

    assert drawn(5) == drawn(5)
    assert len(set(drawn(5))) > 1


def test_textworld_has_processes_and_answers_as_the_fast_engine():
    envs = gym.make_vec(ALFWORLD, 1, engine="textworld", size="small", autoreset_mode="Disabled")
    assert isinstance(envs.unwrapped, AsyncVectorEnv)
    fast = gym.make_vec(ALFWORLD, 1, size="small", autoreset_mode="Disabled")
    tasks = gym.make(ALFWORLD, size="small").unwrapped.task_ids()[:1]
    ours, theirs = (e.reset(options={"task": tasks}) for e in (fast, envs))
    assert ours[0] == theirs[0]
    assert ours[1]["state_id"].tolist() == theirs[1]["state_id"].tolist()
    assert fast.step(("look",))[0] == envs.step(("look",))[0]
    envs.close()


def test_every_registered_id_can_be_made_as_a_vector():
    for env_id in milegpo_envs.ENTRY_POINTS:
        assert gym.spec(env_id).vector_entry_point == f"milegpo_envs.vector:{env_id}"
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        from milegpo_envs import vector

        _ = vector.nothing
