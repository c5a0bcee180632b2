"""The accelerate configurations say what accelerate understands. None was run: that takes GPUs."""

from pathlib import Path

import pytest
from accelerate.commands.config.config_args import load_config_from_file
from accelerate.utils import DistributedType, FullyShardedDataParallelPlugin

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


def test_fsdp_accepts_the_settings():
    config = load_config_from_file(str(FOLDER / "fsdp2.yaml")).fsdp_config
    plugin = FullyShardedDataParallelPlugin(
        fsdp_version=config["fsdp_version"],
        reshard_after_forward=config["fsdp_reshard_after_forward"],
        auto_wrap_policy=config["fsdp_auto_wrap_policy"].lower(),
        state_dict_type=config["fsdp_state_dict_type"],
        cpu_ram_efficient_loading=config["fsdp_cpu_ram_efficient_loading"],
    )
    assert plugin.fsdp_version == 2
