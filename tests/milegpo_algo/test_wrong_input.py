"""Wrong input stops before any number is computed, and the error names the row or the field."""

import math

import pytest

from milegpo_algo import (
    RolloutError,
    Rollouts,
    SettingError,
    UnknownEstimator,
    UnknownSetting,
    advantages,
    estimator_names,
    make_estimator,
)
from tests.milegpo_algo.toy_rollouts import fork_records, path, rollouts


def changed(row, **values):
    records = fork_records()
    records[row] = {**records[row], **values}
    return records


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"reward": math.nan}, ["row 4", "'reward'", "nan"]),
        ({"reward": math.inf}, ["row 4", "'reward'", "inf"]),
        ({"reward": "ten"}, ["row 4", "'reward'", "'ten'"]),
        ({"reward": None}, ["row 4", "'reward'", "None"]),
        ({"state": 7}, ["row 4", "'state'", "7"]),
        ({"state": None}, ["row 4", "'state'", "None"]),
        ({"action": None}, ["row 4", "'action'", "None"]),
        ({"step": 1.5}, ["row 4", "'step'", "1.5"]),
        ({"step": "1"}, ["row 4", "'step'", "'1'"]),
        ({"step": -1}, ["row 4", "'step'", "-1"]),
        ({"step": 5}, ["row 4", "'step' is 5", "step 1", "missing"]),
        ({"valid": 1}, ["row 4", "'valid'"]),
        ({"valid": None}, ["row 4", "'valid'"]),
        ({"success": "yes"}, ["row 4", "'success'"]),
        ({"task_id": None}, ["row 4", "'task_id'"]),
        ({"trajectory_id": 1.0}, ["row 4", "'trajectory_id'"]),
    ],
)
def test_a_wrong_value_is_named(values, words):
    with pytest.raises(RolloutError) as raised:
        Rollouts.from_steps(changed(4, **values))
    for word in words:
        assert word in str(raised.value)


def test_a_missing_next_state_is_named_unless_a_success_ends_there():
    with pytest.raises(RolloutError, match="row 5: 'next_state' is None"):
        Rollouts.from_steps(changed(5, next_state=None))
    with pytest.raises(RolloutError, match="row 7: 'next_state' is None"):
        Rollouts.from_steps(changed(7, next_state=None))
    assert len(Rollouts.from_steps(changed(4, next_state=None))) == 8


def test_a_missing_column_is_named_with_what_was_given_instead():
    records = fork_records()
    records[3]["step_reward"] = records[3].pop("reward")
    with pytest.raises(RolloutError, match=r"row 3 has no 'reward' \(it has 'step_reward'\)"):
        Rollouts.from_steps(records)


def test_a_gap_and_a_repeated_step_are_named():
    records = fork_records()
    with pytest.raises(RolloutError, match=r"row 1: 'step' is 2, but step 1 .* missing"):
        Rollouts.from_steps([records[0], records[2]])
    with pytest.raises(RolloutError, match="row 0: 'step' is 1, but step 0"):
        Rollouts.from_steps([records[1]])
    with pytest.raises(RolloutError, match="rows 1 and 8 are both step 1"):
        Rollouts.from_steps([*records, records[1]])


def test_no_steps_at_all():
    with pytest.raises(RolloutError, match="no steps"):
        Rollouts.from_steps([])


def test_a_column_of_another_length_is_named():
    columns = {name: [record[name] for record in fork_records()] for name in fork_records()[0]}
    columns["valid"] = columns["valid"][:-1]
    with pytest.raises(RolloutError, match="'valid' has 7 values, 'task_id' has 8"):
        Rollouts.from_columns(**columns)


def test_a_success_without_its_last_step_is_named():
    with pytest.raises(RolloutError) as raised:
        Rollouts.from_steps(changed(6, success=True))
    for word in ("row 6", "task 'q'", "trajectory '3'", "'success'", "last step, row 7"):
        assert word in str(raised.value)
    with pytest.raises(RolloutError, match=r"row 0 .*'success' is False.*row 2"):
        Rollouts.from_steps(changed(0, success=False))


