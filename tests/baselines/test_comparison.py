import json
import warnings

import numpy as np
import pytest
from scipy import stats

from baselines.comparison import MixedRows, Row, check_rows, lines, position, read_row
from baselines.estimates import interval
from tests.baselines.toy_rows import logged, row

WARM = row(None, None, [[0, 0], [1, 0]])
GOOD = [row("gigpo", seed, [[1, 1], [1, 1]]) for seed in (1, 2, 3)]
MIXED = [row("grpo", 1, [[0, 0], [0, 0]]), row("grpo", 2, [[1, 1], [1, 0]])]


def test_the_mean_is_over_seeds_games_and_evaluation_seeds():
    warm, gigpo, grpo = lines([*GOOD, *MIXED, WARM])
    assert (warm.name, warm.seeds, warm.success) == ("warm start", (), 0.25)  # 1 of 4 episodes
    assert (gigpo.name, gigpo.seeds, gigpo.success) == ("gigpo", (1, 2, 3), 1.0)
    assert (grpo.success, grpo.success_by) == (0.375, {"look": 0.25, "pick": 0.5})  # 3 of 8
    assert (grpo.steps, grpo.rows_trained) == (4.5, 1150)


def test_an_interval_above_the_warm_start_a_wide_one_and_a_single_seed_are_told_apart():
    found = {line.name: line.above_warm_start for line in lines([WARM, *GOOD, *MIXED])}
    assert found == {"warm start": "n/a", "gigpo": "yes", "grpo": "no"}
    assert lines([WARM, GOOD[0]])[1].above_warm_start == "n/a"
    assert lines(GOOD)[0].above_warm_start == "n/a"  # nothing to compare with
    assert position((0.1, 0.2), 0.2) == position((0.2, 0.3), 0.2) == "no"  # ends are included
    assert position((0.1, 0.2), 0.3) == "below"


def test_the_runs_of_the_warm_start_are_its_evaluation_seeds():
    # Game 0: 0 and 1; game 1: 0 and 0. The mean of a resample is 0, 1/4 or 1/2.
    assert lines([WARM])[0].interval == (0.0, 0.5)


def test_equal_scores_have_an_interval_of_no_width_and_one_run_has_none():
    assert interval(np.ones((3, 2))) == (1.0, 1.0)
    assert interval(np.ones((1, 2))) is None


def test_the_interval_is_the_same_every_time_and_leaves_the_global_generator_alone():
    scores = np.random.default_rng(1).random((3, 40))
    before = np.random.get_state()[1].copy()
    assert interval(scores) == interval(scores)
    np.testing.assert_array_equal(before, np.random.get_state()[1])


def test_the_interval_agrees_with_scipys_bootstrap_of_independent_samples():
    scores = np.random.default_rng(2).random((3, 40))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = stats.bootstrap(
            tuple(scores.T),  # one sample a game
            lambda *games, axis: np.mean([g.mean(axis=axis) for g in games], axis=0),
            n_resamples=5000,
            method="percentile",
        ).confidence_interval
    np.testing.assert_allclose(interval(scores), theirs, atol=8e-3)  # half a width is 0.05


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("panel", {"name": "toy/held_out", "hash": "other", "size": 2}),
        ("model_hash", "other"),
        ("recipe_hash", "other"),
        ("convention", "verl-agent"),
        ("versions", {"python": "3.11", "torch": "2.14"}),
        ("env_settings", {"size": "full"}),
    ],
)
def test_rows_that_do_not_match_are_refused_by_field_and_name(field, value):
    other = row("grpo", 1, [[0, 0], [0, 0]], **{field: value})
    with pytest.raises(MixedRows, match=rf"grpo-seed1 and warm start differ in {field}"):
        check_rows([WARM, other])
    with pytest.raises(ValueError, match=field):
        lines([WARM, other])


def test_a_row_with_an_episode_missing_is_refused():
    short = logged("grpo", 1, [[0, 0], [0, 0]])
    short["episodes"] = short["episodes"][1:]
    with pytest.raises(ValueError, match="played 3 different of 4"):
        Row.of(short)


def test_a_file_that_is_no_result_row_is_refused_by_name(tmp_path):
    path = tmp_path / "result.json"
    path.write_text("{broken")
    with pytest.raises(ValueError, match=r"result\.json cannot be used"):
        read_row(path)
    path.write_text(json.dumps({"estimator": "grpo"}))
    with pytest.raises(ValueError, match="no checkpoint_rule"):
        read_row(path)


def test_a_trained_policy_with_another_agent_s_prompts_is_a_line_of_its_own():
    win = [[0, 1], [0, 1]]
    plain = Row.of(logged("grpo", 1, win))
    direct = Row.of(logged("grpo", 2, win, agent={"kind": "direct", "examples": 1}))
    react = Row.of(logged("grpo", 1, win, agent={"kind": "react", "examples": 1}))
    assert [row.name for row in (plain, direct, react)] == [
        *("grpo-seed1", "grpo-seed2", "grpo react-seed1"),
    ]
    assert [line.name for line in lines([plain, direct, react])] == ["grpo", "grpo react"]
    other = Row.of(logged("grpo", 2, win, agent={"kind": "react", "examples": 2}))
    with pytest.raises(MixedRows, match="differ in prompting"):
        lines([react, other])
