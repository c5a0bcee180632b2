"""Two gloo processes against one: the same rollouts, the same update; and stopped, the same run."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from milegpo_algo.batch import Row
from milegpo_algo.trainer.logprobs import LogProbs
from tests.milegpo_algo.test_trainer import lines, untimed
from tests.milegpo_algo.tiny import save_tiny
from tests.milegpo_algo.two_processes import RUNS

ROOT = Path(__file__).parents[2]


def run(model: str, output: Path, world: int) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    processes = []
    for rank in range(world):
        placed = {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(world),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
        }
        processes.append(
            subprocess.Popen(
                [sys.executable, "-m", "tests.milegpo_algo.two_processes", model, str(output)],
                env={
                    **os.environ,
                    "OMP_NUM_THREADS": "1",
                    "HF_HUB_OFFLINE": "1",
                    **(placed if world > 1 else {}),
                },
                cwd=ROOT,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    for process in processes:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors[-3000:]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("distributed")
    model = save_tiny(folder / "model")
    for world in (1, 2):
        run(model, folder / str(world), world)
    return folder


@pytest.mark.parametrize("loss_type", RUNS)
def test_two_processes_train_as_one(outputs, loss_type):
    """15 episodes in shares of 8 and 7, mini-batches that do not divide by two."""
    ends = [torch.load(outputs / n / loss_type / "end.pt", weights_only=True) for n in "12"]
    start = AutoModelForCausalLM.from_pretrained(outputs / "model").state_dict()
    one, two = (end["weights"] for end in ends)
    for name, weight in one.items():
        torch.testing.assert_close(weight, two[name], rtol=0, atol=5e-5, msg=name)
    assert max(float((one[name] - start[name]).abs().max()) for name in start) > 1e-2
    records = [lines(outputs / n / loss_type / "metrics.jsonl") for n in "12"]
    for mine, theirs in zip(*records, strict=True):
        assert (mine["rows"], mine["success"]) == (theirs["rows"], theirs["success"])
        assert mine["loss"] == pytest.approx(theirs["loss"], abs=1e-5)
    for name, weight in ends[0]["critic"].items():
        torch.testing.assert_close(weight, ends[1]["critic"][name], rtol=0, atol=2e-4, msg=name)
    results = [end["metrics"] for end in ends]
    assert results[0]["eval_success"] == results[1]["eval_success"]
    assert results[1]["eval_episodes"] == 5


def test_two_processes_go_on_as_if_never_stopped(outputs):
    """Model, Adam's moments, critic and place in the stream of tasks, bit for bit."""
    folders = [outputs / "2" / name for name in ("whole", "resumed")]
    whole, resumed = (torch.load(folder / "end.pt", weights_only=True) for folder in folders)
    start = AutoModelForCausalLM.from_pretrained(outputs / "model").state_dict()
    assert any(not torch.equal(whole["weights"][name], start[name]) for name in start)
    for part in ("weights", "critic"):
        for name, value in whole[part].items():
            assert torch.equal(value, resumed[part][name]), name
    assert whole["metrics"] == resumed["metrics"]
    records = [untimed(lines(folder / "metrics.jsonl")) for folder in folders]
    assert records[0][1:] == records[1]


def test_measures_are_those_of_all_processes_together():
    """What another process would send is put beside this one's: [sum, count, max] of its gaps."""
    trainer = LogProbs.__new__(LogProbs)
    trainer._metrics = {"train": defaultdict(list)}
    theirs = torch.tensor([[3.0, 2.0, 2.5]], dtype=torch.float64)
    trainer.accelerator = SimpleNamespace(
        device=torch.device("cpu"), gather=lambda mine: torch.cat([mine, theirs])
    )
    row = Row(
        prompt=np.array([1]),
        completion=np.array([1, 2, 3]),
        sampled_logprobs=np.array([-1.0, np.nan, -2.0], np.float32),
        advantage=0.0,
    )
    trainer._log_gap([row], [np.array([-1.5, -1.0, -2.5], np.float32)])
    assert trainer._metrics["train"] == {"sampling_gap/mean": [4.0 / 4], "sampling_gap/max": [2.5]}
    trainer._log_gap([], [])  # nothing here: the others' alone
    assert trainer._metrics["train"]["sampling_gap/mean"] == [1.0, 1.5]
