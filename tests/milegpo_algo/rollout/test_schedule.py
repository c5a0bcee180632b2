from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from milegpo_algo.rollout.collect import assign
from milegpo_algo.rollout.schedule import TaskSchedule


def tasks_of(schedule: TaskSchedule, iterations: int) -> list[str]:
    return [task for i in range(iterations) for task in schedule.tasks(i)]


@given(count=st.integers(1, 20), per_iteration=st.integers(1, 20), seed=st.integers(0, 2**32 - 1))
def test_every_epoch_plays_every_task_once_and_no_iteration_is_short(count, per_iteration, seed):
    schedule = TaskSchedule([f"q{i}" for i in range(count)], per_iteration, seed)
    played = tasks_of(schedule, count)  # as many tasks as `per_iteration` whole epochs
    assert all(len(schedule.tasks(i)) == per_iteration for i in range(3))
    for start in range(0, len(played), count):
        assert Counter(played[start : start + count]) == Counter(schedule.task_ids)


def test_an_iteration_s_tasks_need_no_history():
    schedule = TaskSchedule(list("abcdefg"), 3, seed=5)
    assert TaskSchedule(list("abcdefg"), 3, seed=5).tasks(40) == schedule.tasks(40)
    assert tasks_of(schedule, 50)[120:123] == schedule.tasks(40)


def test_a_seed_names_the_order():
    orders = {tuple(tasks_of(TaskSchedule(list("abcdefg"), 7, seed), 1)) for seed in range(5)}
    assert len(orders) == 5


def test_epochs_differ_when_shuffled_and_repeat_when_not():
    assert tasks_of(TaskSchedule(list("abcdefg"), 7, 0), 2)[:7] != list("abcdefg")
    assert tasks_of(TaskSchedule(list("abc"), 2, 0, shuffle=False), 3) == list("abcabc")


def test_an_epoch_ends_when_every_task_was_played():
    assert TaskSchedule(list("abcdefg"), 3, 0).iterations_per_epoch == 3
    assert TaskSchedule(list("ab"), 16, 0).iterations_per_epoch == 1


def test_no_tasks_are_refused():
    with pytest.raises(ValueError, match="at least one task id"):
        TaskSchedule([], 3, 0)


def test_iterations_of_any_length_continue_across_epochs_from_a_number_alone():
    schedule = TaskSchedule(list("abcdefg"), 3, seed=2)
    position, taken = 0, []
    for count in (3, 6, 0, 1, 9, 2):
        taken += TaskSchedule(list("abcdefg"), 3, seed=2).take(position, count)
        position += count
    assert taken == tasks_of(schedule, 7)
    assert Counter(taken) == Counter(list("abcdefg") * 3)


def test_fewer_tasks_than_an_iteration_needs_are_played_in_larger_groups():
    schedule = TaskSchedule(["q", "r"], 5, seed=0)
    pairs = assign(schedule.tasks(0), 2)
    assert len(set(pairs)) == len(pairs) == 10
    assert {task for task, _ in pairs} == {"q", "r"}
