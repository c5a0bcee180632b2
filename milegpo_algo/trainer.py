"""Multi-turn training on TRL's GRPOTrainer: one step of the optimizer loop is one iteration.

    tasks x K -> episodes in lockstep -> estimator: one advantage per step -> rows -> mini-batches
    -> TRL's loss

Reused from TRL and transformers as they are: construction (model, reference, adapters),
`_compute_loss`, `training_step` of transformers, the optimizer loop with its schedule, logging and
checkpoints. Overridden: where rows come from, how they are averaged (exactly, over the global
mini-batch), and evaluation (tasks, not losses). There is no code for any one estimator here.
tests/milegpo_algo/test_trl_contract.py holds every private name of TRL that this file relies on.

Leaves out: estimators that need a critic's values, and sampling with anything but transformers.
"""

from __future__ import annotations

import contextlib
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from accelerate.utils import DistributedType, gather_object
from datasets import Dataset
from numpy.typing import NDArray
from torch.utils.data import DataLoader, SequentialSampler
from tqdm.auto import tqdm  # type: ignore[import-untyped]  # no stubs among our dependencies
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback, TrainerControl
from trl import GRPOTrainer
from trl.models.utils import disable_gradient_checkpointing, unwrap_model_for_generation
from trl.trainer.utils import use_adapter

from milegpo_algo import Rollouts, make_estimator
from milegpo_algo.batch import (
    Floats,
    Row,
    collate,
    deal,
    guard_reference,
    microbatches,
    minibatches,
    padding,
)
from milegpo_algo.config import LOSSES_BY_TOKEN, MultiTurnConfig
from milegpo_algo.estimator import StepEstimator
from milegpo_algo.rollout.collect import Episode, Pool, assign, play, to_records
from milegpo_algo.rollout.hf_backend import ChatCodec, HFGenerator
from milegpo_algo.rollout.metrics import (
    MetricsFile,
    Stopwatch,
    TimedCodec,
    TimedGenerator,
    TimedPool,
    episode_metrics,
    success_by,
)
from milegpo_algo.rollout.prefix import can_read
from milegpo_algo.rollout.schedule import TaskSchedule
from milegpo_algo.rollout.scoring import completion_logprobs

if TYPE_CHECKING:
    from peft import PeftConfig

Batch = dict[str, torch.Tensor]


def _no_reward(**_: object) -> list[float]:
    raise RuntimeError("Never called: rewards come from the environment.")


