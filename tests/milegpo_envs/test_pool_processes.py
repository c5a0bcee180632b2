import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from milegpo_envs.errors import SlotError, UnknownName
from milegpo_envs.pool import EnvPool, PoolFailed, ProcessPool
from milegpo_envs.spaces import MessagesSpace
from tests.milegpo_envs import pool_toys as toys
from tests.milegpo_envs.contract import check_info
from tests.toys import well_formed

CARRY = "carry-lamp-to-cellar"
REACH = "reach-attic"
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def pool():
    """Four slots on two processes, for tests that leave them alive."""
    pool = ProcessPool(toys.MAKE, 4, 2)
    yield pool
    pool.close()


@pytest.fixture
def moody():
    """Four slots on two processes that can be killed: slots 0 and 2, 1 and 3."""
    pool = ProcessPool(toys.moody, 4, 2, timeout=1.0, max_restarts=1)
    yield pool
    pool.close()


def pids():
    return {process.pid for process in multiprocessing.active_children()}


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_answers_are_those_of_a_pool_in_this_process(workers):
    tasks = toys.TASK_IDS[:5]
    local = EnvPool(toys.MAKE, 6)
    remote = ProcessPool(toys.MAKE, 6, workers)
    assert toys.played(remote, tasks) == toys.played(local, tasks)
    remote.close()


def test_forkserver_workers_answer_the_same():
    remote = ProcessPool(toys.MAKE, 2, 1, start_method="forkserver")
    assert toys.played(remote, [REACH]) == toys.played(EnvPool(toys.MAKE, 2), [REACH])
    remote.close()


def test_a_subset_can_be_stepped_in_any_order_and_the_rest_waits(pool):
    pool.reset([REACH] * 3)
    answers = pool.step({2: well_formed("go to study"), 0: well_formed("look")})
    assert list(answers) == [2, 0]
    assert pool.step({1: well_formed("go to study")})[1][4]["state"] == answers[2][4]["state"]
    assert pool.step({}) == {}
    assert pool.reset([]) == []


def test_misuse_is_named_and_steps_nothing(pool):
    pool.reset([REACH])
    with pytest.raises(SlotError, match="Slot 1 is not playing"):
        pool.step({0: well_formed("go to study"), 1: "x"})
    with pytest.raises(SlotError, match="slots 0 to 3"):
        pool.step({9: "x"})
    with pytest.raises(TypeError, match="not int"):
        pool.step({0: 7})
    assert pool.step({0: well_formed("look")})[0][4]["state"]["facts"] == [["agent", "at", "hall"]]
    with pytest.raises(SlotError, match="5 tasks for 4 slots"):
        pool.reset([REACH] * 5)
    with pytest.raises(ValueError, match="1 slot or more"):
        ProcessPool(toys.MAKE, 0, 1)
    with pytest.raises(ValueError, match="1 or more"):
        ProcessPool(toys.MAKE, 1, 0)
    with pytest.raises(ValueError, match="time-out"):
        ProcessPool(toys.MAKE, 1, 1, timeout=0)


def test_an_unknown_task_is_the_callers_error_with_the_workers_traceback(pool):
    with pytest.raises(UnknownName, match="Did you mean 'reach-attic'") as caught:
        pool.reset([CARRY, "reach-atic", "reach-cellr"])
    assert "in a worker" in str(caught.value.__notes__).lower()
    with pytest.raises(SlotError, match="not playing"):
        pool.step({0: "x"})
    assert "error" not in pool.reset([CARRY])[0][1]


def test_environments_that_raise_are_data_and_logged_with_their_traceback(caplog):
    pool = ProcessPool(toys.failing("go to study"), 2, 2)
    pool.reset([CARRY, CARRY])
    with caplog.at_level(logging.WARNING):
        answers = pool.step({0: well_formed("go to study"), 1: well_formed("look")})
    assert answers[0][4]["error"] == "OSError: cannot go to study"
    assert "Traceback" in caplog.text
    assert "cannot go to study" in caplog.text
    assert "error" not in answers[1][4]
    pool.close()
    pool = ProcessPool(toys.failing(REACH), 1, 1)
    assert pool.reset([REACH])[0][1]["error"] == "OSError: cannot start reach-attic"
    pool.close()


