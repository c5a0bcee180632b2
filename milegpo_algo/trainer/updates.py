"""Updates: an optimizer step per mini-batch, on its exact mean, through TRL's loss."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from statistics import fmean
from typing import cast

import torch
from accelerate.utils import DistributedType
from trl import GRPOTrainer

from milegpo_algo.batch import Share, microbatches, token_slots
from milegpo_algo.config_checks import LOSSES_BY_TOKEN
from milegpo_algo.trainer.clock import Batch
from milegpo_algo.trainer.values import Values


class Diverged(RuntimeError):
    """A gradient is not a number, or without bound: a step along it would destroy the policy."""


class Updates(Values):
    """Trains on rows."""

    entropy_coef: float
    _value_sum = 0.0

    def _update(self, model: torch.nn.Module, parts: list[Share]) -> torch.Tensor:
        """Every mini-batch is an optimizer step, the last one left to the caller; mean loss.

        Raises:
            Diverged: before the step that would destroy the policy, on every process.
        """
        plan = [part for _ in range(self.num_iterations) for part in parts if part.rows]
        losses, norms = [torch.zeros((), device=self.args.device)] if not plan else [], []
        with self.watch.phase("update"):
            for k, part in enumerate(plan):
                losses.append(self._backward(model, part))
                if self.critic is not None:
                    self._critic_step()
                last = k == len(plan) - 1
                clips = self.args.max_grad_norm > 0 and not last
                clipped = self._clip_grad_norm(model) if clips else None
                norms.append(float(self._get_grad_norm(model, clipped)))
                self._check_gradient(norms[-1], k + 1, len(plan))
                if not last:
                    self.optimizer.step()
                    model.zero_grad()
        self._log_metrics({"updates": len(plan)})
        if plan:
            tokens, places = self._of_processes(
                token_slots([p.rows for p in parts], self._micro)
            ).sum(0)
            self._log_metrics({"grad_norm_mean": fmean(norms), "padding": 1.0 - tokens / places})
        return torch.stack(losses).mean()

    def _check_gradient(self, norm: float, step: int, steps: int) -> None:
        if math.isfinite(norm) or self.accelerator.scaler is not None:  # which skips such a step
            return
        raise Diverged(
            f"Iteration {self.state.global_step + 1}, step {step} of {steps}: the gradient's norm "
            f"is {norm}. Lower learning_rate, or set max_grad_norm, and resume from a checkpoint "
            "before it (resume_from_checkpoint)."
        )

    def _backward(self, model: torch.nn.Module, part: Share) -> torch.Tensor:
        """Gradient of one mini-batch; this process's part of its loss times their number."""
        world = self.accelerator.num_processes
        per_token = world / max(part.tokens, 1)
        total = torch.zeros((), device=self.args.device)
        value = torch.zeros((), device=self.args.device)
        pieces = microbatches(part.rows, self._micro)
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
            by_token = self.loss_type in LOSSES_BY_TOKEN
            scale = (
                own_tokens * world / max(part.tokens, 1)
                if by_token
                else len(piece) * world / max(part.count, 1)
            )
            batch["loss_scale"] = torch.tensor(scale)
            batch["value_scale"] = torch.tensor(per_token)
            self.accelerator.gradient_state._set_sync_gradients(last)
            with self._accumulating(model, last), self._entropy_by_token(own_tokens, part, scale):
                # past GRPOTrainer, to the training step of transformers: autocast, backward,
                # clearing of caches
                total += super(GRPOTrainer, self).training_step(model, batch, None)
            if self.critic is not None and self.critic.trunk is not None:
                with self._accumulating(self._critic_model, last):
                    value += self._separate_backward(batch, per_token)
        if self.critic is not None:
            value += self._value_sum * per_token
            self._value_sum = 0.0
            self._log_metrics({"value_loss": self._sum_over_processes(float(value)) / world})
        return total

    @contextlib.contextmanager
    def _entropy_by_token(self, own: int, part: Share, scale: float) -> Iterator[None]:
        """Make the entropy bonus, which TRL averages over a micro-batch, a mean over all tokens.

        A loss by token scales it so already; a loss by row would weigh it by rows.
        """
        if not self._entropy_bonus_enabled or scale == 0 or self.args.use_adaptive_entropy:
            yield
            return
        kept = self.entropy_coef
        world = self.accelerator.num_processes
        self.entropy_coef = kept * (own * world / max(part.tokens, 1)) / scale
        try:
            yield
        finally:
            self.entropy_coef = kept

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
        scale, value_scale = inputs.pop("loss_scale"), inputs.pop("value_scale")
        loss = cast(torch.Tensor, super()._compute_loss(model, inputs) * scale)
        if self.critic is None or self.critic.trunk is not None:
            return loss
        value = self._shared_value_loss(inputs)
        self._value_sum += float(value.detach())
        return loss + self.args.value_coefficient * value_scale * value
