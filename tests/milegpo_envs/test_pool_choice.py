from functools import partial

import pytest

from milegpo_envs.errors import UnknownName
from milegpo_envs.pool import EnvPool, MakeEnv, PoolFailed, ProcessPool, make_pool
from milegpo_envs.wrappers import Prompted
from tests.milegpo_envs import pool_toys as toys

ALFWORLD = "milegpo/ALFWorld-v0"


def alfworld(engine):
    return MakeEnv(
        ALFWORLD, {"size": "small", "engine": engine}, (partial(Prompted, style="compact"),)
    )


def test_auto_is_in_process_unless_workers_are_asked_for_or_the_environment_wants_them():
    assert isinstance(make_pool(alfworld("fast"), 2), EnvPool)
    assert isinstance(make_pool(toys.MAKE, 2), EnvPool)
    assert isinstance(make_pool(alfworld("textworld"), 2), ProcessPool)
    assert isinstance(make_pool(alfworld("fast"), 2, workers=2), ProcessPool)
    assert isinstance(make_pool(alfworld("textworld"), 2, kind="local"), EnvPool)


def test_auto_makes_no_environment_more_than_it_needs():
    made = []

    def make():
        made.append(toys.moody())
        return made[-1]

    pool = make_pool(make, 2)
    pool.reset(["reach-attic"] * 2)
    assert len(made) == 2
    pool.close()
    pool.reset(["reach-attic"] * 2)
    assert len(made) == 4


def test_textworld_in_processes_answers_as_the_fast_engine_in_this_one():
    fast = make_pool(alfworld("fast"), 2)
    slow = make_pool(alfworld("textworld"), 2, workers=1)
    tasks = alfworld("fast")().unwrapped.task_ids()[:2]
    assert slow.reset(tasks) == fast.reset(tasks)
    replies = {0: "<think></think><action>look</action>", 1: "dance"}
    assert slow.step(replies) == fast.step(replies)
    slow.close()


def test_wrong_settings_are_named():
    with pytest.raises(UnknownName, match="auto, local, processes, ray"):
        make_pool(toys.MAKE, 2, kind="threads")
    with pytest.raises(ValueError, match="from 0"):
        make_pool(toys.MAKE, 2, workers=-1)
    with pytest.raises(PoolFailed, match="MakeEnv"):
        make_pool(lambda: toys.moody(), 2, workers=1)
