import json
import shutil

import pytest
from rich.console import Console
from trl import TrlParser
from trl.import_utils import is_vllm_available

from baselines.comparison import Row
from baselines.recipe_files import MAIN_JOB, RECIPES
from baselines.rerun import find_row, rerun_command, run_again
from baselines.train_options import TrainOptions, read_options
from milegpo_algo.config import MultiTurnConfig
from scripts.train import main
from tests.baselines.toy_rows import logged

TINY = [
    *("--warm_episodes", "12", "--warm_steps", "4", "--max_steps", "1", "--eval_size", "3"),
    *("--tasks_per_iteration", "2", "--num_generations", "2", "--eval_seeds", "1", "2"),
    *("--horizon", "3", "--eval_on_start", "false", "--eval_strategy", "no"),
    *("--disable_tqdm", "true"),
]
TIMES = {"started", "seconds"}


def train(tmp_path, name, *options):
    folder = tmp_path / name
    cache = ("--warm_cache", str(tmp_path / "cache"))
    main([*TINY, *cache, "--output_dir", str(folder), *options])
    return json.loads((folder / "result.json").read_text())


def test_same_command_and_seed_twice_gives_the_same_row_but_for_times(tmp_path):
    first = train(tmp_path, "first", "--estimator", "milegpo", "--seed", "5")
    second = train(tmp_path, "second", "--estimator", "milegpo", "--seed", "5")
    differing = {key for key in first if first[key] != second[key]}
    assert differing <= TIMES
    assert first["rows_trained"] == 12  # 2 tasks x 2 rollouts x 3 steps: nobody wins by then
    assert first["settings"]["estimator"] == "milegpo"
    assert len(first["episodes"]) == 6  # 3 games, once for each of 2 seeds
    assert len({(e["task_id"], e["seed"]) for e in first["episodes"]}) == 6


def test_the_warm_start_alone_is_a_row_without_estimator(tmp_path):
    row = train(tmp_path, "warm", "--warm_start_only", "true")
    assert row["estimator"] is None
    assert row["rows_trained"] == 0
    assert row["model_hash"]
    assert row["panel"]["data"] == row["train_panel"]["data"] == "generated"
    assert row["train_panel"]["name"].endswith("/train")
    assert len(row["train_panel"]["hash"]) == 16


def read(*words):
    return read_options(words, TrlParser((TrainOptions, MultiTurnConfig)))


def test_options_count_however_they_are_written(tmp_path):
    file = tmp_path / "own.yaml"
    file.write_text("output_dir: from_file\nhorizon: 7\n")
    assert read(f"--config={file}").config.output_dir == "from_file"
    asked = read("--config", str(file), "--output_dir=mine", "--eval_seeds", "1", "2")
    assert (asked.config.output_dir, asked.options.eval_seeds) == ("mine", [1, 2])
    assert asked.config.report_to == []
    assert asked.given == {"horizon": 7, "eval_seeds": ["1", "2"]}


def test_rows_of_other_training_options_have_another_recipe(tmp_path):
    known = train(tmp_path, "known", "--warm_start_only", "true")
    other = train(tmp_path, "other", "--warm_start_only", "true", "--weight_decay", "0.1")
    seeded = train(tmp_path, "seeded", "--warm_start_only", "true", "--seed", "7")
    assert known["recipe_hash"] == seeded["recipe_hash"] != other["recipe_hash"]


PLAIN = [path for path in sorted(MAIN_JOB.parent.glob("*.yaml")) if "env_id" in path.read_text()]


@pytest.mark.parametrize("recipe", PLAIN, ids=lambda p: p.stem)
def test_every_recipe_that_comes_along_is_read(tmp_path, capsys, recipe):
    with pytest.raises(SystemExit):
        main(["--config", str(recipe), "--eval_split", "nope", "--output_dir", str(tmp_path)])
    assert "Unknown split" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "valid"),
    [
        (("--estimator", "nope"), "graphgpo"),
        (("--env_id", "milegpo/Nope-v0"), "milegpo/ALFWorld-v0"),
        (("--eval_split", "nope"), "valid_unseen"),
        (("--train_split", "nope"), "valid_seen"),
        (("--estimator_settings", "nope=1"), "eta"),
        (("--env_settings", "engine=nope"), "textworld"),
        (("--env_settings", "nope=1"), "nope"),
        (("--prompt_style", "nope"), "compact"),
        (("--nope", "1"), "nope"),
        (("--model", "/nowhere"), "No model at '/nowhere'"),
        (("--eval_seeds", "1", "1"), "each once"),
        (("--horizon", "-1"), "horizon=-1"),
        (("--seed", "-1"), "seed=-1"),
        (("--warm_episodes", "0"), "warm_episodes=0"),
        (("--warm_noise", "2"), "warm_noise=2"),
        (("--learning_rate", "nan"), "learning_rate=nan"),
        (("--learning_rate", "-1"), "learning_rate=-1"),
        (("--lora_rank", "-1"), "lora_rank=-1"),
        (("--id_split", "nope"), "valid_seen"),
        (("--validation_split", "nope"), "valid_seen"),
        (("--validation_split", "valid_seen", "--validation_size", "0"), "cannot have 0 tasks"),
        pytest.param(
            ("--use_vllm", "true"),
            "pip install",
            marks=pytest.mark.skipif(is_vllm_available(), reason="vLLM is installed"),
        ),
        (("--resume_from_checkpoint", "nowhere"), "no checkpoint is there"),
    ],
)
def test_unknown_names_exit_with_2_before_a_model_loads(tmp_path, capsys, options, valid):
    with pytest.raises(SystemExit) as error:
        main([*options, "--output_dir", str(tmp_path)])
    assert error.value.code == 2
    assert valid in capsys.readouterr().err
    assert not (tmp_path / "progress.json").exists()


