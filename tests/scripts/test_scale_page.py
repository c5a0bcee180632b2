"""docs/scale.md names options that exist and commands that parse."""

import re
import shlex
from dataclasses import fields
from pathlib import Path

import pytest
from trl import TrlParser

from baselines.train_options import TrainOptions, read_options
from milegpo_algo.config import MultiTurnConfig

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "scale.md").read_text()
OPTIONS = {spec.name for spec in (*fields(TrainOptions), *fields(MultiTurnConfig))}
# Of accelerate, vLLM and a scheduler.
OTHERS = {"config", "config_file", "signal", "max-model-len", "max-logprobs"} | {
    "weight-transfer-config",
    "logprobs-mode",
}


def commands():
    text = PAGE.replace("\\\n", " ")
    return [line.strip() for line in text.splitlines() if "-m scripts.train" in line]


def test_every_option_of_the_page_exists():
    named = set(re.findall(r"(?<![\w-])--([a-z][\w-]*)", PAGE))
    assert len(named) > 20
    assert named <= OPTIONS | OTHERS


@pytest.mark.parametrize("command", commands(), ids=lambda c: c.split()[-1])
def test_every_command_of_the_page_is_read(command, monkeypatch):
    monkeypatch.chdir(ROOT)
    launched, _, own = command.partition("-m scripts.train")
    _, file = shlex.split(launched)[-2:]
    assert Path(file).is_file()
    parser = TrlParser((TrainOptions, MultiTurnConfig))
    asked = read_options([*shlex.split(own), "--use_cpu", "true"], parser)
    assert asked.config.use_vllm
    room = asked.config.max_prompt_tokens + asked.config.max_completion_length
    assert asked.config.vllm_max_model_length in (None, room)


def test_every_metric_of_the_page_is_one_the_trainer_writes():
    """By the text of the sources: the table's names in quotes, those with a slash by their stem."""
    table = PAGE[PAGE.index("| name |") : PAGE.index("Before the first rollout")]
    cells = [line.split("|")[1] for line in table.splitlines()[2:] if line.startswith("|")]
    names = {n for cell in cells for n in re.findall(r"`(\w[\w/*]*)`", cell)}
    assert len(names) > 12
    folder = ROOT / "milegpo_algo"
    source = "".join(path.read_text() for path in sorted(folder.rglob("*.py")))
    assert not [n for n in names if f'"{n.split("/")[0]}' not in source]
