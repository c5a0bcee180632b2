import gymnasium as gym
import pytest

from baselines.evaluation import evaluate_policy
from baselines.players import Advised, Echo
from milegpo_envs.panels import panel_of
from milegpo_envs.pool import EnvPool
from tests.toys import HOUSE_ID, TASKS, solution


class Solver:
    """Finds the task in the first observation and plays a shortest solution."""

    intention = "solve"

    def reset(self, observation, admissible):
        task = next(t for t in TASKS.values() if t.sentence in observation)
        self.plan = iter(solution(task.id))

    def act(self, observation, admissible):
        return next(self.plan)


def house():
    return gym.make(HOUSE_ID)


def bracket(make, size, seeds=(1, 2)):
    pool = EnvPool(make, size)
    panel = panel_of(house(), "house/all", None)
    return evaluate_policy(pool, Echo(), panel, seeds=seeds)


def test_an_expert_is_counted_like_any_policy():
    played = bracket(lambda: Advised(house(), Solver()), 4)
    assert len(played) == 2 * len(TASKS)
    assert all(e.success and e.format_valid == e.action_valid == 1 for e in played)


def test_random_play_is_admissible_and_does_not_depend_on_the_batch():
    played = bracket(lambda: Advised(house()), 4)
    assert played == bracket(lambda: Advised(house()), 7)
    assert all(e.action_valid == 1 for e in played)
    assert 0 < sum(e.success for e in played) < len(played)
    assert played[: len(TASKS)] != played[len(TASKS) :]  # another seed, other actions


def test_it_is_reset_first():
    with pytest.raises(gym.error.ResetNeeded):
        Advised(house()).step("look")
