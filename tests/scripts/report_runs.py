"""Small run folders on disk: a finished run, its rollouts, a comparison around them."""

import json
from itertools import pairwise

from tests.baselines.toy_rows import logged

HOSTILE = (
    "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>\u2028$x$"
)


def step(state, after, action, reward=0.0, **changes):
    return {
        "prompt": f"you are in {state}",
        "reply": f"<think>so</think><action>{action}</action>",
        "action": action,
        "state_id": state,
        "next_state_id": after,
        "reward": reward,
        "format_valid": True,
        "format_problem": None,
        "action_valid": True,
        "invalid_reason": None,
        **changes,
    }


def episode(task, trajectory, states, success, **changes):
    """An episode that walks through states; the last one of a success is its end."""
    pairs = list(pairwise(states))
    steps = [
        step(a, b, f"go {b}", 10.0 if success and t == len(pairs) - 1 else 0.0, **changes)
        for t, (a, b) in enumerate(pairs)
    ]
    return {
        "iteration": 2,
        "task_id": task,
        "trajectory_id": trajectory,
        "success": success,
        "score": float(success),
        "stop": "success" if success else "horizon",
        "extras": {},
        "steps": steps,
    }


def fork(task="fork"):
    """S to A and on to success twice; S to B, whence one succeeds and one turns in circles in X."""
    return [
        episode(task, 0, ["S", "A", "end"], True),
        episode(task, 1, ["S", "A", "end"], True),
        episode(task, 2, ["S", "B", "end"], True),
        episode(task, 3, ["S", "B", "X", "X", "X"], False),
        episode(task, 4, ["S", "B", "X", "X"], False),
    ]


def grid(columns, rows, task="grid"):
    """Walks that visit every state of a grid, half of them to success, and some that cross them."""
    walks = []
    for row in range(rows + rows // 4):
        stride = 5 if row < rows else 7
        path = ["S", *(f"c{c}r{(row + stride * (c % 4)) % rows}" for c in range(columns))]
        success = row % 2 == 0
        walks.append(episode(task, row, [*path, "end"] if success else path, success))
    return walks


def write_lines(path, values):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")


def write_run(folder, estimator="milegpo", seed=1, episodes=(), **changes):
    """A finished run folder."""
    write_lines(
        folder / "metrics.jsonl",
        [{"iteration": i, "success": 0.1 * i, "loss": -0.5 * i, "kl": None} for i in range(1, 4)],
    )
    write_lines(folder / "evaluations.jsonl", [{"iteration": 0, "success": 0.25}])
    row = logged(estimator, seed, [[1, 0], [1, 1]], **changes)
    (folder / "result.json").write_text(json.dumps(row), encoding="utf-8")
    if episodes:
        write_lines(folder / "iteration-000002.jsonl", episodes)
    return folder


def write_comparison(folder):
    """A comparison of two cells with rollouts, and its tables."""
    write_run(folder / "cells" / "gigpo-seed1", "gigpo", 1, fork())
    write_run(folder / "cells" / "milegpo-seed1", "milegpo", 1, fork())
    (folder / "table.md").write_text(
        "| estimator | success % |\n| --- | ---: |\n| gigpo | 75.0 |\n| milegpo | 75.0 |\n\n"
        "- Panel toy, each game once.\n"
    )
    return folder
