"""How long an iteration of training takes, here and in TRL's own trainer: see benches.trainer."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from datasets import Dataset
from transformers import AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

from baselines.demonstrations import demonstrate, expert_for
from baselines.environments import Place
from baselines.tiny_policy import TinyShape, build_model, train_tokenizer
from baselines.warm_start import WarmStart, warm_start
from milegpo_algo.config import MultiTurnConfig
from milegpo_algo.rollout.collect import Pool
from milegpo_algo.rollout.hf_backend import ChatCodec
from milegpo_algo.trainer import MultiTurnTrainer
from milegpo_envs.reports import Cell, Report, resident

ENV = "milegpo/ALFWorld-v0"
SETTINGS: Mapping[str, object] = {
    "size": "small",
    "task_types": ["pick_and_place_simple", "look_at_obj_in_light"],
}
MODEL_WORK = ("generation", "old_logprobs", "reference", "values", "update")
HALF_BILLION = TinyShape(
    hidden=896, layers=24, heads=14, key_value_heads=2, intermediate=4864, positions=32768
)
REPLY = 24  # tokens at most
GROUP = 8
MICRO_TOKENS = 8192  # in a backward pass of TRL's


@dataclass(frozen=True)
class Measured:
    """One iteration: steps trained, seconds, and memory at its peak."""

    steps: int
    seconds: float
    megabytes: float
    outside: float | None = None
    padding: float | None = None


def report(options: argparse.Namespace) -> Report:
    """An iteration of ours and of TRL's at every horizon."""
    model = options.model or _model(Path(options.cache))
    rows: list[tuple[Cell, ...]] = []
    for horizon in options.horizons:
        ours = _quietly(partial(measure_ours, model, horizon, options))
        theirs = None
        if not options.ours_only:
            theirs = _quietly(partial(measure_trl, model, horizon, options))
        rows.append(_row("ours", horizon, ours, theirs))
        if theirs is not None:
            rows.append(_row("TRL's", horizon, theirs, None))
    return Report(
        title=f"Training, {options.tasks} x {GROUP} episodes an iteration, {_clock_name()}",
        columns=(
            *("what", "horizon", "steps", "seconds", "steps/s", "times"),
            *("other %", "padding %", "MB"),
        ),
        rows=tuple(rows),
        notes=(
            "Times: steps a second over TRL's. Other: all that is not model work, that is "
            "environment, tokenising, credit, batching, logging.",
            "MB: of GPU memory at its peak, or of this process after the iteration.",
            *(() if torch.cuda.is_available() else ("No GPU here: its table was not measured.",)),
        ),
    )


def _row(name: str, horizon: int, one: Measured, other: Measured | None) -> tuple[Cell, ...]:
    pace = one.steps / one.seconds
    return (
        name,
        float(horizon),
        float(one.steps),
        one.seconds,
        pace,
        None if other is None else pace / (other.steps / other.seconds),
        None if one.outside is None else 100 * one.outside,
        None if one.padding is None else 100 * one.padding,
        one.megabytes,
    )


def _place(horizon: int, history: int = 2) -> Place:
    return Place(ENV, SETTINGS, horizon, history, "compact")


def _model(cache: Path) -> str:
    """A model to measure: warm-started for a minute, or of a real size and random."""
    place = _place(12)
    if not torch.cuda.is_available():
        brief = WarmStart(episodes=300, steps=200)
        return str(warm_start(lambda: place.env("train"), ENV, brief, cache))
    folder = cache / "half_billion"
    if not folder.is_dir():
        played = demonstrate(
            place.env("train"),
            expert_for(ENV),
            place.panel("train").task_ids[:100],
            noise=0.3,
            seed=0,
            style="compact",
            history=2,
        )
        texts = (f"{d.messages[0]['content']}\n{d.reply}" for steps, _ in played for d in steps)
        tokenizer = train_tokenizer(texts, 700)
        build_model(tokenizer, HALF_BILLION, 0).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    return str(folder)


# ---- ours -----------------------------------------------------------------------------------


def measure_ours(model: str, horizon: int, options: argparse.Namespace) -> Measured:
    """One iteration of `MultiTurnTrainer`, after one that warms up."""
    place = _place(horizon)
    pool = place.pool("train", options.tasks * GROUP)
    with tempfile.TemporaryDirectory() as folder:
        args = MultiTurnConfig(
            **_shared(folder),
            estimator="milegpo",
            recipe="alfworld",
            tasks_per_iteration=options.tasks,
            num_generations=GROUP,
            mini_batch_size=256,
            per_device_train_batch_size=options.micro,
            max_prompt_tokens=1024,
            max_steps=2,
        )
        trainer = MultiTurnTrainer(model, pool, args, place.panel("train").task_ids)
        trainer.train()
        record = json.loads((Path(folder) / "metrics.jsonl").read_text().splitlines()[-1])
    pool.close()
    total = record["seconds/total"]
    inside = sum(record.get(f"seconds/{name}", 0.0) for name in MODEL_WORK)
    return Measured(
        int(record["rows"]), total, _megabytes(), 1.0 - inside / total, record["padding"]
    )


