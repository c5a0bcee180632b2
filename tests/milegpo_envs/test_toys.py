import gymnasium as gym
import pytest
from gymnasium.utils.env_checker import check_env

from milegpo_envs.errors import UnknownName
from tests.milegpo_envs.contract import check_contract
from tests.toys import HORIZON, HOUSE_ID, TASKS, House, moves, solution, solved, start


@pytest.mark.parametrize("task_id", TASKS)
def test_the_house_fulfils_the_contract_on_every_task(task_id):
    check_contract(gym.make(HOUSE_ID), task_id, solution(task_id))


def test_the_house_passes_gymnasiums_own_check():
    check_env(gym.make(HOUSE_ID).unwrapped)


def test_every_task_can_be_solved_within_the_horizon_and_none_is_solved_at_the_start():
    for task_id, task in TASKS.items():
        assert 1 <= len(solution(task_id)) <= HORIZON
        assert not solved(task, start(task))


def test_different_situations_have_different_ids():
    ids = {}
    for task in TASKS.values():
        seen = {start(task)}
        stack = list(seen)
        while stack:
            new = set(moves(task, stack.pop()).values()) - seen
            seen |= new
            stack += new
        env = House()
        env.reset(options={"task": task.id})
        for at in seen:
            env._at = at
            ids[task.id, at] = env._info(None)["state_id"]
    assert len(set(ids.values())) == len(ids)


def test_a_seed_picks_a_task_as_a_pure_function():
    def drawn(seed):
        return House().reset(seed=seed)[1]["task_id"]

    assert [drawn(s) for s in range(9)] == [drawn(s) for s in range(9)]
    assert len({drawn(s) for s in range(60)}) == len(TASKS)


def test_kinds_choose_the_split():
    env = gym.make(HOUSE_ID, kinds=("reach",))
    assert all(task_id.startswith("reach-") for task_id in env.unwrapped.task_ids())
    with pytest.raises(UnknownName, match="reach, carry"):
        gym.make(HOUSE_ID, kinds=("fly",))
    with pytest.raises(UnknownName, match="Unknown task"):
        env.reset(options={"task": "carry-lamp-to-cellar"})
