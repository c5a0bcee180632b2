"""Measure an iteration of training, and TRL's own trainer on the same environment and model.

    python -m scripts.bench trainer                       # horizons 10, 25, 50
    python -m scripts.bench trainer --model FOLDER --tasks 16 --horizons 50

Ours: a row a step, its prompt the task, two past steps and the observation. TRL's: `GRPOTrainer`
with a `rollout_func`, a sequence an episode, replies and observations in turn (observations
masked, no history in them, since the sequence is the history); its environments step in the same
pool, side by side, and its replies come from its own batched generate. Both: KL to a reference,
one optimizer step per 256 rows or per batch of episodes, backward passes of --micro rows or of at
most 8,192 tokens.

On CPUs the policy is tiny and warm-started for a minute, once; times are CPU seconds of this
process, so that neighbours count little. With a GPU it is a random model of 0.5 B in bf16 and times
are by the clock.
"""

from __future__ import annotations

import argparse

from milegpo_envs.reports import Advance, Report

HELP = "an iteration of training by phase, and TRL's own trainer on the same task"


def add_options(parser: argparse.ArgumentParser) -> None:
    """What to measure, and on which model."""
    parser.add_argument("--horizons", type=int, nargs="+", default=[10, 25, 50])
    parser.add_argument("--tasks", type=int, default=2, help="tasks, of 8 rollouts each")
    parser.add_argument("--model", help="folder of a chat model; default: a tiny one, made here")
    parser.add_argument("--cache", default="runs/warm_start", help="where that is kept")
    parser.add_argument("--micro", type=int, default=32, help="rows in a backward pass of ours")
    parser.add_argument("--ours_only", action="store_true", help="leave TRL's trainer out")


def run(options: argparse.Namespace, advance: Advance) -> Report:
    """An iteration of ours and of TRL's at every horizon."""
    from baselines.trainer_pace import report  # torch and trl take seconds to import

    return report(options)