# ---- TRL's ----------------------------------------------------------------------------------


@dataclass
class Transcripts:
    """A `rollout_func`: whole episodes, one sequence each.

    steps: how many were played.
    """

    pool: Pool
    codec: ChatCodec
    steps: int = 0

    def __call__(
        self, prompts: list[list[dict[str, str]]], trainer: GRPOTrainer
    ) -> dict[str, object]:
        """Play the named tasks and return their sequences; observations are masked."""
        starts = self.pool.reset([prompt[0]["content"] for prompt in prompts])
        first = [self.codec.encode(messages) for messages, _ in starts]
        said: list[list[int]] = [[] for _ in prompts]
        mask: list[list[int]] = [[] for _ in prompts]
        won = [0.0] * len(prompts)
        alive = list(range(len(prompts)))
        while alive:
            ids, _ = trainer._generate_single_turn([first[i] + said[i] for i in alive], None, {}, 1)
            for i, reply in zip(alive, ids, strict=True):
                said[i] += reply
                mask[i] += [1] * len(reply)
            replies = {i: self.codec.decode(reply) for i, reply in zip(alive, ids, strict=True)}
            self.steps += len(alive)
            alive = []
            for i, (messages, _, ended, cut, info) in self.pool.step(replies).items():
                if ended or cut:
                    won[i] = float(bool(info["success"]))
                    continue
                seen = self.codec.encode(messages)
                said[i] += seen
                mask[i] += [0] * len(seen)
                alive.append(i)
        return {
            "prompt_ids": first,
            "completion_ids": said,
            "logprobs": None,
            "env_mask": mask,
            "won": won,
        }


def _won(won: Sequence[float], **_: object) -> list[float]:
    return list(won)


def measure_trl(model: str, horizon: int, options: argparse.Namespace) -> Measured:
    """One generation batch of TRL's trainer and its optimizer step, after one that warms up."""
    place = _place(horizon, history=0)
    episodes = options.tasks * GROUP
    pool = place.pool("train", episodes)
    tokenizer = AutoTokenizer.from_pretrained(model, padding_side="left")
    play = Transcripts(pool, ChatCodec(tokenizer))
    tasks = place.panel("train").task_ids[: 2 * options.tasks]
    longest = horizon * (REPLY + 100)
    micro = max(n for n in (1, 2, 4, 8) if n == 1 or n * longest <= MICRO_TOKENS)
    with tempfile.TemporaryDirectory() as folder:
        args = GRPOConfig(
            **_shared(folder),
            loss_type="dapo",
            beta=0.01,
            num_generations=GROUP,
            per_device_train_batch_size=micro,
            generation_batch_size=episodes,
            gradient_accumulation_steps=episodes // micro,
            max_steps=2,
            logging_steps=1,
            lr_scheduler_type="constant",
        )
        marks: list[tuple[float, int]] = []
        trainer = _Marked(
            model=model,
            reward_funcs=_won,
            args=args,
            train_dataset=Dataset.from_list(
                [{"prompt": [{"role": "user", "content": task}]} for task in tasks]
            ),
            processing_class=tokenizer,
            rollout_func=play,
        )
        trainer.marks, trainer.play = marks, play
        trainer.train()
    pool.close()
    (start, before), (end, after) = marks[-2:]
    return Measured(after - before, end - start, _megabytes())


class _Marked(GRPOTrainer):  # type: ignore[misc]  # trl ships no types
    """Notes time and steps played at every log line, which follows an optimizer step."""

    marks: list[tuple[float, int]]
    play: Transcripts

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        if "loss" in logs:
            self.marks.append((time.perf_counter(), self.play.steps))
        super().log(logs, start_time)


# ---- both -----------------------------------------------------------------------------------


def _shared(folder: str) -> dict[str, Any]:  # Any: keyword arguments
    on_gpu = torch.cuda.is_available()
    return {
        "output_dir": folder,
        "max_completion_length": REPLY,
        "learning_rate": 1e-5,
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "use_cpu": not on_gpu,
        "bf16": on_gpu,
        "gradient_checkpointing": False,
        "seed": 0,
    }


def _megabytes() -> float:
    if torch.cuda.is_available():
        peak = torch.cuda.max_memory_allocated() / 2**20
        torch.cuda.reset_peak_memory_stats()
        return peak
    return resident()


def _clock_name() -> str:
    return "seconds by the clock" if torch.cuda.is_available() else "CPU seconds of one process"


def _quietly(measure: Callable[[], Measured]) -> Measured:
    """Measure on one thread, by CPU time where there is no GPU, with nothing printed."""
    with _one_thread(), mock.patch("builtins.print"):
        if torch.cuda.is_available():
            return measure()
        with mock.patch("time.perf_counter", time.process_time):
            return measure()


@contextmanager
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