def test_a_killed_worker_takes_its_own_episodes_only_and_is_replaced(moody, caplog):
    starts = moody.reset([CARRY] * 4)
    before = pids()
    answers = moody.step({0: well_formed("die"), 1: well_formed("look")})
    messages, reward, terminated, truncated, info = answers[0]
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert info["error"] == "WorkerDied: worker 0 was killed by SIGKILL"
    check_info(info, CARRY)
    assert info["executed_action"] == "die"
    assert info["state_id"] == starts[0][1]["state_id"]
    assert messages in MessagesSpace()
    assert "error" not in answers[1][4]
    waited = moody.step({3: well_formed("look"), 2: well_formed("go to study")})
    assert "error" not in waited[3][4]
    assert waited[2][3] is True
    assert waited[2][4]["error"] == info["error"]
    with pytest.raises(SlotError, match="Slot 2 is not playing"):
        moody.step({2: "x"})
    assert "will be replaced" in caplog.text
    assert all("error" not in info for _, info in moody.reset([REACH] * 4))
    assert len(before - pids()) == 1
    assert len(pids()) == len(before)


def test_a_worker_killed_between_two_calls_is_replaced_before_the_reset(moody):
    moody.reset([CARRY] * 2)
    victim = moody.step({1: well_formed("look")})[1][4]["pid"]
    os.kill(victim, signal.SIGKILL)
    for process in multiprocessing.active_children():
        if process.pid == victim:
            process.join()
    assert all("error" not in info for _, info in moody.reset([CARRY] * 2))


def test_a_worker_whose_end_somebody_else_was_told_is_replaced_all_the_same(moody):
    """Another thread's wait for any child takes the exit code, and multiprocessing never has it."""
    moody.reset([CARRY] * 4)
    killed = moody.step({0: well_formed("look")})[0][4]["pid"]
    os.kill(killed, signal.SIGKILL)
    assert os.waitpid(killed, 0) == (killed, signal.SIGKILL)
    infos = [step[4] for step in moody.step(dict.fromkeys(range(4), well_formed("look"))).values()]
    lost = [info["error"] for info in infos if "error" in info]
    assert lost == ["WorkerDied: worker 0 closed its pipe"] * 2
    assert all("error" not in info for _, info in moody.reset([REACH] * 4))


def test_an_environment_that_hangs_times_out_with_its_worker(moody):
    moody.reset([CARRY] * 4)
    answers = moody.step({slot: well_formed("hang" if slot == 1 else "look") for slot in range(4)})
    for slot in (1, 3):
        assert answers[slot][3] is True
        assert answers[slot][4]["error"].startswith("Timeout: worker 1 gave no answer within 1")
        check_info(answers[slot][4], CARRY)
    assert "error" not in answers[0][4]
    assert all("error" not in info for _, info in moody.reset([REACH] * 4))


def test_a_reset_that_hangs_is_data():
    pool = ProcessPool(toys.hangs_at_reset, 2, 2, timeout=1.0)
    (_, info), (_, other) = pool.reset([REACH, CARRY])
    assert info["error"].startswith("Timeout")
    check_info(info, REACH)
    assert "error" not in other
    assert "error" not in pool.reset([CARRY])[0][1]
    pool.close()


def test_a_worker_that_is_lost_again_and_again_fails_the_pool_by_name(moody):
    for command in ("die", "exit"):
        moody.reset([CARRY] * 2)
        moody.step({0: well_formed(command)})
    with pytest.raises(PoolFailed, match=r"lost 2 times in a row.*WorkerDied.*exit code 7"):
        moody.reset([CARRY] * 2)
    moody.close()
    moody.reset([CARRY] * 2)


