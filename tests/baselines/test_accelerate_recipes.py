"""The accelerate configurations say what accelerate understands. None was run: that takes GPUs."""

import os
from pathlib import Path
from unittest.mock import patch

import pytest
from accelerate.commands.config.config_args import load_config_from_file
from accelerate.commands.launch import _validate_launch_command, launch_command_parser
from accelerate.utils import DistributedType, FullyShardedDataParallelPlugin
from accelerate.utils.launch import prepare_deepspeed_cmd_env, prepare_multi_gpu_env

import baselines

FOLDER = Path(baselines.__file__).parent / "recipes" / "accelerate"
FILES = sorted(FOLDER.glob("*.yaml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_accelerate_reads_every_key(file):
    config = load_config_from_file(str(file))  # refuses keys that it does not know
    assert config.num_processes > 1
    assert config.mixed_precision == "bf16"


@pytest.mark.parametrize(
    ("name", "kind", "stage"),
    [
        ("ddp", DistributedType.MULTI_GPU, None),
        ("zero2", DistributedType.DEEPSPEED, 2),
        ("zero3", DistributedType.DEEPSPEED, 3),
        ("fsdp2", DistributedType.FSDP, None),
    ],
)
def test_every_file_is_what_its_name_says(name, kind, stage):
    config = load_config_from_file(str(FOLDER / f"{name}.yaml"))
    assert config.distributed_type == kind
    assert config.deepspeed_config.get("zero_stage") == stage


def test_accumulation_is_left_to_the_trainer():
    for file in FILES:
        config = load_config_from_file(str(file))
        assert config.deepspeed_config.get("gradient_accumulation_steps", 1) == 1


def launched(name):
    """Arguments of `accelerate launch`, and the variables that it would start processes with."""
    file = str(FOLDER / f"{name}.yaml")
    given = ["--config_file", file, "-m", "scripts.train", "--max_steps", "1"]
    with patch.dict(os.environ):
        args, defaults, _ = _validate_launch_command(launch_command_parser().parse_args(given))
        # as launch_command does between the two
        args.deepspeed_fields_from_accelerate_config = ",".join(defaults.deepspeed_config)
        if args.use_deepspeed:
            return args, prepare_deepspeed_cmd_env(args)[1]
        return args, prepare_multi_gpu_env(args)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_accelerate_would_launch_scripts_train(file):
    args, variables = launched(file.stem)
    assert (args.training_script, args.module) == ("scripts.train", True)
    assert args.training_script_args == ["--max_steps", "1"]
    assert variables["ACCELERATE_MIXED_PRECISION"] == "bf16"


@pytest.mark.parametrize("stage", ["2", "3"])
def test_processes_are_told_the_stage_of_deepspeed(stage):
    _, variables = launched(f"zero{stage}")
    assert variables["ACCELERATE_USE_DEEPSPEED"] == "true"
    assert variables["ACCELERATE_DEEPSPEED_ZERO_STAGE"] == stage
    assert variables["ACCELERATE_GRADIENT_ACCUMULATION_STEPS"] == "1"
    assert variables["ACCELERATE_DEEPSPEED_ZERO3_INIT"] == str(stage == "3").lower()


def test_processes_are_told_to_shard_with_fsdp():
    _, variables = launched("fsdp2")
    with patch.dict(os.environ, variables):
        plugin = FullyShardedDataParallelPlugin()
    assert (plugin.fsdp_version, plugin.reshard_after_forward) == (2, True)
    assert plugin.auto_wrap_policy.__name__ == "transformer_auto_wrap_policy"
    assert plugin.state_dict_type.name == "FULL_STATE_DICT"
