"""Updates: an optimizer step per mini-batch, on its exact mean, through TRL's loss."""

from __future__ import annotations

import contextlib
from statistics import fmean
from typing import cast

import torch
from accelerate.utils import DistributedType
from trl import GRPOTrainer

from milegpo_algo.batch import Row, microbatches, padding
from milegpo_algo.config import LOSSES_BY_TOKEN
from milegpo_algo.trainer.clock import Batch
from milegpo_algo.trainer.logprobs import LogProbs


class Updates(LogProbs):
    """Trains on rows."""

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