def test_a_round_without_loss_starts_the_count_afresh(moody):
    for _ in range(2):
        moody.reset([CARRY])
        moody.step({0: well_formed("die")})
        moody.reset([CARRY])
        moody.step({0: well_formed("look")})
    moody.reset([CARRY])


def test_what_the_caller_did_wrong_is_raised_here():
    with pytest.raises(PoolFailed, match=r"cannot be: .*MakeEnv"):
        ProcessPool(lambda: None, 1, 1)
    with pytest.raises(PoolFailed, match="OddError: 3 and 4"):
        ProcessPool(toys.cannot_be_made, 1, 1).reset([CARRY])
    with pytest.raises(ValueError, match="no such setting here"):
        ProcessPool(toys.Untransportable(), 1, 1).reset([CARRY])


def test_a_process_that_ends_in_a_constructor_is_data_until_it_is_hopeless():
    pool = ProcessPool(toys.suicidal, 1, 1, max_restarts=0)
    assert "exit code 9" in pool.reset([CARRY])[0][1]["error"]
    with pytest.raises(PoolFailed, match="exit code 9"):
        pool.reset([CARRY])


def test_odd_exceptions_and_odd_infos_do_not_kill_a_worker(moody):
    moody.reset([CARRY] * 2)
    assert moody.step({0: well_formed("raise odd")})[0][4]["error"] == "OddError: 1 and 2"
    with pytest.raises((TypeError, AttributeError, PoolFailed)) as caught:
        moody.step({1: well_formed("info")})
    assert "cannot be sent" in str(caught.value.__notes__)


def test_no_process_outlives_its_pool(moody):
    before = pids()
    moody.reset([CARRY] * 4)
    assert len(pids()) == len(before) + 2
    moody.close()
    assert pids() == before
    with pytest.raises(SlotError):
        moody.step({0: "x"})
    moody.close()
    moody.reset([CARRY])
    assert len(pids()) == len(before) + 1


SCRIPT = """
import os, signal, sys
from milegpo_envs.pool import ProcessPool
from tests.milegpo_envs import pool_toys as toys

{body}
"""


def script(tmp_path, body):
    file = tmp_path / "script.py"
    file.write_text(SCRIPT.format(body=body))
    return [sys.executable, str(file)], {**os.environ, "PYTHONPATH": str(ROOT)}


def test_a_script_needs_no_main_guard_unless_it_defines_make_itself(tmp_path):
    body = (
        "print('once')\n"
        "pool = ProcessPool(toys.MAKE, 2, 1)\n"
        "print(len(pool.reset(['reach-attic'])))"
    )
    command, env = script(tmp_path, f"{body}\npool.close()")
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["once", "1"], done.stderr
    body = f"def make():\n    return toys.moody()\n{body}".replace("toys.MAKE", "make")
    command, env = script(tmp_path, body)
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "PoolFailed" in done.stderr.splitlines()[-1]
    assert "if __name__ == '__main__':" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_their_parent_even_while_they_hang(tmp_path, end):
    body = """
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored below a shell's background job
pool = ProcessPool(toys.moody, 2, 1)
pool.reset(["reach-attic"])
print(pool.step({0: "<think></think><action>look</action>"})[0][4]["pid"], flush=True)
pool.step({0: "<think></think><action>hang</action>"})
"""
    command, env = script(tmp_path, body)
    with subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as parent:
        worker = int(parent.stdout.readline())
        parent.send_signal(end)
    for _ in range(100):
        if not runs(worker):
            return
        time.sleep(0.1)
    os.kill(worker, signal.SIGKILL)
    pytest.fail("the worker outlived its parent")


def runs(pid):
    """Whether a process exists and is not merely waiting to be reaped."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


def test_an_interrupted_call_leaves_no_answer_behind(moody):
    moody.reset([CARRY] * 2)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    with pytest.raises(KeyboardInterrupt):
        moody.step({0: well_formed("hang")})
    assert "error" not in moody.step({1: well_formed("look")})[1][4]
    assert "error" in moody.step({0: well_formed("look")})[0][4]
    assert "error" not in moody.reset([CARRY])[0][1]
