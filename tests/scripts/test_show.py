import json

import pytest

from milegpo_algo.rollout.episode import Episode, StepRecord
from milegpo_algo.rollout.trajectories import TrajectoryFolder
from scripts.show import main


def step(state, after, **changes):
    fields = {
        "prompt_ids": (1,),
        "completion_ids": (2, 3),
        "logprobs": (-0.5, -0.5),
        "reply": "<think>[bold]x[/bold]</think>",
        "action": "go",
        "state_id": state,
        "next_state_id": after,
        "reward": 0.0,
        "format_valid": True,
        "action_valid": True,
        "invalid_reason": None,
        "finish_reason": "stop",
    }
    return StepRecord(**{**fields, **changes})


@pytest.fixture
def file(tmp_path):
    looped = Episode(
        "t1",
        0,
        (
            step("a" * 32, "b" * 32),
            step("b" * 32, "a" * 32),
            step("a" * 32, "a" * 32, action_valid=False, invalid_reason="not admissible"),
        ),
        False,
        0.0,
        "horizon",
    )
    won = Episode("t2", 1, (step("c" * 32, "d" * 32, reward=10.0),), True, 1.0, "success")
    folder = TrajectoryFolder(tmp_path, lambda ids: "the prompt")
    return folder.write(7, [looped, won], [0.5, -0.25, 0.0, 1.0], [2.25, None, 1.0, 9.0])


def shown(capsys, *arguments):
    main([str(a) for a in arguments])
    return capsys.readouterr().out


def test_episodes_are_listed(file, capsys):
    text = shown(capsys, file)
    assert "2 episodes" in text
    assert "t1" in text
    assert "t2" in text
    assert "t2" not in shown(capsys, file, "--failed")


def test_an_episode_is_shown_step_by_step(file, capsys):
    text = shown(capsys, file, "--task", "t1")
    for part in ("no success (horizon)", "advantage +0.500", "as at step 1", "not admissible"):
        assert part in text
    assert "stays" in text
    assert text.count("value +") == 2
    assert "value +2.250" in text
    assert "[bold]x[/bold]" in text  # a reply is text, never markup
    assert "the prompt" not in text
    assert "the prompt" in shown(capsys, file, "--task", "t2", "--trajectory", "1", "--prompts")


def test_names_and_heads_stay_whole_on_a_narrow_terminal(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    name = "pick_and_place_simple-Mug-None-Desk-308/trial_T20190908_231731_054988"
    steps = (step("a" * 32, "a" * 32), step("a" * 32, "a" * 32, reward=10.0))
    won = Episode(name, 12, steps, True, 0.5, "success")
    file = TrajectoryFolder(tmp_path, lambda ids: "").write(7, [won], [0.5, -0.25])
    listed = shown(capsys, file).splitlines()
    assert listed[1:] == [
        "trajectory  success  score  ended by  steps  malformed  inadmissible",
        name,
        "        12      yes   0.50   success      2          0             0",
    ]
    lines = shown(capsys, file, "--task", name).splitlines()
    assert f"{name}, trajectory 12: success" in lines
    head = "step 2, state aaaaaaaa, as at step 1, stays, advantage -0.250, reward 10"
    assert head in lines


def test_a_line_cut_off_by_a_killed_run_loses_nothing_else(file, capsys):
    with file.open("a") as more:
        more.write('{"task_id": "t3", "st')
    text = shown(capsys, file)
    assert "cut off" in text
    assert "2 episodes" in text


@pytest.mark.parametrize("line", ["{", json.dumps({"x": 1}), "3"])
def test_a_damaged_file_is_named_with_its_line(file, line, capsys):
    file.write_text(line + "\n" + file.read_text())
    with pytest.raises(SystemExit):
        main([str(file)])
    assert "line 1" in capsys.readouterr().err


def test_an_unknown_task_lists_those_there_are(file, capsys):
    with pytest.raises(SystemExit):
        main([str(file), "--task", "t9"])
    assert "t1, t2" in capsys.readouterr().err


def test_a_folder_is_told_which_files_to_name(tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([str(tmp_path)])
    assert stopped.value.code == 2
    assert "is not a file. Name one of the iteration-*.jsonl" in capsys.readouterr().err
