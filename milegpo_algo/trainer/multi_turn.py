"""Multi-turn training on TRL's GRPOTrainer: one step of the optimizer loop is one iteration.

    tasks x K -> episodes in lockstep -> estimator: one advantage per step -> rows -> mini-batches
    -> TRL's loss

Reused from TRL and transformers as they are: construction (model, reference, adapters),
`_compute_loss`, `training_step` of transformers, the optimizer loop with its schedule, logging and
checkpoints. Overridden: where rows come from, how they are averaged (exactly, over the global
mini-batch), and evaluation (tasks, not losses). There is no code for any one estimator here.
tests/milegpo_algo/test_trl_contract.py holds every private name of TRL that this package relies on.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from transformers import (
    PreTrainedModel,
    PreTrainedTokenizerBase,
    ProcessorMixin,
    TrainerCallback,
)
from transformers.trainer_callback import PrinterCallback, ProgressCallback

from milegpo_algo import Rollouts, make_estimator
from milegpo_algo.batch import Row, shares
from milegpo_algo.config import MultiTurnConfig
from milegpo_algo.estimator import TokenEstimator
from milegpo_algo.rollout.collect import Episode, Pool, assign, to_records
from milegpo_algo.rollout.context import prompt_budget
from milegpo_algo.rollout.metrics import MetricsFile, Stopwatch, episode_metrics, tie_rate
from milegpo_algo.rollout.schedule import TaskSchedule
from milegpo_algo.rollout.trajectories import TrajectoryFolder
from milegpo_algo.rollout.vision import codec_of, vision_of
from milegpo_algo.rollout.vllm_backend import VLLMEngine
from milegpo_algo.trainer.clock import mean, ticks
from milegpo_algo.trainer.credit import (
    rows_of,
    with_token_credit,
    without_degenerate,
)
from milegpo_algo.trainer.resume import Progress, StopRequest
from milegpo_algo.trainer.stopping import Stopping, StopWhere
from milegpo_algo.trainer.table import IterationTable
from milegpo_algo.trainer.values import explained_variance, first_value

if TYPE_CHECKING:
    from peft import PeftConfig


def _no_reward(**_: object) -> list[float]:
    raise RuntimeError("Never called: rewards come from the environment.")


class MultiTurnTrainer(Stopping):
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
        processing_class: tokenizer with a chat template, or the processor of a vision-language
            model; loaded with the model if None.
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
        processing_class: PreTrainedTokenizerBase | ProcessorMixin | None = None,
        callbacks: list[TrainerCallback] | None = None,
        peft_config: PeftConfig | None = None,
    ) -> None:
        estimator = make_estimator(
            args.estimator,
            convention=args.convention,
            recipe=args.recipe,
            **args.estimator_arguments,
        )
        self.estimator = estimator
        self.progress = Progress()
        self.stop_request = StopRequest()
        self.stopped: str | None = None
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
        self.prompt_budget = prompt_budget(
            self.model.config, args.max_prompt_tokens, self.max_completion_length
        )
        if self.prompt_budget < args.max_prompt_tokens:
            warnings.warn(
                f"Prompts are held to {self.prompt_budget} tokens, not max_prompt_tokens="
                f"{args.max_prompt_tokens}: with a reply, the model's context holds no more.",
                stacklevel=2,
            )
        self.pool = pool
        self.eval_pool = pool if eval_pool is None else eval_pool
        self.eval_tasks = list(eval_tasks or ())
        self.codec = codec_of(self.processing_class, self.chat_template_kwargs)
        self.vision = vision_of(self.processing_class)
        self.watch = Stopwatch()
        self.engine = VLLMEngine(self.vllm_generation) if self.use_vllm else None
        if isinstance(estimator, TokenEstimator):
            self._add_critic(model if isinstance(model, str) else model.config._name_or_path)
        self.add_callback(StopWhere(self._why_stop))
        self.remove_callback(PrinterCallback if self.args.disable_tqdm else ProgressCallback)
        self.add_callback(IterationTable(bar=not self.args.disable_tqdm))
        folder = Path(self.args.output_dir)
        self.trajectories = TrajectoryFolder(folder, self.codec.decode)
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
        world, rank = self.accelerator.num_processes, self.accelerator.process_index
        with self.watch.phase("total"):
            episodes = self._rollout(iteration)
            rows = self._rows(episodes)
            parts = shares(rows, self.args.mini_batch_size, self.args.seed, iteration, world, rank)
            loss = self._update(model, self._with_logprobs(parts))
            self._write_trajectories(iteration + 1, episodes, rows)
        self._log_metrics({**episode_metrics(self.played), "rows": len(rows)})
        self._log_metrics({f"seconds/{name}": s for name, s in self.watch.seconds.items()})
        summary = {name: mean(values) for name, values in self._metrics["train"].items()}
        self._count_flat(summary)
        mean_loss = self.accelerator.reduce(loss, reduction="mean")
        if self.accelerator.is_main_process:
            self.metrics_file.write(iteration + 1, {"loss": float(mean_loss), **summary})
        self._metrics["train"] = logged
        self._log_metrics(summary)
        return loss

    # ---- credit ----------------------------------------------------------------------------

    def _rows(self, episodes: list[Episode]) -> list[Row]:
        """Every step of the iteration with its credit, the same list on every process."""
        records = to_records(episodes, self.args.penalise)
        if not records:
            return []
        rollouts = Rollouts.from_steps(records)
        rows = rows_of(episodes, np.zeros(len(records)))
        if isinstance(self.estimator, TokenEstimator):
            with self.watch.phase("values"):
                values = self._values(rows)
            with self.watch.phase("credit"):
                rows = with_token_credit(
                    rows,
                    self.estimator(rollouts, values),
                    self.estimator.targets(rollouts, values),
                    values,
                )
            self._log_metrics({"explained_variance": explained_variance(rows)})
        else:
            with self.watch.phase("credit"):
                credit = self.estimator(rollouts)
            rows = [replace(row, advantage=float(a)) for row, a in zip(rows, credit, strict=True)]
        if not self.args.degenerate_kl:
            rows = without_degenerate(rows, episodes, self.num_generations)
        advantages = np.array([row.advantage for row in rows])
        ties = tie_rate(episodes, advantages.tolist())
        self._log_metrics(
            {
                "zero_advantage": float((advantages == 0.0).mean()),
                "advantage_abs": float(np.abs(advantages).mean()),
                **({} if ties is None else {"ties": ties}),
                "silent_rows": float(np.mean([not row.trains for row in rows])),
            }
        )
        self.state.num_input_tokens_seen += sum(len(row) for row in rows)
        return rows

    def _write_trajectories(self, iteration: int, episodes: list[Episode], rows: list[Row]) -> None:
        every = self.args.trajectory_steps
        if not every or iteration % every or not self.accelerator.is_main_process:
            return
        values = None if self.critic is None else [first_value(row) for row in rows]
        with self.watch.phase("trajectories"):
            self.trajectories.write(iteration, episodes, [row.advantage for row in rows], values)

    # ---- evaluation ------------------------------------------------------------------------

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
            **{f"seconds/{name}": seconds for name, seconds in self.watch.seconds.items()},
        }
        if self.accelerator.is_main_process:
            self.evaluations_file.write(int(self.state.global_step), metrics)
        named = {f"{metric_key_prefix}_{name}": value for name, value in metrics.items()}
        self.log(dict(named))
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, named)
        self.model.train(was_training)
        return named


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
