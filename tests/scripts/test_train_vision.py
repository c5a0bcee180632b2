"""A vision-language model on boards that are seen: trained, saved and evaluated from a folder."""

import json

import pytest

from scripts.train import main
from tests.milegpo_algo.tiny import save_tiny
from tests.milegpo_algo.tiny_vision import save_llava


def run(folder, output, *options):
    main(
        [
            *("--env_id", "milegpo/Sokoban-v0", "--env_settings", "observation=image"),
            *("--model", str(folder), "--output_dir", str(output), "--prompt_style", "compact"),
            *("--train_split", "train", "--eval_split", "test", "--eval_size", "3"),
            *("--max_steps", "1", "--tasks_per_iteration", "2", "--num_generations", "2"),
            *("--horizon", "2", "--eval_strategy", "no", "--eval_on_start", "false"),
            *("--eval_seeds", "1", "--max_completion_length", "3", "--disable_tqdm", "true"),
            *(
                "--validation_split",
                "validation",
                "--validation_size",
                "2",
                "--recipe",
                "sokoban",
                "--estimator",
                "gigpo",
            ),
            *("--beta", "0.01", "--trajectory_steps", "1", *options),
        ]
    )
    return json.loads((output / "result.json").read_text())


def test_a_run_on_pictures_ends_in_a_result_and_a_folder_to_start_from(tmp_path):
    start = save_llava(tmp_path / "start")
    result = run(start, tmp_path / "one", "--learning_rate", "1e-2")
    assert result["env_settings"] == {"observation": "image"}
    assert len(result["episodes"]) == 3
    assert result["rows_trained"] == 8
    pictures = list((tmp_path / "one" / "images").glob("*.png"))
    assert len(pictures) >= 2
    again = run(tmp_path / "one" / "model", tmp_path / "two", "--warm_start_only", "true")
    assert again["model_hash"] == result["trained_hash"] != result["model_hash"]


def test_a_text_model_is_told_that_it_cannot_see(tmp_path):
    with pytest.raises(ValueError, match="observation='text'"):
        run(save_tiny(tmp_path / "text"), tmp_path / "run")
