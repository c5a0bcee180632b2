"""A line an iteration on the terminal, above the progress bar, instead of transformers' dicts."""

from __future__ import annotations

from collections.abc import Mapping

from tqdm.auto import tqdm  # type: ignore[import-untyped]  # no stubs among our dependencies
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

_EVERY = 25  # lines between headings
# heading, name among the metrics, format
_COLUMNS = (
    ("success", "success", ".1%"),
    ("score", "score", ".3f"),
    ("steps", "episode_length", ".1f"),
    ("format", "format_valid", ".1%"),
    ("valid", "action_valid", ".1%"),
    ("rows", "rows", ".0f"),
    ("no adv.", "zero_advantage", ".1%"),
    ("padding", "padding", ".1%"),
    ("loss", "loss", ".4f"),
    ("kl", "kl", ".4f"),
    ("entropy", "entropy", ".3f"),
    ("gap", "sampling_gap/mean", ".1e"),
    ("seconds", "seconds/total", ".1f"),
)
_WIDTH = 8


def heading() -> str:
    """The table's first line."""
    return f"{'':>9} " + " ".join(f"{name:>{_WIDTH}}" for name, _, _ in _COLUMNS)


def line(title: str, metrics: Mapping[str, object], prefix: str = "") -> str:
    """One line of the table; what is not known is a dash."""
    cells = []
    for _, name, style in _COLUMNS:
        value = metrics.get(prefix + name)
        cells.append(format(value, style) if isinstance(value, int | float) else "-")
    return f"{title:>9} " + " ".join(f"{cell:>{_WIDTH}}" for cell in cells)


class IterationTable(TrainerCallback):
    """A bar of iterations, if wanted, and the table above it."""

    def __init__(self, bar: bool) -> None:
        self._wanted = bar
        self._bar: tqdm | None = None
        self._lines = 0

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Draw the bar."""
        if self._wanted and state.is_world_process_zero:
            self._bar = tqdm(total=state.max_steps, initial=state.global_step, unit="iteration")

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Move the bar."""
        if self._bar is not None:
            self._bar.update(state.global_step - self._bar.n)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Close the bar."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, object] | None = None,
        **_: object,
    ) -> None:
        """Write a line about an iteration, or an evaluation."""
        if not state.is_world_process_zero or logs is None:
            return
        if "eval_success" in logs:
            self._write(line(f"eval {state.global_step}", logs, "eval_"))
        elif "episodes" in logs:
            if self._lines % _EVERY == 0:
                self._write(heading())
            self._lines += 1
            self._write(line(f"{state.global_step}/{state.max_steps}", logs))

    def _write(self, text: str) -> None:
        if self._bar is not None:
            self._bar.write(text)
        else:
            print(text, flush=True)
