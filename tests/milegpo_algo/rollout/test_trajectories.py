import json
import math
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from milegpo_algo.rollout.collect import assign, play
from milegpo_algo.rollout.trajectories import TrajectoryFolder
from tests.milegpo_algo.rollout.fakes import ByteCodec, CountingPool, Parrot

CODEC = ByteCodec()
EPISODES = play(
    CountingPool(4),
    Parrot(),
    CODEC,
    assign(["wins@2", "never@0", "runs@3"], 1),
    max_prompt_tokens=99,
    seed=0,
)


def lines(path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_line_is_an_episode_with_its_steps_in_words(tmp_path):
    path = TrajectoryFolder(tmp_path / "new", CODEC.decode).write(7, EPISODES)
    assert path.name == "iteration-000007.jsonl"
    won, broken, _ = lines(path)
    assert [step["prompt"] for step in won["steps"]] == ["wins@2", "wins@2 1"]
    assert (won["iteration"], won["stop"], won["steps"][1]["reward"]) == (7, "success", 10.0)
    assert won["steps"][0]["logprob"] == -1.5
    assert (broken["steps"], broken["extras"]["error"]) == ([], "OSError: no")
    assert "advantage" not in won["steps"][0]


def test_each_step_has_its_own_advantage(tmp_path):
    path = TrajectoryFolder(tmp_path, CODEC.decode).write(0, EPISODES, [1, 2, 3, 4, 5])
    given = [[step["advantage"] for step in line["steps"]] for line in lines(path)]
    assert given == [[1, 2], [], [3, 4, 5]]


def test_each_step_has_its_own_value_where_a_critic_gave_one(tmp_path):
    values = [0.5, None, -1.5, math.inf, 2.0]
    folder = TrajectoryFolder(tmp_path, CODEC.decode)
    path = folder.write(0, EPISODES, [1, 2, 3, 4, 5], values)
    given = [[step["value"] for step in line["steps"]] for line in lines(path)]
    assert given == [[0.5, None], [], [-1.5, None, 2.0]]
    with pytest.raises(ValueError, match="4 of value for 5 steps"):
        folder.write(0, EPISODES, [1, 2, 3, 4, 5], values[1:])


def test_ids_are_written_exactly_and_what_is_unknown_as_null(tmp_path):
    first = replace(EPISODES[0].steps[0], logprobs=(-0.5, float("nan"), -0.25))
    episode = replace(EPISODES[0], steps=(first,))
    path = TrajectoryFolder(tmp_path, CODEC.decode, with_ids=True).write(0, [episode])
    [line] = lines(path)
    [step] = line["steps"]
    assert step["completion_ids"] == list(first.completion_ids)
    assert (step["logprobs"], step["logprob"]) == ([-0.5, None, -0.25], -0.75)


def test_an_iteration_written_again_replaces_itself(tmp_path):
    folder = TrajectoryFolder(tmp_path, CODEC.decode)
    folder.write(1, EPISODES)
    folder.write(1, EPISODES[:1])
    assert [file.name for file in tmp_path.iterdir()] == ["iteration-000001.jsonl"]
    assert len(lines(folder.write(1, EPISODES[:1]))) == 1


def test_images_are_written_once_each_and_read_back(tmp_path):
    one, two = (np.random.default_rng(i).integers(0, 256, (9, 7, 3), np.uint8) for i in range(2))
    first, second = EPISODES[0].steps
    steps = (replace(first, images=(one, two)), replace(second, images=(one,)))
    path = TrajectoryFolder(tmp_path, CODEC.decode).write(0, [replace(EPISODES[0], steps=steps)])
    [line] = lines(path)
    names = [step["images"] for step in line["steps"]]
    assert names[1] == names[0][:1]
    assert len(list((tmp_path / "images").iterdir())) == 2
    for name, image in zip(names[0], (one, two), strict=True):
        np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / name)), image)
