"""One process of a few training runs: `python -m tests.milegpo_algo.two_processes MODEL OUTPUT`.

Started twice by test_distributed.py with the variables torch.distributed reads, or once without.
Two processes also stop a run with Adam and a critic, and go on.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from accelerate import PartialState

from milegpo_algo.trainer import MultiTurnTrainer
from tests.milegpo_algo.lottery import LotteryPool
from tests.milegpo_algo.test_trainer import TASKS, settings

RUNS: dict[str, dict[str, object]] = {
    "dapo": {"loss_type": "dapo"},
    "grpo": {"loss_type": "grpo", "entropy_coef": 0.01},
    "bnpo": {"loss_type": "bnpo", "dynamic_sampling_rounds": 3, "degenerate_kl": False},
    "separate": {"estimator": "ppo", "critic": "separate", "critic_learning_rate": 1e-3},
    "shared": {"estimator": "ppo", "critic": "shared", "critic_learning_rate": 1e-3},
}


def main(model: str, output: str) -> None:
    torch.set_num_threads(1)
    for name, changes in RUNS.items():
        train(model, Path(output) / name, changes)
    if PartialState().num_processes > 1:
        stop_and_go_on(model, Path(output))


def train(model: str, output: Path, changes: dict[str, object]) -> None:
    args = settings(
        output,
        beta=0.05,
        optim="sgd",
        learning_rate=0.5,
        max_grad_norm=0.0,
        tasks_per_iteration=5,
        num_generations=3,
        mini_batch_size=15,
        max_steps=2,
        **changes,
    )
    trainer = MultiTurnTrainer(
        model, LotteryPool(16), args, TASKS, eval_tasks=TASKS, eval_pool=LotteryPool(2)
    )
    trainer.train()
    save_end(trainer, output, trainer.evaluate())


def stop_and_go_on(model: str, output: Path) -> None:
    """A run of two iterations, and the same from its checkpoint of the first, past an epoch's end.

    Its groups are replaced, so that the place in the stream of tasks is not the iteration's.
    """
    for name, checkpoint in (("whole", None), ("resumed", output / "whole" / "checkpoint-1")):
        args = settings(
            output / name,
            estimator="ppo",
            critic_learning_rate=1e-2,
            dynamic_sampling_rounds=2,
            tasks_per_iteration=5,
            num_generations=2,
            max_steps=2,
            save_strategy="steps",
            save_steps=1,
        )
        trainer = MultiTurnTrainer(model, LotteryPool(16), args, TASKS)
        trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
        save_end(trainer, output / name, {"position": trainer.progress.position})


def save_end(trainer: MultiTurnTrainer, output: Path, metrics: dict[str, float]) -> None:
    trainer.accelerator.wait_for_everyone()
    if trainer.accelerator.is_main_process:
        weights = trainer.accelerator.unwrap_model(trainer.model).state_dict()
        critic = {} if trainer.critic is None else trainer.critic.state_dict()
        torch.save({"weights": weights, "critic": critic, "metrics": metrics}, output / "end.pt")


if __name__ == "__main__":
    main(*sys.argv[1:])
