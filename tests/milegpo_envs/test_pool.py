import logging
from itertools import count

import gymnasium as gym
import pytest

from milegpo_envs.errors import DataMissing, SlotError, UnknownName
from milegpo_envs.pool import EnvPool, Pool
from milegpo_envs.spaces import MessagesSpace
from milegpo_envs.wrappers import Prompted
from tests.milegpo_envs.contract import check_info
from tests.toys import HOUSE_ID, House, solution, well_formed

CARRY = "carry-lamp-to-cellar"
REACH = "reach-attic"
PROMPTED_KEYS = {"executed_action", "format_valid", "format_problem", "shorter_prompts"}


class Made:
    """Counts and keeps the environments that a pool made."""

    def __init__(self, **settings):
        self.settings = settings
        self.envs = []

    def __call__(self):
        self.envs.append(gym.make(HOUSE_ID, **self.settings))
        return Prompted(self.envs[-1])

    @property
    def closed(self):
        return [env.unwrapped.closed for env in self.envs]


def test_slots_play_the_tasks_they_are_given():
    pool: Pool = EnvPool(Made(), 3)
    starts = pool.reset([CARRY, REACH, CARRY])
    assert len(pool) == 3
    assert [info["task_id"] for _, info in starts] == [CARRY, REACH, CARRY]
    assert all(messages in MessagesSpace() for messages, _ in starts)
    assert starts[0][1]["state_id"] == starts[2][1]["state_id"]


def test_every_slot_can_be_solved_in_lockstep_and_leaves_when_it_is():
    tasks = [CARRY, REACH, "reach-garden"]
    pool = EnvPool(Made(), 3)
    pool.reset(tasks)
    plans = {slot: iter(solution(task)) for slot, task in enumerate(tasks)}
    solved_at = {}
    for step in count(1):
        answers = pool.step({slot: well_formed(next(plan)) for slot, plan in plans.items()})
        for slot, (_, reward, terminated, truncated, info) in answers.items():
            assert (reward, info["success"]) == ((10.0, True) if terminated else (0.0, False))
            assert not truncated
            if terminated:
                solved_at[slot] = step
                del plans[slot]
        if not plans:
            break
    assert solved_at == {slot: len(solution(task)) for slot, task in enumerate(tasks)}


def test_a_subset_can_be_stepped_in_any_order_and_the_rest_waits():
    pool = EnvPool(Made(), 3)
    pool.reset([REACH] * 3)
    answers = pool.step({2: well_formed("go to study"), 0: well_formed("look")})
    assert list(answers) == [2, 0]
    assert pool.step({1: well_formed("go to study")})[1][4]["state"] == answers[2][4]["state"]
    assert pool.step({}) == {}


def test_environments_are_made_when_needed_and_kept():
    made = Made()
    pool = EnvPool(made, 4)
    assert made.envs == []
    pool.reset([REACH, REACH])
    pool.reset([REACH])
    assert len(made.envs) == 2
    pool.reset([REACH] * 4)
    assert len(made.envs) == 4


def test_a_step_that_raises_is_data():
    pool = EnvPool(Made(fails_on="go to study"), 2)
    starts = pool.reset([CARRY, CARRY])
    answers = pool.step({0: well_formed("go to study"), 1: well_formed("look")})
    messages, reward, terminated, truncated, info = answers[0]
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert info["error"] == "OSError: cannot go to study"
    check_info(info, CARRY)
    assert info.keys() >= PROMPTED_KEYS
    assert info["executed_action"] == "go to study"
    assert (info["success"], info["action_valid"], info["format_valid"]) == (False, True, True)
    assert info["admissible_actions"] == []
    assert info["task_type"] == "carry"
    assert info["state_id"] == starts[0][1]["state_id"]
    assert messages == starts[0][0]
    assert messages is not starts[0][0]
    assert "error" not in answers[1][4]


def test_a_reset_that_raises_is_data():
    pool = EnvPool(Made(fails_on=REACH), 2)
    (messages, info), (_, other) = pool.reset([REACH, CARRY])
    assert info["error"] == "OSError: cannot start reach-attic"
    check_info(info, REACH)
    assert info.keys() >= PROMPTED_KEYS
    assert messages in MessagesSpace()
    assert "error" not in other
    with pytest.raises(SlotError, match="not playing"):
        pool.step({0: "x"})
    pool.step({1: "x"})


