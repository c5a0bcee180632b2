"""Multi-turn training on TRL's GRPOTrainer: one step of the optimizer loop is one iteration.

    tasks x K -> episodes in lockstep -> estimator: one advantage per step -> rows -> mini-batches
    -> TRL's loss

Reused from TRL and transformers as they are: construction (model, reference, adapters),
`_compute_loss`, `training_step` of transformers, the optimizer loop with its schedule, logging and
checkpoints. Overridden: where rows come from, how they are averaged (exactly, over the global
mini-batch), and evaluation (tasks, not losses). There is no code for any one estimator here.
tests/milegpo_algo/test_trl_contract.py holds every private name of TRL that this package relies on.

Leaves out: estimators that need a critic's values, and sampling with anything but transformers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback

from milegpo_algo import Rollouts, make_estimator
from milegpo_algo.batch import Row, deal, minibatches
from milegpo_algo.config import MultiTurnConfig
from milegpo_algo.estimator import StepEstimator
from milegpo_algo.rollout.collect import Episode, Pool, assign, to_records
from milegpo_algo.rollout.hf_backend import ChatCodec
from milegpo_algo.rollout.metrics import MetricsFile, Stopwatch, episode_metrics, success_by
from milegpo_algo.rollout.schedule import TaskSchedule
from milegpo_algo.trainer.clock import mean, ticks
from milegpo_algo.trainer.updates import Updates

if TYPE_CHECKING:
    from peft import PeftConfig


def _no_reward(**_: object) -> list[float]:
    raise RuntimeError("Never called: rewards come from the environment.")


class MultiTurnTrainer(Updates):
    """Trains a language model on environments, with one advantage per environment step.

    Args:
        model: name, folder, or a loaded causal language model. With a KL term and no adapter, the
            reference is loaded anew from the model's own name or folder.
        pool: environments for the training rollouts; a smaller pool than `tasks_per_iteration *
            num_generations` (per process) plays them in waves.
        args: see `MultiTurnConfig`.
        train_tasks: task ids.
        eval_tasks: task ids that `evaluate` plays once each.
        eval_pool: environments for them; the training pool if None.
        processing_class: tokenizer with a chat template; loaded with the model if None.
        callbacks: as in transformers.
        peft_config: trains an adapter; the reference is then the model without it.
    """

    _tag_names = ("trl", "milegpo")

    def __init__(
        self,
        model: str | PreTrainedModel,
        pool: Pool,
        args: MultiTurnConfig,
        train_tasks: Sequence[str],
        eval_tasks: Sequence[str] | None = None,
        eval_pool: Pool | None = None,
        processing_class: PreTrainedTokenizerBase | None = None,
        callbacks: list[TrainerCallback] | None = None,
        peft_config: PeftConfig | None = None,
    ) -> None:
        estimator = make_estimator(
            args.estimator,
            convention=args.convention,
            recipe=args.recipe,
            **args.estimator_arguments,
        )
        if not isinstance(estimator, StepEstimator):
            raise ValueError(f"{args.estimator} needs a critic, which this trainer does not have.")
        self.estimator = estimator
        self.schedule = TaskSchedule(
            list(train_tasks), args.tasks_per_iteration, args.seed, bool(args.shuffle_dataset)
        )
        super().__init__(
            model=model,
            reward_funcs=_no_reward,
            args=args,
            train_dataset=ticks(self.schedule.iterations_per_epoch * args.world_size),
            eval_dataset=None if eval_tasks is None else ticks(len(eval_tasks)),
            processing_class=processing_class,
            callbacks=callbacks,
            peft_config=peft_config,
        )
        _check_dropout(self.model)
        self.pool = pool
        self.eval_pool = pool if eval_pool is None else eval_pool
        self.eval_tasks = list(eval_tasks or ())
        self.codec = ChatCodec(self._tokenizer, self.chat_template_kwargs)
        self.watch = Stopwatch()
        folder = Path(self.args.output_dir)
        self.metrics_file = MetricsFile(folder / "metrics.jsonl")
        self.evaluations_file = MetricsFile(folder / "evaluations.jsonl")

    def training_step(
        self, model: torch.nn.Module, inputs: object, num_items_in_batch: object = None
    ) -> torch.Tensor:
        """Run one iteration up to its last optimizer step, which is the caller's; mean loss."""
        self.model.train()
        logged, self._metrics["train"] = self._metrics["train"], defaultdict(list)
        self.watch = Stopwatch()
        iteration = int(self.state.global_step)
        with self.watch.phase("total"):
            episodes = self._rollout(iteration)
            rows = self._rows(episodes)
            shares = [
                deal(part, self.accelerator.num_processes, self.accelerator.process_index)
                for part in minibatches(rows, self.args.mini_batch_size, self.args.seed, iteration)
            ]
            loss = self._update(model, self._with_logprobs(shares))
        self._log_metrics(episode_metrics(episodes))
        self._log_metrics({f"seconds/{name}": s for name, s in self.watch.seconds.items()})
        summary = {name: mean(values) for name, values in self._metrics["train"].items()}
        mean_loss = self.accelerator.reduce(loss, reduction="mean")
        if self.accelerator.is_main_process:
            self.metrics_file.write(iteration + 1, {"loss": float(mean_loss), **summary})
        self._metrics["train"] = logged
        self._log_metrics(summary)
        return loss

    def _rows(self, episodes: list[Episode]) -> list[Row]:
        """Every step of the iteration with its advantage, the same list on every process."""
        records = to_records(episodes, self.args.penalise)
        if not records:
            return []
        with self.watch.phase("credit"):
            advantages = self.estimator(Rollouts.from_steps(records))
        rows = rows_of(episodes, advantages)
        self._log_metrics(
            {
                "zero_advantage": fmean(row.advantage == 0.0 for row in rows),
                "advantage_abs": fmean(abs(row.advantage) for row in rows),
            }
        )
        self.state.num_input_tokens_seen += sum(len(row) for row in rows)
        return rows

    def evaluate(
        self,
        eval_dataset: Sequence[str] | None = None,
        ignore_keys: list[str] | None = None,
        metric_key_prefix: str = "eval",
    ) -> dict[str, float]:
        """Play every evaluation task once; return and log `eval_success` and its kin.

        Args:
            eval_dataset: task ids; those given at construction if None.
            ignore_keys: unused, part of transformers' signature.
            metric_key_prefix: put before every name, with an underscore.
        """
        tasks = self.eval_tasks if eval_dataset is None else list(eval_dataset)
        if not tasks:
            raise ValueError(
                "Nothing to evaluate: give eval_tasks to the trainer, or tasks to evaluate()."
            )
        was_training = self.model.training
        self.model.eval()
        self.watch = Stopwatch()
        with self.watch.phase("total"):
            episodes = self._play(
                self.eval_pool,
                assign(tasks, 1),
                temperature=self.args.eval_temperature,
                seed=self.args.eval_seed,
                iteration=-1,
                title="evaluation",
            )
        metrics = {
            **episode_metrics(episodes),
            **{f"success/{name}": rate for name, rate in success_by(episodes, "task_type").items()},
            **{f"seconds/{name}": seconds for name, seconds in self.watch.seconds.items()},
        }
        if self.accelerator.is_main_process:
            self.evaluations_file.write(int(self.state.global_step), metrics)
        named = {f"{metric_key_prefix}_{name}": value for name, value in metrics.items()}
        self.log(dict(named))
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, named)
        self.model.train(was_training)
        return named


def rows_of(episodes: Sequence[Episode], advantages: NDArray[np.float64]) -> list[Row]:
    """One row per step, in the order of episodes and steps, with its own advantage [N]."""
    steps = [step for episode in episodes for step in episode.steps]
    return [
        Row(
            prompt=np.array(step.prompt_ids, dtype=np.int64),
            completion=np.array(step.completion_ids, dtype=np.int64),
            sampled_logprobs=None
            if step.logprobs is None
            else np.array(step.logprobs, dtype=np.float32),
            advantage=float(advantage),
        )
        for step, advantage in zip(steps, advantages, strict=True)
    ]


def _check_dropout(model: PreTrainedModel) -> None:
    """Refuse dropout: the model that samples and the model that is trained would differ."""
    active = [
        name
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Dropout) and module.p > 0
    ]
    if active or (model.config.to_dict().get("attention_dropout") or 0.0) > 0:
        where = ", ".join(active[:3]) or "attention_dropout in the model's config"
        raise ValueError(
            f"Dropout is on ({where}), so sampling and training would see different models. "
            "Leave disable_dropout on, and set lora_dropout and the model's attention_dropout to 0."
        )