def test_ppo_trains_with_a_critic(tmp_path):
    row = train(tmp_path, "ppo", "--estimator", "ppo", "--max_completion_length", "6")
    assert row["settings"]["estimator"] == "ppo"
    [record] = [json.loads(x) for x in (tmp_path / "ppo/metrics.jsonl").read_text().splitlines()]
    assert "value_loss" in record


def test_an_adapter_is_saved_merged_and_chosen_on_another_split(tmp_path):
    row = train(
        tmp_path,
        "lora",
        *("--lora_rank", "2", "--final_checkpoint", "best", "--max_completion_length", "6"),
        *("--validation_split", "valid_seen", "--validation_size", "2"),
        *("--eval_strategy", "steps", "--eval_steps", "1"),
    )
    assert row["checkpoint_rule"].startswith("best success on alfworld/valid_seen")
    saved = {path.name for path in (tmp_path / "lora" / "model").iterdir()}
    assert {"model.safetensors", "config.json", "tokenizer.json"} <= saved
    assert not any(name.startswith("adapter") for name in saved)


def test_the_best_checkpoint_is_not_chosen_on_the_games_of_the_result(tmp_path, capsys):
    with pytest.raises(SystemExit):
        train(tmp_path, "best", "--final_checkpoint", "best", "--eval_strategy", "steps")
    assert "validation_split" in capsys.readouterr().err


def test_a_run_goes_on_from_its_last_checkpoint(tmp_path):
    short = ("--max_completion_length", "6", "--save_steps", "1")
    whole = train(tmp_path, "whole", *short, "--max_steps", "2")
    train(tmp_path, "cut", *short)
    cut = train(tmp_path, "cut", *short, "--max_steps", "2", "--resume_from_checkpoint", "last")
    assert [e["success"] for e in cut["episodes"]] == [e["success"] for e in whole["episodes"]]
    assert cut["rows_trained"] == whole["rows_trained"]
    assert cut["recipe_hash"] == whole["recipe_hash"]


@pytest.mark.parametrize(
    ("environment", "method"),
    [
        ("alfworld", "graphgpo-dynamic"),
        ("webshop", "milegpo-without-pcc"),
        ("sokoban", "ppo"),
    ],
)
def test_a_cell_of_a_comparison_trains_from_its_recipe(tmp_path, environment, method):
    config = ("--config", str(RECIPES / "tiny.yaml"), "--environment", environment)
    short = ("--max_completion_length", "6", "--id_split", "train", "--id_size", "2")
    row = train(tmp_path, "cell", *config, "--method", method, *short)
    assert row["method"] == method
    assert row["counts"]["rows"] == row["rows_trained"] > 0
    assert row["in_distribution"]["panel"]["size"] == 2
    assert row["options"]["environment"] == environment
    assert Row.of(row).protocol["horizon"] == 3


def test_a_row_runs_again_from_what_it_says_and_gives_the_same_numbers(tmp_path, capfd):
    row = train(
        *(tmp_path, "first", "--estimator", "milegpo", "--seed", "5"),
        *("--max_completion_length", "6", "--estimator_settings", "eta=0.5"),
    )
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps({**row, "seed": 4}) + "\n" + json.dumps(row) + "\n")
    shutil.rmtree(tmp_path / "cache")  # the warm start is made again, too
    assert run_again(f"{file}:milegpo-seed5", tmp_path, Console()) == 0
    assert "the same numbers again" in capfd.readouterr().out
    again = json.loads((tmp_path / "again" / "milegpo-seed5" / "result.json").read_text())
    assert again["settings"] == row["settings"]
    assert again["settings"]["eta"] == 0.5
    assert again["trained_hash"] == row["trained_hash"]


def test_a_row_that_does_not_exist_is_named_with_those_that_do(tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(logged("grpo", s, [[0, 1], [1, 1]])) + "\n" for s in (1, 2)))
    assert find_row(f"{file}:1").name == "grpo-seed2"
    with pytest.raises(ValueError, match=r"0 \(grpo-seed1\), 1 \(grpo-seed2\)"):
        find_row(str(file))
    with pytest.raises(ValueError, match="does not say how it was made"):
        rerun_command(find_row(f"{file}:grpo-seed1"), tmp_path)
    with pytest.raises(ValueError, match="no file"):
        find_row("nowhere.jsonl:1")