def test_a_broken_environment_is_closed_and_replaced_at_the_next_reset():
    made = Made(fails_on="look")
    pool = EnvPool(made, 2)
    pool.reset([CARRY, CARRY])
    pool.step({0: well_formed("look")})
    assert made.closed == [True, False]
    ((_, info),) = pool.reset([REACH])
    assert "error" not in info
    assert made.closed == [True, False, False]
    assert pool.step({0: well_formed("go to study")})[0][4]["action_valid"]


def test_a_failure_is_logged_with_its_traceback(caplog):
    pool = EnvPool(Made(fails_on="look"), 1)
    pool.reset([CARRY])
    with caplog.at_level(logging.WARNING):
        pool.step({0: well_formed("look")})
    assert "cannot look" in caplog.text
    assert "Traceback" in caplog.text


class Stubborn(House):
    """Raises in close as well."""

    def close(self):
        super().close()
        raise RuntimeError("cannot close")


def test_an_environment_that_cannot_even_be_closed_is_let_go():
    pool = EnvPool(lambda: Prompted(Stubborn(fails_on="look")), 1)
    pool.reset([CARRY])
    assert pool.step({0: well_formed("look")})[0][4]["error"] == "OSError: cannot look"
    assert "error" not in pool.reset([CARRY])[0][1]


def test_closing_closes_all_even_if_one_refuses():
    envs = [Stubborn(), House()]
    rest = iter(envs)
    pool = EnvPool(lambda: Prompted(next(rest)), 2)
    pool.reset([CARRY, CARRY])
    with pytest.raises(RuntimeError, match="cannot close"):
        pool.close()
    assert [env.closed for env in envs] == [True, True]
    pool.close()


def test_a_closed_pool_can_be_reset_again():
    made = Made()
    pool = EnvPool(made, 1)
    pool.reset([REACH])
    pool.close()
    assert made.closed == [True]
    with pytest.raises(SlotError, match="not playing"):
        pool.step({0: "x"})
    pool.reset([REACH])
    assert made.closed == [True, False]


def test_an_unknown_task_is_the_callers_error_and_no_slot_plays():
    pool = EnvPool(Made(), 2)
    with pytest.raises(UnknownName, match="Did you mean 'reach-attic'"):
        pool.reset([CARRY, "reach-atic"])
    with pytest.raises(SlotError, match="not playing"):
        pool.step({0: "x"})
    pool.reset([CARRY, REACH])
    pool.step({0: "x", 1: "x"})


def test_missing_data_and_failing_makers_are_the_callers_errors():
    class NoFiles(House):
        def reset(self, *, seed=None, options=None):
            raise DataMissing("Run: download")

    with pytest.raises(DataMissing, match="Run: download"):
        EnvPool(lambda: Prompted(NoFiles()), 1).reset([CARRY])
    with pytest.raises(UnknownName, match="kind of task"):
        EnvPool(Made(kinds=["fly"]), 1).reset([CARRY])


def test_an_interrupt_passes():
    class Interrupted(House):
        def step(self, action):
            raise KeyboardInterrupt

    pool = EnvPool(lambda: Prompted(Interrupted()), 1)
    pool.reset([CARRY])
    with pytest.raises(KeyboardInterrupt):
        pool.step({0: "x"})


def test_misuse_is_named_and_steps_nothing():
    pool = EnvPool(Made(), 2)
    with pytest.raises(SlotError, match="not playing"):
        pool.step({0: "x"})
    pool.reset([REACH])
    for slot in (-1, 2):
        with pytest.raises(SlotError, match="slots 0 to 1"):
            pool.step({0: well_formed("go to study"), slot: "x"})
    with pytest.raises(SlotError, match="Slot 1 is not playing"):
        pool.step({0: well_formed("go to study"), 1: "x"})
    with pytest.raises(TypeError, match="Slot 0 takes a reply as text, not int"):
        pool.step({0: 7})
    assert pool.step({0: well_formed("look")})[0][4]["state"]["facts"] == [["agent", "at", "hall"]]
    with pytest.raises(SlotError, match="3 tasks for 2 slots"):
        pool.reset([REACH] * 3)
    with pytest.raises(ValueError, match="1 slot or more"):
        EnvPool(Made(), 0)


def test_a_finished_slot_cannot_be_stepped():
    pool = EnvPool(Made(), 1)
    pool.reset(["reach-study"])
    assert pool.step({0: well_formed("go to study")})[0][2] is True
    with pytest.raises(SlotError, match="not playing"):
        pool.step({0: "x"})
