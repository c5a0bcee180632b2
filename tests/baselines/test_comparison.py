import numpy as np
import pytest

from baselines.comparison import MixedRows, check_rows, interval, lines, markdown


def row(estimator, seed, wins, **changes):
    """Two games, two evaluation seeds; wins[seed][game]."""
    episodes = [
        {"task_id": f"g{game}", "seed": s, "success": bool(won)}
        for s, games in zip((1, 2), wins, strict=True)
        for game, won in enumerate(games)
    ]
    success = float(np.mean(wins))
    return {
        "estimator": estimator,
        "seed": seed,
        "success": success,
        "success_by": {"pick": success},
        "steps": 9.0,
        "rows_trained": 100,
        "episodes": episodes,
        "eval_seeds": [1, 2],
        "panel": {"name": "p", "hash": "h", "size": 2},
        "model_hash": "m",
        "recipe_hash": "r",
        "convention": "paper",
        "versions": {"torch": "2"},
        "env_id": "e",
        "checkpoint_rule": "last",
        **changes,
    }


WARM = row(None, None, [[0, 0], [1, 0]])
GOOD = [row("gigpo", s, [[1, 1], [1, 1]]) for s in (1, 2, 3)]
MIXED = [row("grpo", 1, [[0, 0], [0, 0]]), row("grpo", 2, [[1, 1], [1, 0]])]


def test_the_mean_is_over_seeds_games_and_evaluation_seeds():
    warm, gigpo, grpo = lines([*GOOD, *MIXED, WARM])
    assert (warm.name, warm.success) == ("warm start", 0.25)  # 1 of 4 episodes
    assert (gigpo.runs, gigpo.success) == (3, 1.0)
    assert grpo.success == 0.375  # (0 + 3/4) / 2


def test_constant_scores_have_an_interval_of_no_width_and_one_run_has_none():
    assert interval(np.ones((3, 2))) == (1.0, 1.0)
    assert interval(np.ones((1, 2))) is None


def test_the_interval_resamples_runs_within_each_game():
    # Two runs, one game, scores 0 and 1: the mean is 0, 1/2 or 1 with chances 1/4, 1/2, 1/4.
    assert interval(np.array([[0.0], [1.0]])) == (0.0, 1.0)


def test_the_table_says_whether_an_interval_includes_the_warm_start():
    rows = [WARM, *GOOD, *MIXED]
    text = markdown(lines(rows), rows, planned=5)
    assert "| gigpo | 3 | 100.0 | 100.0 to 100.0 | 100.0 | 9.0 | 100 | yes |" in text
    assert "no: interval includes it" in next(x for x in text.splitlines() if "grpo" in x)
    assert "Partial" not in text
    assert "Partial: 5 of 12 cells." in markdown(lines(rows), rows, planned=12)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("panel", {"name": "p", "hash": "other", "size": 2}),
        ("model_hash", "x"),
        ("recipe_hash", "x"),
        ("convention", "verl-agent"),
        ("versions", {"torch": "3"}),
    ],
)
def test_rows_that_do_not_match_are_refused_by_name(field, value):
    with pytest.raises(MixedRows, match=field):
        check_rows([WARM, row("grpo", 1, [[0, 0], [0, 0]], **{field: value})])
