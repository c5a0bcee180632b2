"""The optimizer loop of transformers as a clock: one empty batch, one step, is one iteration.

Leaves out what happens in an iteration.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import cast

import numpy as np
import torch
from datasets import Dataset
from numpy.typing import NDArray
from torch.utils.data import DataLoader, SequentialSampler
from transformers import TrainerControl
from trl import GRPOTrainer

from milegpo_algo.batch import Row, collate
from milegpo_algo.config import MultiTurnConfig
from milegpo_algo.rollout.metrics import Stopwatch
from milegpo_algo.rollout.vision import IMAGE_INPUTS, MODALITIES, Vision
from milegpo_algo.trainer.resume import Progress

Batch = dict[str, torch.Tensor]
Numbers = NDArray[np.float64]

IMAGE_COLUMNS = (*IMAGE_INPUTS, MODALITIES, "num_images")
"""What a batch has where its rows have images, under TRL's names."""


class Clock(GRPOTrainer):  # type: ignore[misc]  # trl ships no types
    """A GRPOTrainer whose data loader only counts iterations."""

    args: MultiTurnConfig
    control: TrainerControl
    watch: Stopwatch
    progress: Progress
    vision: Vision | None = None  # of a model that reads images

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

    def _log_metrics(self, metrics: dict[str, float]) -> None:
        for name, value in metrics.items():
            self._metrics["train"][name].append(value)

    @property
    def _sharded(self) -> bool:
        return bool(self._dist.is_zero3 or self._dist.is_fsdp)

    def _collate(self, rows: Sequence[Row]) -> Batch:
        batch = collate(rows, self._tokenizer.pad_token_id, self.accelerator.device)
        if self.vision is None:
            return batch
        ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
        if inputs := self.vision.inputs(ids, [row.images for row in rows]):
            # a list in TRL, which cuts the images of a batch by it
            counts = cast(torch.Tensor, [len(row.images) for row in rows])
            batch.update(inputs, num_images=counts)
        return batch

    def _sum_over_processes(self, count: float) -> float:
        return float(self._of_processes([count]).sum())

    def _of_processes(self, values: Sequence[float]) -> Numbers:
        """The same numbers of every process. [processes, values]."""
        device = self.accelerator.device
        precise = torch.float32 if device.type == "mps" else torch.float64
        mine = torch.tensor([list(values)], dtype=precise, device=device)
        numbers: Numbers = self.accelerator.gather(mine).cpu().double().numpy()
        return numbers


def ticks(length: int) -> Dataset:
    """Rows that only count: transformers wants a data set, the tasks come from the schedule."""
    return Dataset.from_dict({"prompt": [""] * length})


def mean(values: Sequence[float]) -> float:
    """Mean of the values that are numbers."""
    known = [value for value in values if not math.isnan(value)]
    return fmean(known) if known else math.nan