class MultiTurnTrainer(GRPOTrainer):  # type: ignore[misc]  # trl ships no types
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
    control: TrainerControl

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
            train_dataset=_clock(self.schedule.iterations_per_epoch * args.world_size),
            eval_dataset=None if eval_tasks is None else _clock(len(eval_tasks)),
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

    # ---- the optimizer loop of transformers, used as a clock -------------------------------

    def get_train_dataloader(self) -> DataLoader[dict[str, str]]:
        """One empty batch per iteration: the tasks are a function of the iteration's number."""
        return cast(
            "DataLoader[dict[str, str]]",
            self._get_dataloader(
                dataset=self.train_dataset,
                description="Training",
                batch_size=1,
                sampler_fn=SequentialSampler,
                is_training=True,
            ),
        )

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
        summary = {name: _mean(values) for name, values in self._metrics["train"].items()}
        mean_loss = self.accelerator.reduce(loss, reduction="mean")
        if self.accelerator.is_main_process:
            self.metrics_file.write(iteration + 1, {"loss": float(mean_loss), **summary})
        self._metrics["train"] = logged
        self._log_metrics(summary)
        return loss

    def _log_metrics(self, metrics: dict[str, float]) -> None:
        for name, value in metrics.items():
            self._metrics["train"][name].append(value)

    # ---- rollouts --------------------------------------------------------------------------

    def _rollout(self, iteration: int) -> list[Episode]:
        """Episodes of all processes, in the order of the schedule."""
        with self.watch.phase("rollout"):
            return self._play(
                self.pool,
                assign(self.schedule.tasks(iteration), self.num_generations),
                temperature=self.temperature,
                seed=self.args.seed,
                iteration=iteration,
                title="rollout",
            )

    def _play(
        self,
        pool: Pool,
        assignments: Sequence[tuple[str, int]],
        *,
        temperature: float,
        seed: int,
        iteration: int,
        title: str,
    ) -> list[Episode]:
        world, rank = self.accelerator.num_processes, self.accelerator.process_index
        cuts = [round(i * len(assignments) / world) for i in range(world + 1)]
        mine = assignments[cuts[rank] : cuts[rank + 1]]
        with self._policy() as policy, self._progress(title, len(mine)) as on_progress:
            generator = HFGenerator(
                policy,
                end_ids=self.eos_token_ids,
                max_new_tokens=self.max_completion_length,
                temperature=temperature,
                max_rows=self.args.generation_rows,
            )
            episodes = play(
                TimedPool(pool, self.watch),
                TimedGenerator(generator, self.watch),
                TimedCodec(self.codec, self.watch),
                mine,
                max_prompt_tokens=self.args.max_prompt_tokens,
                seed=seed,
                iteration=iteration,
                on_progress=on_progress,
            )
        if world == 1:
            return episodes
        return cast(list[Episode], gather_object(episodes))

    @contextlib.contextmanager
    def _policy(self) -> Iterator[PreTrainedModel]:
        """The model as it is trained, unwrapped, whole and in the precision of training."""
        with (
            unwrap_model_for_generation(
                self.model_wrapped,
                self.accelerator,
                gather_deepspeed3_params=self.args.ds3_gather_for_generation,
                gradient_checkpointing_kwargs=self.args.gradient_checkpointing_kwargs,
            ) as policy,
            self._dist.summon_full_params(self.model_wrapped, recurse=False),
            self.accelerator.autocast(),
        ):
            yield policy

    @contextlib.contextmanager
    def _progress(self, title: str, total: int) -> Iterator[Callable[[int, int], None]]:
        """A bar of finished episodes that vanishes when done; none where nobody watches."""
        hidden = self.args.disable_tqdm or not self.accelerator.is_main_process
        with tqdm(
            total=total, desc=title, unit="episode", leave=False, disable=True if hidden else None
        ) as bar:
            yield lambda finished, _: bar.update(finished - bar.n)

    # ---- credit ----------------------------------------------------------------------------

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

    # ---- log-probs of the sampling and of the reference policy -----------------------------

    @torch.no_grad()
    def _with_logprobs(self, shares: list[list[Row]]) -> list[list[Row]]:
        """The shares with old and reference log-probs, computed once for the iteration."""
        rows = [row for share in shares for row in share]
        if not rows:
            return shares
        with disable_gradient_checkpointing(self.model, self.args.gradient_checkpointing_kwargs):
            old = self._old_logprobs(rows)
            ref = self._reference_logprobs(rows) if self.beta != 0.0 else [None] * len(rows)
        done = []
        cuts = 0
        for row, old_row, ref_row in zip(rows, old, ref, strict=True):
            guarded = None
            if ref_row is not None:
                guarded, cut = guard_reference(ref_row, old_row, self.args.kl_limit)
                cuts += cut if row.counts else 0
            done.append(replace(row, old_logprobs=old_row, ref_logprobs=guarded))
        if self.beta != 0.0:
            self._log_metrics({"kl_cuts": self._sum_over_processes(cuts)})
        filled = iter(done)
        return [[next(filled) for _ in share] for share in shares]

    def _old_logprobs(self, rows: list[Row]) -> list[Floats]:
        sampled = [row.sampled_logprobs for row in rows if row.sampled_logprobs is not None]
        if not self.args.use_sampled_logprobs or len(sampled) < len(rows):
            with self.watch.phase("old_logprobs"):
                old = self._score(rows, lambda batch: self._logprobs(self.model, batch))
            self._log_gap(rows, old)
            return old
        pieces = list(
            microbatches(
                sorted(rows, key=lambda row: row.order), self.args.per_device_train_batch_size
            )
        )
        piece = pieces[len(pieces) // 2]
        with self.watch.phase("old_logprobs"):
            self._log_gap(
                piece, self._score(piece, lambda batch: self._logprobs(self.model, batch))
            )
        return sampled

    def _reference_logprobs(self, rows: list[Row]) -> list[Floats]:
        with self.watch.phase("reference"):
            if self.ref_model is not None:
                return self._score(rows, lambda batch: self._logprobs(self.ref_model, batch))
            adapted = self.accelerator.unwrap_model(self.model)
            with use_adapter(adapted, "ref" if "ref" in adapted.peft_config else None):
                return self._score(rows, lambda batch: self._logprobs(self.model, batch))

    def _score(
        self, rows: Sequence[Row], logprobs: Callable[[Batch], torch.Tensor]
    ) -> list[Floats]:
        """Log-probs of each row's completion, in micro-batches; equal rows are computed once.

        Except where processes hold parts of one model and have to run it equally often.
        """
        first: dict[tuple[bytes, bytes, int], int] = {}
        source = [
            first.setdefault(
                (row.prompt.tobytes(), row.completion.tobytes(), i if self._sharded else 0), i
            )
            for i, row in enumerate(rows)
        ]
        distinct = sorted(first.values(), key=lambda i: rows[i].order)
        known: dict[int, Floats] = {}
        for piece in microbatches(distinct, self.args.per_device_train_batch_size):
            batch = self._collate([replace(rows[i], counts=True) for i in piece])
            for i, values in zip(piece, logprobs(batch).float().cpu().numpy(), strict=True):
                known[i] = values[: len(rows[i].completion)].copy()
        return [known[i] for i in source]

    def _logprobs(self, model: torch.nn.Module, batch: Batch) -> torch.Tensor:
        logprobs, _, _ = self._get_per_token_logps_and_entropies(
            model,
            torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1),
            torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1),
            batch["completion_ids"].size(1),
        )
        return logprobs

    def _log_gap(self, rows: Sequence[Row], recomputed: Sequence[Floats]) -> None:
        """Log how far training's log-probs are from those recorded while sampling, in nats."""
        gaps = [
            np.abs(new - row.sampled_logprobs)
            for row, new in zip(rows, recomputed, strict=True)
            if row.sampled_logprobs is not None and row.counts
        ]
        if gap := np.concatenate(gaps).tolist() if gaps else []:
            self._log_metrics({"sampling_gap/mean": fmean(gap), "sampling_gap/max": max(gap)})

    # ---- updates ---------------------------------------------------------------------------

    def _update(self, model: torch.nn.Module, shares: list[list[Row]]) -> torch.Tensor:
        """Every mini-batch is an optimizer step, the last one left to the caller; mean loss."""
        plan = [share for _ in range(self.num_iterations) for share in shares]
        losses, norms = [torch.zeros((), device=self.args.device)] if not plan else [], []
        with self.watch.phase("update"):
            for k, share in enumerate(plan):
                losses.append(self._backward(model, share))
                if k == len(plan) - 1:
                    norms.append(float(self._get_grad_norm(model)))
                    break
                clipped = self._clip_grad_norm(model) if self.args.max_grad_norm > 0 else None
                norms.append(float(self._get_grad_norm(model, clipped)))
                self.optimizer.step()
                model.zero_grad()
        self._log_metrics({"updates": len(plan)})
        if plan:
            size = self.args.per_device_train_batch_size
            self._log_metrics({"grad_norm_mean": fmean(norms), "padding": padding(shares, size)})
        return torch.stack(losses).mean()

    def _backward(self, model: torch.nn.Module, share: list[Row]) -> torch.Tensor:
        """Gradient of one mini-batch; this process's part of its loss times their number."""
        tokens, rows = self.accelerator.reduce(
            torch.tensor(
                [sum(row.tokens for row in share), sum(row.counts for row in share)],
                dtype=torch.float64,
                device=self.accelerator.device,
            ),
            reduction="sum",
        ).tolist()
        world = self.accelerator.num_processes
        pieces = list(microbatches(share, self.args.per_device_train_batch_size))
        total = torch.zeros((), device=self.args.device)
        for i, piece in enumerate(pieces):
            last = i == len(pieces) - 1
            own_tokens = sum(row.tokens for row in piece)
            batch = self._collate(piece)
            # TRL divides by the tokens of the micro-batch (any loss by token) or by its rows;
            # `loss_scale` turns that into the mean over the global mini-batch, of which processes
            # then average their parts.
            batch["num_items_in_batch"] = torch.tensor(
                float(own_tokens * world * self.args.steps_per_generation),
                device=self.accelerator.device,
            )
            if self.loss_type in LOSSES_BY_TOKEN:
                batch["loss_scale"] = torch.tensor(own_tokens * world / max(tokens, 1.0))
            else:
                batch["loss_scale"] = torch.tensor(len(piece) * world / max(rows, 1.0))
            self.accelerator.gradient_state._set_sync_gradients(last)
            with self._accumulating(model, last):
                # past GRPOTrainer, to the training step of transformers: autocast, backward,
                # clearing of caches
                total += super(GRPOTrainer, self).training_step(model, batch, None)
        return total

    def _accumulating(
        self, model: torch.nn.Module, last: bool
    ) -> contextlib.AbstractContextManager[None]:
        """Synchronise gradients with the last micro-batch, by the rule of transformers' loop."""
        if (
            last
            or self.accelerator.distributed_type == DistributedType.DEEPSPEED
            or self.accelerator.gradient_state.plugin_kwargs.get("sync_each_batch", False)
        ):
            return contextlib.nullcontext()
        return cast(
            "contextlib.AbstractContextManager[None]", self.accelerator.no_sync(model=model)
        )

    def _prepare_inputs(self, generation_batch: Batch) -> Batch:
        """Micro-batches arrive ready."""
        return generation_batch

    def _compute_loss(self, model: torch.nn.Module, inputs: Batch) -> torch.Tensor:
        scale = inputs.pop("loss_scale")
        return cast(torch.Tensor, super()._compute_loss(model, inputs) * scale)

    def _get_per_token_logps_and_entropies(
        self,
        model: torch.nn.Module,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        logits_to_keep: int,
        compute_entropy: bool = False,
        compute_aux_loss: bool = False,
        **others: object,
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
        """Ours on CPUs, where TRL's fused head gains nothing and scores every prompt token."""
        unwrapped = self.accelerator.unwrap_model(model)
        on_cpu = self.accelerator.device.type == "cpu" and not self._sharded
        if compute_aux_loss or not on_cpu or not can_read(unwrapped):
            return cast(
                "tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]",
                super()._get_per_token_logps_and_entropies(
                    model,
                    input_ids,
                    attention_mask,
                    logits_to_keep,
                    compute_entropy=compute_entropy,
                    compute_aux_loss=compute_aux_loss,
                    **others,
                ),
            )
        with self.accelerator.autocast():
            logprobs, entropy = completion_logprobs(
                model,
                unwrapped,
                input_ids,
                attention_mask,
                logits_to_keep,
                temperature=self.temperature,
                entropy_gradient=self._entropy_bonus_enabled,
            )
        return logprobs, entropy if compute_entropy else None, None

    @property
    def _sharded(self) -> bool:
        return bool(self._dist.is_zero3 or self._dist.is_fsdp)

    def _collate(self, rows: Sequence[Row]) -> Batch:
        return collate(rows, self._tokenizer.pad_token_id, self.accelerator.device)

    def _sum_over_processes(self, count: float) -> float:
        counts = torch.tensor(float(count), device=self.accelerator.device)
        return float(self.accelerator.reduce(counts, reduction="sum"))

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


def _clock(length: int) -> Dataset:
    """Rows that only count: transformers wants a data set, the tasks come from the schedule."""
    return Dataset.from_dict({"prompt": [""] * length})


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return fmean(known) if known else math.nan


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
