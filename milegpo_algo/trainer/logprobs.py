"""Log-probs of the sampling and of the reference policy, computed once for an iteration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

import numpy as np
import torch
from trl.models.utils import disable_gradient_checkpointing
from trl.trainer.utils import use_adapter

from milegpo_algo.batch import (
    Floats,
    Row,
    Share,
    guard_reference,
    microbatches,
    truncated_importance,
)
from milegpo_algo.rollout.prefix import can_read
from milegpo_algo.rollout.scoring import completion_logprobs
from milegpo_algo.trainer.clock import IMAGE_COLUMNS, Batch
from milegpo_algo.trainer.sampling import Playing

_Score = Callable[..., tuple[torch.Tensor, object, object]]


class LogProbs(Playing):
    """Scores replies."""

    @torch.no_grad()
    def _with_logprobs(self, parts: list[Share]) -> list[Share]:
        """The shares with old and reference log-probs, computed once for the iteration."""
        rows = [row for part in parts for row in part.rows]
        if not rows:
            return parts
        with disable_gradient_checkpointing(self.model, self.args.gradient_checkpointing_kwargs):
            rows = self._with_old_logprobs(rows)
            ref = self._reference_logprobs(rows) if self.beta != 0.0 else None
        if ref is not None:
            rows = self._with_reference(rows, ref)
        filled = iter(rows)
        return [replace(part, rows=[next(filled) for _ in part.rows]) for part in parts]

    def _with_reference(self, rows: list[Row], reference: list[Floats]) -> list[Row]:
        done, cuts = [], 0
        for row, values in zip(rows, reference, strict=True):
            guarded, cut = guard_reference(
                values, cast(Floats, row.old_logprobs), self.args.kl_limit
            )
            cuts += cut if row.counts else 0
            done.append(replace(row, ref_logprobs=guarded))
        self._log_metrics({"kl_cuts": self._sum_over_processes(cuts)})
        return done

    def _with_old_logprobs(self, rows: list[Row]) -> list[Row]:
        """Old log-probs as sampled, or recomputed, then perhaps with weights for the difference."""
        sampled = [_sampled(row) for row in rows]
        missing = sum(
            int((~np.isfinite(values)).sum())
            for row, values in zip(rows, sampled, strict=True)
            if row.counts
        )
        total = self._sum_over_processes(missing)
        self._log_metrics({"unknown_logprobs": total})
        recompute = not self.args.use_sampled_logprobs or total > 0
        old = self._recomputed(rows if recompute else _middle(rows, self._micro))
        if not recompute:
            return [replace(row, old_logprobs=s) for row, s in zip(rows, sampled, strict=True)]
        if self.args.use_sampled_logprobs:  # what is unknown gets a ratio of exactly 1
            return [
                replace(row, old_logprobs=np.where(np.isfinite(s), s, o))
                for row, s, o in zip(rows, sampled, old, strict=True)
            ]
        rows = [replace(row, old_logprobs=o) for row, o in zip(rows, old, strict=True)]
        return self._with_importance(rows, sampled) if self._corrects else rows

    def _recomputed(self, rows: Sequence[Row]) -> list[Floats]:
        with self.watch.phase("old_logprobs"):
            old = self._score(rows, lambda batch: self._logprobs(self.model, batch))
        self._log_gap(rows, old)
        return old

    def _with_importance(self, rows: list[Row], sampled: list[Floats]) -> list[Row]:
        weights = [
            truncated_importance(cast(Floats, row.old_logprobs), s, self.args.importance_cap)[0]
            for row, s in zip(rows, sampled, strict=True)
        ]
        flat = _together([w for row, w in zip(rows, weights, strict=True) if row.counts])
        capped = int((flat >= self.args.importance_cap).sum())
        total, capped, count = self._of_processes([flat.sum(), capped, len(flat)]).sum(0)
        if count:
            self._log_metrics(
                {"importance/mean": total / count, "importance/capped": capped / count}
            )
        return [replace(row, importance=w) for row, w in zip(rows, weights, strict=True)]

    @property
    def _corrects(self) -> bool:
        return self.args.importance_correction == "token_truncate"

    @property
    def _micro(self) -> int:
        return int(self.args.per_device_train_batch_size)

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
        first: dict[tuple[tuple[bytes, ...], int], int] = {}
        source = [
            first.setdefault((row.content, i if self._sharded else 0), i)
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
        score = cast(_Score, self._get_per_token_logps_and_entropies)
        logprobs, _, _ = score(
            model,
            torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1),
            torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1),
            batch["completion_ids"].size(1),
            **{name: batch[name] for name in IMAGE_COLUMNS if name in batch},
        )
        return logprobs

    def _log_gap(self, rows: Sequence[Row], recomputed: Sequence[Floats]) -> None:
        """Log how far training's log-probs are from those recorded while sampling, in nats."""
        gap = _together(
            [
                np.abs(new - _sampled(row))
                for row, new in zip(rows, recomputed, strict=True)
                if row.counts
            ]
        )
        gap = gap[np.isfinite(gap)]
        every = self._of_processes([gap.sum(dtype=np.float64), len(gap), gap.max(initial=0.0)])
        total, count, _ = every.sum(0)
        if count:
            self._log_metrics(
                {"sampling_gap/mean": total / count, "sampling_gap/max": every[:, 2].max()}
            )

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


def _sampled(row: Row) -> Floats:
    """Log-probs as the engine reported them [C], NaN where it did not."""
    if row.sampled_logprobs is None:
        return np.full(len(row.completion), np.nan, dtype=np.float32)
    return row.sampled_logprobs


def _together(parts: Sequence[Floats]) -> Floats:
    """All numbers of several arrays; of none, none."""
    return np.concatenate([np.zeros(0, np.float32), *parts])


def _middle(rows: Sequence[Row], size: int) -> Sequence[Row]:
    """One micro-batch of middling length, to measure the gap on."""
    pieces = microbatches(sorted(rows, key=lambda row: row.order), size)
    return pieces[len(pieces) // 2]
