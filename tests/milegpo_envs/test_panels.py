from collections import Counter

import gymnasium as gym
import pytest
from hypothesis import given
from hypothesis import strategies as st

from milegpo_envs.panels import Panel, panel_of
from tests.toys import HOUSE_ID, TASKS


class Listing(gym.Env):
    """Has tasks and nothing else."""

    def __init__(self, ids):
        self.ids = ids

    def task_ids(self):
        return self.ids


def kind(task_id):
    return task_id.partition("-")[0]


IDS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 99)).map(lambda t: f"{t[0]}-{t[1]}"),
    min_size=1,
    unique=True,
)


@given(IDS, st.randoms(), st.data())
def test_panels_are_nested_balanced_and_blind_to_listing_order(ids, random, data):
    size = data.draw(st.integers(1, len(ids)))
    panel = panel_of(Listing(ids), "p", size, by=kind)
    assert len(panel.task_ids) == size
    assert set(panel.task_ids) <= set(ids)
    shuffled = random.sample(ids, len(ids))
    larger = panel_of(Listing(shuffled), "q", by=kind)
    assert larger.task_ids[:size] == panel.task_ids
    assert sorted(larger.task_ids) == sorted(ids)
    there = Counter(map(kind, ids))
    chosen = Counter(map(kind, panel.task_ids))
    most = max(chosen.values())
    assert all(chosen[k] >= min(there[k], most - 1) for k in there)


def test_without_kinds_the_slice_is_plain_and_nested():
    env = gym.make(HOUSE_ID)
    assert panel_of(env, "p", 5).task_ids == panel_of(env, "p", 9).task_ids[:5]
    assert sorted(panel_of(env, "p").task_ids) == sorted(TASKS)


def test_a_panel_does_not_change_between_versions_of_this_package():
    # Frozen: a change here changes which results can be compared. The hash is that of
    # printf '["carry-lamp-to-hall","reach-kitchen",...]' | b2sum -l 64
    panel = panel_of(gym.make(HOUSE_ID), "p", 4, by=kind)
    assert panel.task_ids == (
        "carry-lamp-to-hall",
        "reach-kitchen",
        "carry-apple-to-study",
        "reach-study",
    )
    assert panel.hash == "4d641e68b0b18d16"


def test_the_hash_is_of_the_ids_in_order_and_not_of_the_name():
    panel = Panel("p", ("a", "b"))
    assert panel.hash == Panel("q", ("a", "b")).hash
    assert panel.hash != Panel("p", ("b", "a")).hash
    assert panel.hash != Panel("p", ("a b",)).hash
    assert panel.hash != Panel("p", ('a","b',)).hash
    assert panel.hash != Panel("p", ("ab",)).hash


def test_a_panel_has_tasks_each_once():
    with pytest.raises(ValueError, match="no tasks"):
        Panel("p", ())
    with pytest.raises(ValueError, match="twice"):
        Panel("p", ("a", "b", "a"))


@pytest.mark.parametrize("size", [0, -1, 16])
def test_a_size_that_does_not_exist_is_refused(size):
    with pytest.raises(ValueError, match="the split has 15"):
        panel_of(gym.make(HOUSE_ID), "p", size)


def test_an_environment_without_tasks_is_refused_with_a_remedy():
    with pytest.raises(TypeError, match="task_ids"):
        panel_of(gym.Env(), "p")
