"""Rollouts: columns, orders, Parquet."""

import sys

import numpy as np
import pytest

from milegpo_algo import GOAL, RolloutError, Rollouts, advantages
from tests.milegpo_algo.toy_rollouts import fork_records, path, random_records, rollouts


def test_columns_stand_in_the_order_given():
    records = random_records(0)
    found = Rollouts.from_steps(records)
    for row, record in enumerate(records):
        assert found.tasks[found.task[row]] == record["task_id"]
        assert found.trajectory_ids[found.trajectory[row]] == record["trajectory_id"]
        assert found.states[found.state[row]] == record["state"]
        assert found.actions[found.action[row]] == record["action"]
        assert found.step[row] == record["step"]
        assert found.valid[row] == record["valid"]
        assert found.success[row] == record["success"]
        assert found.reward[row] == record["reward"]


def test_the_goal_follows_the_last_step_of_a_success_and_nothing_else():
    found = rollouts(fork_records())
    assert np.flatnonzero(found.next_state == GOAL).tolist() == [2, 4]
    assert "end" not in found.states


def test_equal_state_names_of_two_tasks_are_two_states():
    found = rollouts(path("p", "1", "SA"), path("q", "1", "SA"))
    assert found.states == ("S", "A", "S", "A")
    assert found.state_task.tolist() == [0, 0, 1, 1]
    assert found.state.tolist() == [0, 2]


def test_equal_trajectory_ids_of_two_tasks_are_two_trajectories():
    found = rollouts(path("p", "1", "SA", success=True), path("q", "1", "SA"))
    assert found.trajectory_ids == ("1", "1")
    assert found.trajectory_return.tolist() == [10.0, 0.0]


def test_numbered_tasks_and_trajectories_are_read_as_names():
    records = [{**r, "task_id": 3, "trajectory_id": np.int64(1)} for r in path("", "", "SAB")]
    found = Rollouts.from_steps(records)
    assert (found.tasks, found.trajectory_ids) == (("3",), ("1",))


def test_returns_sum_the_raw_rewards():
    found = rollouts(path("q", "1", "SAB", rewards=[1.0, 2.0], malformed=[0]))
    assert found.env_return.tolist() == [3.0, 3.0]


def test_columns_cannot_be_written_to():
    with pytest.raises(ValueError, match="read-only"):
        rollouts(fork_records()).reward[0] = 1.0


def test_blocks_are_whole_tasks_and_cover_every_row():
    found = Rollouts.from_steps(random_records(5, tasks=8))
    seen = []
    for rows, block in found.blocks(6):
        seen += rows.tolist()
        assert [block.tasks[i] for i in block.task] == [found.tasks[i] for i in found.task[rows]]
        names = [block.states[i] for i in block.state]
        assert names == [found.states[i] for i in found.state[rows]]
        np.testing.assert_array_equal(block.success, found.success[rows])
        np.testing.assert_array_equal(block.next_state == GOAL, found.next_state[rows] == GOAL)
    assert sorted(seen) == list(range(len(found)))


def test_parquet_gives_back_the_same_rollouts(tmp_path):
    pytest.importorskip("pyarrow")
    found = Rollouts.from_steps(random_records(1))
    found.to_parquet(tmp_path / "steps.parquet")
    again = Rollouts.from_parquet(tmp_path / "steps.parquet")
    for name, column in vars(again).items():
        np.testing.assert_array_equal(column, getattr(found, name), err_msg=name)
    np.testing.assert_array_equal(advantages(again, "milegpo"), advantages(found, "milegpo"))


def test_parquet_written_by_others_is_read_if_it_has_the_columns(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {name: [record[name] for record in fork_records()] for name in fork_records()[0]}
    columns["text"] = ["more"] * 8
    parquet.write_table(arrow.table(columns), tmp_path / "other.parquet")
    assert len(Rollouts.from_parquet(tmp_path / "other.parquet")) == 8
    del columns["next_state"]
    parquet.write_table(arrow.table(columns), tmp_path / "short.parquet")
    with pytest.raises(RolloutError, match="no column 'next_state'"):
        Rollouts.from_parquet(tmp_path / "short.parquet")


@pytest.mark.parametrize("size", [0, 4, 1000])
def test_what_is_no_parquet_file_is_named(tmp_path, size):
    pytest.importorskip("pyarrow")
    file = tmp_path / "junk.parquet"
    file.write_bytes(b"j" * size)
    with pytest.raises(RolloutError, match=r"junk\.parquet is not a Parquet file"):
        Rollouts.from_parquet(file)


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ("steps.jsonl", "a str, where a list of steps is wanted"),
        (fork_records()[0], "a dict, where"),
        (None, "a NoneType, where"),
        ([*fork_records(), [1]], "row 8 is a list"),
        ([*fork_records(), None], "row 8 is a NoneType"),
        (["steps"], "row 0 is a str"),
    ],
)
def test_what_are_no_steps_is_said(records, said):
    with pytest.raises(RolloutError, match=f"{said}.* a step needs task_id, "):
        Rollouts.from_steps(records)


def test_without_pyarrow_the_error_names_the_command(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ModuleNotFoundError, match="pip install"):
        rollouts(fork_records()).to_parquet(tmp_path / "steps.parquet")
