"""Hand-made result rows: two games, two evaluation seeds."""

from statistics import fmean

from baselines.comparison import Row


def logged(estimator, seed, wins, **changes):
    """wins[evaluation seed][game]; game 0 is of type pick, game 1 of type look."""
    episodes = [
        {
            "task_id": f"g{game}",
            "task_type": ("pick", "look")[game],
            "seed": evaluation_seed,
            "success": bool(won),
            "score": float(won),
            "steps": 4 + game,
            "stop": "success" if won else "horizon",
            "format_valid": 1.0,
            "action_valid": 1.0,
        }
        for evaluation_seed, games in zip((123, 456), wins, strict=True)
        for game, won in enumerate(games)
    ]
    success = fmean(episode["success"] for episode in episodes)
    return {
        "estimator": estimator,
        "seed": seed,
        "env_id": "toy/Env-v0",
        "env_settings": {"size": "small"},
        "panel": {"name": "toy/held_out", "hash": "abcd", "size": 2},
        "eval_seeds": [123, 456],
        "model": "warm",
        "model_hash": "f00d",
        "recipe_hash": "beef",
        "convention": "paper",
        "checkpoint_rule": "last",
        "versions": {"python": "3.11", "torch": "2.13"},
        "iterations": 0 if estimator is None else 10,
        "rows_trained": 0 if estimator is None else 1000 + 100 * seed,
        "success": success,
        "score": success,
        "success_by": {
            "pick": fmean(games[0] for games in wins),
            "look": fmean(games[1] for games in wins),
        },
        "episodes": episodes,
        "seconds": 12.5,
        **changes,
    }


def row(estimator, seed, wins, **changes):
    return Row.of(logged(estimator, seed, wins, **changes))
