"""Options of a training run: recipe file, environment, policy; beside the trainer's own.

Read from a recipe file, where an environment and a method of it may be named, then from the command
line, which wins.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trl import TrlParser

from baselines.place_options import PlaceOptions
from baselines.recipe_files import MAIN_JOB, Plan, read_plan
from milegpo_algo.config import MultiTurnConfig

# What tells the cells of a comparison apart, and where they are kept and shown.
_NOT_SHARED = frozenset(
    (
        *("seed", "estimator", "estimator_settings", "model", "warm_cache", "warm_start_only"),
        *("output_dir", "logging_dir", "run_name", "report_to", "disable_tqdm"),
        *("env_pool", "env_workers", "env_timeout", "ray_address"),
        *("resume_from_checkpoint", "environment", "method"),
    )
)
# What says nothing about how a row came about.
_NOT_TOLD = frozenset(
    ("output_dir", "logging_dir", "run_name", "report_to", "disable_tqdm", "resume_from_checkpoint")
)


@dataclass
class TrainOptions(PlaceOptions):
    """What is trained where; the trainer's own options follow."""

    method: str | None = field(
        default=None, metadata={"help": "Which of the methods that the recipe file names."}
    )
    train_split: str = field(default="train", metadata={"help": "Split to train on."})
    validation_split: str | None = field(
        default=None,
        metadata={
            "help": "Split to evaluate on while training, and to choose the best checkpoint on; "
            "None: eval_split."
        },
    )
    validation_size: int | None = field(
        default=None, metadata={"help": "Tasks of its panel; None: all."}
    )
    id_split: str | None = field(
        default=None,
        metadata={
            "help": "Split like the training tasks, such as valid_seen, on which the result is "
            "evaluated as well, for the gap to eval_split; None: not."
        },
    )
    id_size: int | None = field(default=None, metadata={"help": "Tasks of its panel; None: all."})
    model: str | None = field(
        default=None, metadata={"help": "Hub id or folder; None: warm start."}
    )
    lora_rank: int = field(
        default=0, metadata={"help": "Train an adapter of this rank on all linear layers; 0: none."}
    )
    warm_episodes: int = field(default=2000, metadata={"help": "Demonstrated episodes."})
    warm_noise: float = field(default=0.35, metadata={"help": "Share of random steps in them."})
    warm_steps: int = field(default=1500, metadata={"help": "Optimizer steps of the warm start."})
    warm_cache: str = field(default="runs/warm_start", metadata={"help": "Where it is kept."})
    warm_start_only: bool = field(
        default=False, metadata={"help": "Make and evaluate the policy to start from; no training."}
    )


@dataclass(frozen=True)
class Asked:
    """The options of a run.

    given: those that the recipe file or the command line named, as they were written.
    varied: those in which the methods of the recipe file differ.
    """

    options: TrainOptions
    config: MultiTurnConfig
    given: Mapping[str, object]
    varied: tuple[str, ...]

    @property
    def method(self) -> str:
        """The line of a table that the run belongs to."""
        return self.options.method or self.config.estimator

    def shared(self, everything: Mapping[str, object]) -> dict[str, object]:
        """Return what cells of one comparison share: all options but those that tell them apart."""
        left_out = {*_NOT_SHARED, *self.varied}
        return {name: value for name, value in everything.items() if name not in left_out}


def read_options(words: Sequence[str], parser: TrlParser) -> Asked:
    """Read the recipe file and the command line.

    Args:
        words: of the command line; ``--name=value`` is two of them.
        parser: of ``TrainOptions`` and ``MultiTurnConfig``.

    Raises:
        ValueError: a name in the file is unknown, or an option has a value that it cannot take.
        SystemExit: the command line has an unknown option.
    """
    split = _split(words)
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    early.add_argument("--config", type=Path, default=MAIN_JOB)
    early.add_argument("--environment")
    early.add_argument("--method")
    asked, _ = early.parse_known_args(split)
    plan = read_plan(asked.config)
    defaults = _defaults(plan, asked.environment, asked.method)
    left = _without_config(split)
    given = {**defaults, **_written(left)}
    shown = {"output_dir": "runs/train", "report_to": "none", **defaults}
    if unknown := parser.set_defaults_with_config(**shown):
        raise ValueError(f"{asked.config} has unknown options: {' '.join(unknown[::2])}.")
    options, config = parser.parse_args_into_dataclasses(left)
    told = {name: value for name, value in given.items() if name not in _NOT_TOLD}
    return Asked(options, config, told, plan.varied if asked.method else ())


def _defaults(plan: Plan, environment: str | None, method: str | None) -> dict[str, object]:
    if environment is None and "" not in plan.environments:
        raise ValueError(
            f"{plan.path} names several environments: choose one with --environment, of "
            f"{', '.join(plan.environments)}."
        )
    return plan.options(environment or "", method)


def _split(words: Sequence[str]) -> list[str]:
    return [
        part
        for word in words
        for part in (word.split("=", 1) if word.startswith("--") and "=" in word else [word])
    ]


def _without_config(words: Sequence[str]) -> list[str]:
    left = list(words)
    if "--config" in left:
        at = left.index("--config")
        del left[at : at + 2]
    return left


def _written(words: Sequence[str]) -> dict[str, object]:
    """Read options as they are written: one word or several."""
    found: dict[str, list[str]] = {}
    for word in words:
        if word.startswith("--"):
            found[word[2:].replace("-", "_")] = own = []
        elif found:
            own.append(word)
    return {name: own[0] if len(own) == 1 else own for name, own in found.items()}
