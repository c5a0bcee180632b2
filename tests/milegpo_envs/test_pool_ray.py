"""The same pool on Ray's actors; one local Ray for the module."""

import os
import signal
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import patch

import pytest

from milegpo_envs.errors import UnknownName
from milegpo_envs.pool import EnvPool, PoolFailed, make_pool
from tests.milegpo_envs import pool_toys as toys
from tests.milegpo_envs.contract import check_info
from tests.toys import well_formed

if find_spec("ray") is None:
    pytest.skip("ray is not installed: pip install 'milegpo[ray]'", allow_module_level=True)

CARRY = "carry-lamp-to-cellar"
ROOT = Path(__file__).parents[2]
OPTIONS = {"num_cpus": 0.5}


@pytest.fixture(scope="module", autouse=True)
def local_ray():
    with patch.dict(os.environ, RAY_USAGE_STATS_ENABLED="0"):  # Ray sets more of them
        import ray

        ray.init(
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
            runtime_env={"env_vars": {"PYTHONPATH": str(ROOT)}},
        )
        yield
        ray.shutdown()


def ray_pool(make, size, workers, **settings):
    return make_pool(make, size, workers=workers, kind="ray", options=OPTIONS, **settings)


def test_answers_are_those_of_a_pool_in_this_process():
    tasks = toys.TASK_IDS[:5]
    remote = ray_pool(toys.MAKE, 6, 2)
    assert toys.played(remote, tasks) == toys.played(EnvPool(toys.MAKE, 6), tasks)
    with pytest.raises(UnknownName, match="Did you mean 'reach-attic'"):
        remote.reset(["reach-atic"])
    remote.close()


def test_a_dead_or_hanging_actor_is_data_and_is_replaced():
    pool = ray_pool(toys.moody, 2, 2, timeout=2.0)
    pool.reset([CARRY] * 2)
    answers = pool.step({0: well_formed("die"), 1: well_formed("look")})
    assert answers[0][3] is True
    assert answers[0][4]["error"].startswith("WorkerDied: worker 0 on Ray")
    check_info(answers[0][4], CARRY)
    assert "error" not in answers[1][4]
    os.kill(answers[1][4]["pid"], signal.SIGKILL)
    assert all("error" not in info for _, info in pool.reset([CARRY] * 2))
    answers = pool.step({0: well_formed("hang"), 1: well_formed("look")})
    assert answers[0][4]["error"] == "Timeout: worker 0 gave no answer within 2 s"
    assert "error" not in answers[1][4]
    assert "error" not in pool.reset([CARRY])[0][1]
    pool.close()


def test_what_the_caller_did_wrong_is_raised_here():
    with pytest.raises(PoolFailed, match="MakeEnv"):
        ray_pool(lambda: None, 1, 1)
    pool = ray_pool(toys.cannot_be_made, 1, 1)
    with pytest.raises(PoolFailed, match="OddError: 3 and 4"):
        pool.reset([CARRY])
    pool.close()
    with pytest.raises(PoolFailed, match="no such setting here"):
        ray_pool(toys.Untransportable(), 1, 1).reset([CARRY])
