"""When a run ends before its time, and what it leaves to go on from.

A checkpoint holds model, optimizer, schedule and random numbers (transformers'), critic and place
in the stream of tasks (ours); resuming from it gives the weights of a run that was never stopped.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import torch
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_utils import TrainOutput

from milegpo_algo.trainer.resume import Progress, StopRequest, last_checkpoint
from milegpo_algo.trainer.updates import Updates


class Stopping(Updates):
    """Stops and goes on.

    Attributes:
        stop_request: by a signal.
        stopped: why training ended before `max_steps`, or None.
    """

    stop_request: StopRequest
    stopped: str | None

    def train(self, *args: object, **kwargs: object) -> TrainOutput:
        """Train as transformers does; SIGTERM or SIGINT end it after an iteration, resumably.

        Afterwards `stopped` says why training ended before `max_steps`, or is None.
        """
        self.stopped = None
        with self.stop_request.listening():
            output: TrainOutput = super().train(*args, **kwargs)
        self._say_why()
        return output

    def _say_why(self) -> None:
        if self.stopped is not None and self.accelerator.is_main_process:
            checkpoint = last_checkpoint(Path(self.args.output_dir))
            print(
                f"Stopped after iteration {self.state.global_step}: {self.stopped}. To continue: "
                f"resume_from_checkpoint={checkpoint}"
            )

    def _count_flat(self, summary: Mapping[str, float]) -> None:
        """Count iterations in a row from which nothing can be learnt."""
        nothing = (
            summary["rows"] == 0
            or summary["zero_advantage"] == 1.0
            or summary["cut_replies"] == 1.0
            or summary.get("clip_ratio/region_mean") == 1.0
        )
        self.progress = replace(self.progress, flat=self.progress.flat + 1 if nothing else 0)

    def _why_stop(self) -> str | None:
        """Say why training ends here, the same on every process."""
        number = self.stop_request.signal
        if self._sum_over_processes(number is not None) > 0:
            self.stopped = "asked to" if number is None else signal.Signals(number).name
        elif 0 < self.args.flat_patience <= self.progress.flat:
            self.stopped = (
                f"nothing to learn from in {self.progress.flat} iterations: every advantage 0, "
                "every reply cut, or every ratio clipped (zero_advantage, cut_replies and "
                "clip_ratio in metrics.jsonl; flat_patience is the limit)"
            )
        return self.stopped

    def _save_checkpoint(self, model: torch.nn.Module, trial: object) -> None:
        super()._save_checkpoint(model, trial)
        self.accelerator.wait_for_everyone()  # others write their random numbers and shards
        if self.args.should_save:
            checkpoint = Path(self.args.output_dir) / f"checkpoint-{self.state.global_step}"
            self._save_critic(checkpoint)
            self.progress.save(checkpoint)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        if checkpoint is not None:
            self.progress = Progress.load(Path(checkpoint))
            self._load_critic(Path(checkpoint))
        super()._load_optimizer_and_scheduler(checkpoint)


class StopWhere(TrainerCallback):
    """Ends training after an iteration, with a checkpoint, where there is a reason to."""

    def __init__(self, why: Callable[[], str | None]) -> None:
        self._why = why

    def on_step_end(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **_: object,
    ) -> None:
        """Ask whether there is a reason."""
        if self._why() is not None:
            control.should_save = control.should_training_stop = True