@pytest.mark.parametrize("name", ["graphgpo", "milegpo"])
def test_two_starts_of_one_task_stop_the_estimators_that_need_one(name):
    found = rollouts(path("q", "1", "SA", success=True), path("q", "2", "TA"))
    with pytest.raises(RolloutError) as raised:
        advantages(found, name)
    for word in ("'state'", "row 0", "row 2", "'S'", "'T'", "one_start=False"):
        assert word in str(raised.value)
    assert len(advantages(found, name, one_start=False)) == 3


def test_other_estimators_accept_two_starts():
    found = rollouts(path("q", "1", "SA", success=True), path("q", "2", "TA"))
    for name in set(estimator_names()) - {"graphgpo", "milegpo", "ppo"}:
        assert len(advantages(found, name)) == 3


def test_unknown_names_are_answered_with_the_valid_ones():
    with pytest.raises(UnknownEstimator, match="did you mean 'milegpo'") as raised:
        make_estimator("milegp")
    for name in estimator_names():
        assert name in str(raised.value)
    with pytest.raises(UnknownSetting, match="unknown gigpo setting 'step_weigth'; did you mean"):
        make_estimator("gigpo", step_weigth=1.0)
    with pytest.raises(UnknownSetting, match=r"'depth_weights'.*Valid: convention, penalty"):
        make_estimator("grpo", depth_weights="k")
    with pytest.raises(UnknownSetting, match=r"unknown convention 'verl'.*paper, verl-agent"):
        make_estimator("grpo", convention="verl")
    with pytest.raises(UnknownSetting, match=r"milegpo recipe 'sokoban'.*alfworld, webshop"):
        make_estimator("milegpo", recipe="sokoban")


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("grpo", {"norm": "std"}, "norm='std': choose one of mean_std, mean"),
        ("grpo", {"episode_score": "rows"}, "episode_score='rows': choose one of trajectory, row"),
        ("grpo", {"penalty": -1.0}, "penalty=-1.0: must be at least 0"),
        ("grpo", {"penalty": math.nan}, "penalty=nan: give a finite number"),
        ("gigpo", {"gamma": "0.9"}, "gamma='0.9': give a finite number"),
        ("hgpo", {"history_length": 1.5}, "history_length=1.5: give a finite integer"),
        ("hgpo", {"base_group": 1}, "base_group=1: give True or False"),
        ("milegpo", {"omega": 1.0}, "omega=1.0: must be above 0 and below 1"),
        ("milegpo", {"stage": "all"}, "stage='all': choose one of md, rcs, pcc"),
    ],
)
def test_a_value_that_a_setting_cannot_take_is_named(name, settings, words):
    with pytest.raises(SettingError, match=words):
        make_estimator(name, **settings)


def test_values_of_a_critic_are_checked():
    found = rollouts(fork_records())
    with pytest.raises(SettingError, match="ppo needs 'values'"):
        advantages(found, "ppo")
    with pytest.raises(UnknownSetting, match="grpo takes no 'values'"):
        advantages(found, "grpo", values=[])
    with pytest.raises(SettingError, match="1 arrays for 8 rows"):
        advantages(found, "ppo", values=[[0.0]])
    with pytest.raises(SettingError, match="row 5 needs one value"):
        advantages(found, "ppo", values=[[0.0]] * 5 + [[]] + [[0.0]] * 2)
    with pytest.raises(SettingError, match="row 5 holds a value that is not finite"):
        advantages(found, "ppo", values=[[0.0]] * 5 + [[math.nan]] + [[0.0]] * 2)


def test_what_estimators_are_handed_is_checked_too():
    found = rollouts(fork_records())
    with pytest.raises(SettingError, match="embeddings: none for state 'D'"):
        advantages(found, "progpo", embeddings={"S": [1.0], "A": [1.0], "B": [1.0]})
    with pytest.raises(SettingError, match="embedder: gave shape"):
        advantages(found, "graphgpo", embedder=lambda states: [[1.0]])
    with pytest.raises(SettingError, match=r"action_cost: 0\.0 for 'to A'"):
        advantages(found, "graphgpo", action_cost={"to A": 0.0})


def test_records_in_place_of_rollouts_are_told_the_way():
    with pytest.raises(TypeError, match=r"not list: give Rollouts\.from_steps\(records\)"):
        advantages(fork_records(), "gigpo")
