"""One process of two training runs: `python -m tests.milegpo_algo.two_processes MODEL OUTPUT`.

Started twice by test_distributed.py with the variables torch.distributed reads, or once without.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

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
    metrics = trainer.evaluate()
    if trainer.accelerator.is_main_process:
        weights = trainer.accelerator.unwrap_model(trainer.model).state_dict()
        critic = {} if trainer.critic is None else trainer.critic.state_dict()
        torch.save({"weights": weights, "critic": critic, "evaluation": metrics}, output / "end.pt")


if __name__ == "__main__":
    main(*sys.argv[1:])
