"""Log-probs of the sampling and of the reference policy, computed once for an iteration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import fmean
from typing import cast

import numpy as np
import torch
from trl.models.utils import disable_gradient_checkpointing
from trl.trainer.utils import use_adapter

from milegpo_algo.batch import Floats, Row, guard_reference, microbatches
from milegpo_algo.rollout.prefix import can_read
from milegpo_algo.rollout.scoring import completion_logprobs
from milegpo_algo.trainer.clock import Batch
from milegpo_algo.trainer.sampling import Sampling


class LogProbs(Sampling):
    """Scores replies."""

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
