import json
import math
from dataclasses import replace

import pytest

from milegpo_algo.rollout.collect import Episode, StepRecord
from milegpo_algo.rollout.metrics import (
    MetricsFile,
    Stopwatch,
    TimedCodec,
    TimedGenerator,
    TimedPool,
    episode_metrics,
    success_by,
    tie_rate,
)
from tests.milegpo_algo.rollout.fakes import ByteCodec, CountingPool, Parrot, user


def episode(task: str, number: int, rewards: list[float], stop: str, **extras) -> Episode:
    steps = tuple(
        StepRecord((1, 2), (3,), None, "", "a", "s", "t", r, r >= 0, True, None, "length")
        for r in rewards
    )
    return Episode(task, number, steps, stop == "success", float(stop == "success"), stop, extras)


EPISODES = [
    episode("q", 0, [0.0, 10.0], "success", task_type="easy"),
    episode("q", 1, [0.0, 0.0, -1.0], "horizon", task_type="easy"),
    episode("r", 0, [0.0], "error", task_type="hard"),
    episode("r", 1, [], "context"),
]


def test_rates_of_episodes_count_those_without_steps():
    metrics = episode_metrics(EPISODES)
    assert metrics["success"] == 1 / 4
    assert metrics["episode_length"] == (2 + 3 + 1 + 0) / 4
    assert metrics["return"] == (10 - 1) / 4
    assert metrics["stop/failure"] == 0
    assert all(metrics[f"stop/{s}"] == 1 / 4 for s in ("success", "horizon", "error", "context"))
    assert metrics["rows"] == 6
    assert metrics["format_valid"] == 5 / 6
    assert (metrics["prompt_tokens"], metrics["completion_tokens"]) == (2, 1)


def test_a_group_of_equal_returns_is_degenerate():
    assert episode_metrics(EPISODES)["degenerate_groups"] == 1 / 2  # r: 0 and 0


def test_without_steps_there_are_no_rates_of_steps():
    metrics = episode_metrics([episode("q", 0, [], "context")])
    assert metrics["rows"] == 0
    assert "format_valid" not in metrics


def test_success_by_type_leaves_out_episodes_that_have_none():
    assert success_by(EPISODES, "task_type") == {"easy": 1 / 2, "hard": 0.0}


def test_a_stopwatch_adds_up_phases():
    watch = Stopwatch()
    for _ in range(2):
        with watch.phase("a"):
            pass
    with pytest.raises(RuntimeError), watch.phase("b"):
        raise RuntimeError
    assert set(watch.seconds) == {"a", "b"}
    assert all(seconds > 0 for seconds in watch.seconds.values())


def test_timed_parts_answer_as_those_they_hold():
    watch = Stopwatch()
    pool, codec = TimedPool(CountingPool(3), watch), TimedCodec(ByteCodec(), watch)
    assert len(pool) == 3
    assert pool.reset(["wins@1"]) == CountingPool(3).reset(["wins@1"])
    assert pool.step({0: "go"})[0][2] is True
    assert codec.decode(codec.encode(user("hi"))) == "hi"
    assert TimedGenerator(Parrot(), watch).generate([[1]], [0]) == Parrot().generate([[1]], [0])
    assert set(watch.seconds) == {"environment", "tokenising", "generation"}


def lines(path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_metrics_file_has_one_line_an_iteration(tmp_path):
    path = tmp_path / "folder" / "metrics.jsonl"
    file = MetricsFile(path)
    for i in (1, 2, 3):
        file.write(i, {"loss": i / 2})
    assert lines(path) == [{"iteration": i, "loss": i / 2} for i in (1, 2, 3)]


def test_a_resumed_run_replaces_the_lines_it_repeats(tmp_path):
    path = tmp_path / "metrics.jsonl"
    killed = MetricsFile(path)
    for i in (1, 2, 3, 4):
        killed.write(i, {"run": "killed"})
    with path.open("a") as file:
        file.write('{"iteration": 5, "ru')  # broken off in the middle of a line
    resumed = MetricsFile(path)
    for i in (3, 4, 5):
        resumed.write(i, {"run": "resumed"})
    assert [(line["iteration"], line["run"]) for line in lines(path)] == [
        (1, "killed"),
        (2, "killed"),
        (3, "resumed"),
        (4, "resumed"),
        (5, "resumed"),
    ]


def test_an_iteration_written_twice_stands_once(tmp_path):
    file = MetricsFile(tmp_path / "metrics.jsonl")
    file.write(0, {"a": 1})
    file.write(0, {"a": 2})
    assert lines(file.path) == [{"iteration": 0, "a": 2}]


def test_what_is_not_finite_becomes_null(tmp_path):
    file = MetricsFile(tmp_path / "metrics.jsonl")
    file.write(1, {"a": math.nan, "b": math.inf, "c": 1.0})
    assert lines(file.path) == [{"iteration": 1, "a": None, "b": None, "c": 1.0}]


def test_faults_are_counted_by_reason():
    good, bad = EPISODES[0].steps[0], EPISODES[0].steps[1]
    faulty = [
        replace(bad, format_problem="no action", invalid_reason=None),
        replace(bad, format_problem=None, invalid_reason="unknown"),
        replace(bad, format_problem="no action", invalid_reason="unknown"),
    ]
    clean = replace(good, format_problem=None, invalid_reason=None)
    metrics = episode_metrics([replace(EPISODES[0], steps=(clean, *faulty))])
    shares = {k: v for k, v in metrics.items() if k.startswith(("format/", "invalid/"))}
    assert shares == {"format/no action": 2 / 4, "invalid/unknown": 2 / 4}


def test_success_is_told_by_type():
    metrics = episode_metrics(EPISODES)
    assert (metrics["success/easy"], metrics["success/hard"]) == (1 / 2, 0.0)


def test_ties_are_pairs_of_different_actions_out_of_one_state_with_equal_advantages():
    step = EPISODES[0].steps[0]
    at = [replace(step, state_id="s", action=action) for action in "aabc"]
    elsewhere = replace(step, state_id="t", action="b")
    episodes = [
        replace(EPISODES[0], steps=(*at, elsewhere)),
        replace(EPISODES[2], steps=tuple(at[:1])),
    ]
    # Pairs of different actions at s: a-b, a-b, a-c, a-c, b-c. Of those, both a-b tie.
    assert tie_rate(episodes, [1.0, 1.0, 1.0 + 1e-8, 2.0, 1.0, 1.0]) == 2 / 5
    assert tie_rate(episodes, [1.0, 0.5, 1.0, 2.0, 1.0, 1.0]) == 1 / 5
    assert tie_rate(episodes[1:], [1.0]) is None
