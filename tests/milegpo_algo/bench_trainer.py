"""Rows per second of training by phase, on one thread and a half-million-parameter model.

    OMP_NUM_THREADS=1 python -m tests.milegpo_algo.bench_trainer --micro 16 --iterations 3

Random weights, the House in compact prompts (about 105 tokens), replies cut at 16 tokens, 16 x 8
episodes of 12 steps: 1,536 rows an iteration. Seconds are CPU seconds of this process, so that
other work on the machine disturbs little.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from unittest import mock

import torch

from milegpo_algo.config import MultiTurnConfig
from milegpo_algo.trainer import MultiTurnTrainer
from tests.milegpo_algo.tiny import TASK_IDS, house_pool, save_tiny

PHASES = (
    "generation",
    "tokenising",
    "environment",
    "credit",
    "old_logprobs",
    "reference",
    "update",
)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--micro", type=int, default=16, help="rows in a backward pass")
    parser.add_argument("--rows", type=int, default=128, help="rows sampled at once")
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--profile", action="store_true")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch("time.perf_counter", time.process_time),
    ):
        args = MultiTurnConfig(
            output_dir=f"{folder}/run",
            max_steps=chosen.iterations,
            per_device_train_batch_size=chosen.micro,
            generation_rows=chosen.rows,
            max_completion_length=16,
            learning_rate=1e-4,
            save_strategy="no",
            disable_tqdm=True,
            bf16=chosen.bf16,
            use_cpu=True,
        )
        model = save_tiny(Path(folder) / "model", hidden=128, layers=chosen.layers)
        trainer = MultiTurnTrainer(model, house_pool(128), args, TASK_IDS)
        if chosen.profile:
            with torch.profiler.profile() as profile:
                trainer.train()
            table = profile.key_averages()
            print(
                table.table(sort_by="self_cpu_time_total", row_limit=30, max_name_column_width=45)
            )
        else:
            trainer.train()
        lines = (Path(folder) / "run" / "metrics.jsonl").read_text().splitlines()
    for record in map(json.loads, lines):
        total, rows = record["seconds/total"], record["rows"]
        parts = {name: record[f"seconds/{name}"] for name in PHASES}
        parts["other"] = total - sum(parts.values())
        print(
            f"{rows:.0f} rows, {record['prompt_tokens']:.0f} + {record['completion_tokens']:.0f} "
            f"tokens, {total:.2f} s: {rows / total:.0f} rows/s;",
            ", ".join(f"{name} {seconds / total:.0%}" for name, seconds in parts.items()),
        )


if __name__ == "__main__":
    main()
