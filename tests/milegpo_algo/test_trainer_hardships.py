"""What a long run meets, through the whole trainer: it goes on, or stops and says why."""

from __future__ import annotations

import math
import multiprocessing
import os
import random
import signal
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from transformers import TrainerCallback

from milegpo_algo.batch import Share, collate
from milegpo_algo.rollout.collect import RolloutFailed
from milegpo_algo.trainer import Diverged
from milegpo_algo.trainer.resume import Progress, last_checkpoint
from milegpo_envs.pool import MakeEnv, ProcessPool
from milegpo_envs.wrappers import Prompted
from tests.milegpo_algo.lottery import LotteryPool
from tests.milegpo_algo.test_trainer import (
    TASKS,
    Spied,
    build,
    folder,
    lines,
    made_rows,
    one_thread,
    settings,
    trained_rows,
    untimed,
    weights,
)
from tests.milegpo_algo.tiny import TASK_IDS
from tests.toys import HORIZON, HOUSE_ID

__all__ = ["folder", "one_thread"]  # fixtures


def with_pool(folder, output, pool, tasks=TASKS, **changes) -> Spied:
    return Spied(folder, pool, settings(output, **changes), tasks)


def equal_weights(one: Spied, other: Spied) -> bool:
    theirs = weights(other)
    return all(torch.equal(value, theirs[name]) for name, value in weights(one).items())


# ---- environments ---------------------------------------------------------------------------


def test_a_killed_worker_costs_its_episodes_and_the_run_goes_on(folder, tmp_path):
    """Two workers, one is killed at the third step of iteration 1; iteration 2 has a new one."""
    make = MakeEnv(f"tests.toys:{HOUSE_ID}", wrappers=(partial(Prompted, style="compact"),))
    before = set(multiprocessing.active_children())

    class Mortal(ProcessPool):
        steps = 0

        def step(self, actions):
            self.steps += 1
            if self.steps == 3:
                mine = [w for w in multiprocessing.active_children() if w not in before]
                os.kill(mine[0].pid, signal.SIGKILL)
                mine[0].join()
            return super().step(actions)

    pool = Mortal(make, size=4, workers=2)
    changes = {"tasks_per_iteration": 2, "num_generations": 2, "max_prompt_tokens": 600}
    trainer = with_pool(folder, tmp_path, pool, TASK_IDS, max_steps=2, **changes)
    trainer.train()
    pool.close()
    first, second = lines(tmp_path / "metrics.jsonl")
    assert (first["stop/error"], first["episodes"], second["stop/error"]) == (0.5, 4, 0.0)
    assert first["rows"] == 2 * 3 + 2 * HORIZON
    assert sum(trained_rows(trainer.batches).values()) == first["rows"] + second["rows"]
    assert first["seconds/environment"] > 0


def test_environments_that_all_fail_end_the_run_with_the_first_error(folder, tmp_path):
    class Broken(LotteryPool):
        def _step(self, slot, reply):
            messages, reward, _, _, info = super()._step(slot, reply)
            return messages, reward, False, True, {**info, "error": "OSError: disk full"}

    with pytest.raises(RolloutFailed, match="disk full"):
        with_pool(folder, tmp_path, Broken(12)).train()


def test_halves_that_take_turns_train_the_same_weights(folder, tmp_path):
    plain, halved = (
        build(folder, tmp_path / str(n), rollout_halves=n, max_steps=2) for n in (1, 2)
    )
    for trainer in (plain, halved):
        trainer.train()
    ids = [
        [[step.completion_ids for step in e.steps] for e in trainer.episodes[0]]
        for trainer in (plain, halved)
    ]
    assert ids[0] == ids[1]
    records = [lines(tmp_path / n / "metrics.jsonl") for n in "12"]
    for mine, theirs in zip(*records, strict=True):
        assert mine["rows"] == theirs["rows"]
        assert mine["loss"] == pytest.approx(theirs["loss"], abs=1e-4)


# ---- replies --------------------------------------------------------------------------------


class Edited(Spied):
    """Changes every step of its rollouts before they are trained on."""

    edit: dict[str, object]

    def _rollout(self, iteration):
        self.episodes.append(
            [
                replace(e, steps=tuple(replace(step, **self.edit) for step in e.steps))
                for e in super()._rollout(iteration)
            ]
        )
        return self.episodes[-1]


def test_replies_without_a_single_token_train_nothing_and_lose_nothing(folder, tmp_path):
    trainer = Edited(folder, LotteryPool(12), settings(tmp_path, max_steps=2), TASKS)
    trainer.edit = {"completion_ids": (), "logprobs": ()}
    before = weights(trainer)
    trainer.train()
    records = lines(tmp_path / "metrics.jsonl")
    played = [sum(len(e.steps) for e in episodes) for episodes in trainer.episodes[1::2]]
    assert [record["rows"] for record in records] == played
    for record in records:
        assert record["loss"] == 0
        assert math.isfinite(record["grad_norm_mean"])
    assert all(torch.equal(before[name], value) for name, value in weights(trainer).items())


def test_replies_of_a_hundred_thousand_characters_are_trained_on(folder, tmp_path):
    trainer = build(folder, tmp_path, trajectory_steps=1)
    trainer.codec.decode = lambda ids: "x" * 100_000
    trainer.train()
    steps = [step for episode in trainer.episodes[0] for step in episode.steps]
    assert {len(step.reply) for step in steps} == {100_000}
    assert sum(trained_rows(trainer.batches).values()) == len(steps)
    [path] = tmp_path.rglob("iteration-*.jsonl")
    assert path.stat().st_size > 100_000 * len(steps)


# ---- what is masked -------------------------------------------------------------------------


@pytest.mark.parametrize("loss_type", ["dapo", "grpo"])
def test_nothing_at_a_masked_place_changes_loss_or_gradient(folder, tmp_path, loss_type):
    """Ids at padded places, and advantages, old and reference log-probs past a reply's end."""
    rows = [
        replace(row, token_advantages=np.full(len(row.completion), row.advantage, np.float32))
        for row in made_rows(300)
    ]
    found = []
    for spoiled in (False, True):
        trainer = build(folder, tmp_path, loss_type=loss_type, entropy_coef=0.01)
        trainer.current_gradient_accumulation_steps = 1
        trainer.model.train()
        if spoiled:
            trainer._collate = partial(_spoilt, trainer._collate)
        loss = trainer._backward(trainer.model, Share.of(rows, 1, 0))
        found.append([loss, *(p.grad for p in trainer.model.parameters())])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-8)


def _spoilt(collate_rows, rows):
    batch = collate_rows(rows)
    batch["prompt_ids"] = torch.where(batch["prompt_mask"] == 1, batch["prompt_ids"], 77)
    masked = batch["completion_mask"] == 0
    batch["completion_ids"] = batch["completion_ids"].masked_fill(masked, 78)
    assert masked.any()
    for name, value in [
        ("advantages", 1e6),
        ("old_per_token_logps", -3.0),
        ("ref_per_token_logps", -2.0),
    ]:
        assert not batch[name][masked].any()
        batch[name] = batch[name].masked_fill(masked, value)
    return batch


def test_what_is_not_a_number_past_a_reply_s_end_never_reaches_a_batch():
    rows = made_rows(300)
    long = max(len(row.completion) for row in rows)
    far = np.full(long, np.nan, dtype=np.float32)
    fillers = [
        replace(r, counts=False, old_logprobs=far[: len(r.completion)], importance=far[: len(r)])
        for r in rows
        if len(r.completion) == long
    ]
    batch = collate([*rows, *fillers], 0, torch.device("cpu"))
    assert all(torch.isfinite(value.float()).all() for value in batch.values())


# ---- nothing to learn -----------------------------------------------------------------------


class NobodyWins(LotteryPool):
    """Every return is 0, so every advantage is."""

    def _step(self, slot, reply):
        messages, _, ended, cut, info = super()._step(slot, reply)
        return messages, 0.0, ended, cut, {**info, "success": False}


class Clipped(Spied):
    """Every ratio is clipped, says TRL."""

    def _compute_loss(self, model, inputs):
        loss = super()._compute_loss(model, inputs)
        assert self._metrics["train"]["clip_ratio/region_mean"]
        self._metrics["train"]["clip_ratio/region_mean"] = [1.0]
        return loss


def flat_run(folder, output, kind, **changes):
    changes = {"max_steps": 5, "flat_patience": 2, **changes}
    if kind == "flat":
        return with_pool(folder, output, NobodyWins(12), estimator="grpo", **changes)
    if kind == "clipped":
        return Clipped(folder, LotteryPool(12), settings(output, **changes), TASKS)
    trainer = build(folder, output, **changes)
    trainer.eos_token_ids = [-1]  # never sampled
    return trainer


@pytest.mark.parametrize("kind", ["flat", "cut", "clipped"])
def test_a_run_that_learns_nothing_stops_with_a_checkpoint_and_the_reason(
    folder, tmp_path, kind, capsys
):
    trainer = flat_run(folder, tmp_path, kind)
    trainer.train()
    assert trainer.state.global_step == 2
    assert "nothing to learn from in 2 iterations" in capsys.readouterr().out
    assert last_checkpoint(tmp_path).name == "checkpoint-2"


def test_flat_iterations_are_counted_on_after_resuming(folder, tmp_path):
    saving = {"save_strategy": "steps", "save_steps": 1, "flat_patience": 3}
    flat_run(folder, tmp_path, "flat", **saving, max_steps=2).train()
    assert Progress.load(tmp_path / "checkpoint-2").flat == 2
    resumed = flat_run(folder, tmp_path, "flat", **saving, max_steps=9)
    resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
    assert resumed.state.global_step == 3


def test_patience_of_zero_never_stops(folder, tmp_path):
    trainer = flat_run(folder, tmp_path, "flat", flat_patience=0, max_steps=3)
    trainer.train()
    assert (trainer.state.global_step, trainer.stopped) == (3, None)


def test_a_prompt_budget_beyond_the_model_s_context_is_lowered_and_said(folder, tmp_path):
    with pytest.warns(UserWarning, match="held to 1020 tokens, not max_prompt_tokens=5000"):
        trainer = build(folder, tmp_path, max_prompt_tokens=5000)  # 1,024 positions, replies of 4
    assert trainer.prompt_budget == 1020
    with pytest.raises(ValueError, match="Lower max_completion_length below 1024"):
        build(folder, tmp_path, max_completion_length=1024)


@pytest.mark.parametrize("clip", [0.0, 1.0])
def test_a_gradient_that_is_not_a_number_ends_the_run_before_its_step(folder, tmp_path, clip):
    class Broken(Spied):
        def _backward(self, model, part):
            loss = super()._backward(model, part)
            if len(self.shares) == 2:
                self.start = weights(self)
                next(model.parameters()).grad[0, 0] = math.nan
            return loss

    args = settings(tmp_path, mini_batch_size=8, max_grad_norm=clip)
    trainer = Broken(folder, LotteryPool(12), args, TASKS)
    with pytest.raises(Diverged, match=r"Iteration 1, step 2 of .* nan.*learning_rate"):
        trainer.train()
    assert len(trainer.shares) == 2
    for name, value in weights(trainer).items():
        assert torch.equal(value, trainer.start[name]), name


# ---- stopping and going on ------------------------------------------------------------------


class Signalled(LotteryPool):
    """Sends this process a signal in the middle of its second rollout."""

    resets = 0

    def reset(self, task_ids):
        self.resets += 1
        return super().reset(task_ids)

    def step(self, actions):
        if self.resets == 2 and self.clock[next(iter(actions))] == 1:
            os.kill(os.getpid(), signal.SIGTERM)
            self.resets += 1
        return super().step(actions)


def test_a_signal_during_a_rollout_ends_its_iteration_resumably(folder, tmp_path):
    stopped = with_pool(folder, tmp_path / "cut", Signalled(12), max_steps=4)
    stopped.train()
    assert (stopped.state.global_step, stopped.stopped) == (2, "SIGTERM")
    resumed = build(folder, tmp_path / "cut", max_steps=4)
    resumed.train(resume_from_checkpoint=str(last_checkpoint(tmp_path / "cut")))
    whole = build(folder, tmp_path / "whole", max_steps=4)
    whole.train()
    assert equal_weights(whole, resumed)
    records = [untimed(lines(tmp_path / n / "metrics.jsonl")) for n in ("whole", "cut")]
    assert records[0] == records[1]


def test_a_second_signal_ends_the_run_at_once(folder, tmp_path):
    class Impatient(Signalled):
        def step(self, actions):
            if self.resets == 1:
                os.kill(os.getpid(), signal.SIGINT)
            return super().step(actions)

    with pytest.raises(KeyboardInterrupt):
        with_pool(folder, tmp_path, Impatient(12), max_steps=4).train()
    assert last_checkpoint(tmp_path) is None


class Draws(TrainerCallback):
    """Draws from every global random number generator at the end of each iteration."""

    def __init__(self) -> None:
        self.drawn: dict[int, tuple[float, float, float]] = {}

    def on_step_end(self, args, state, control, **_):
        self.drawn[state.global_step] = (
            random.random(),
            float(np.random.random()),
            float(torch.rand(())),
        )


def test_every_random_number_generator_goes_on_where_it_was(folder, tmp_path):
    saving = {"save_strategy": "steps", "save_steps": 2}

    def drawn(name, steps, checkpoint=None):
        trainer = build(folder, tmp_path / name, max_steps=steps, **saving)
        draws = Draws()
        trainer.add_callback(draws)
        trainer.train(resume_from_checkpoint=checkpoint)
        return draws.drawn

    whole = drawn("whole", 4)
    drawn("cut", 2)
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    resumed = drawn("cut", 4, str(tmp_path / "cut" / "checkpoint-2"))
    assert resumed == {number: whole[number] for number in (3, 4)}
    assert len(set(whole.values())) == 4


# ---- memory ---------------------------------------------------------------------------------


def test_gradient_checkpointing_changes_no_weight(folder, tmp_path):
    plain, checkpointed = (
        build(folder, tmp_path / str(on), gradient_checkpointing=on, max_steps=2)
        for on in (False, True)
    )
    for trainer in (plain, checkpointed):
        trainer.train()
    assert checkpointed.model.is_gradient_checkpointing
    theirs = weights(checkpointed)
    for name, value in weights(plain).items():
        torch.testing.assert_close(value, theirs[name], rtol=1e-3, atol=1e-4, msg=name)


# ---- seeing ---------------------------------------------------------------------------------


class Tracker(TrainerCallback):
    """What a tracker is told, as those of transformers are."""

    def __init__(self) -> None:
        self.told: list[dict[str, float]] = []

    def on_log(self, args, state, control, logs=None, **_):
        self.told.append(dict(logs))


def test_trackers_are_told_every_metric_of_every_iteration_and_evaluation(folder, tmp_path):
    changes = {"eval_strategy": "steps", "eval_steps": 2, "eval_tasks": TASKS}
    trainer = build(folder, tmp_path, max_steps=2, **changes)
    tracker = Tracker()
    trainer.add_callback(tracker)
    trainer.train()
    iterations = [told for told in tracker.told if "episodes" in told]
    for told, record in zip(iterations, lines(tmp_path / "metrics.jsonl"), strict=True):
        kept = {k: v for k, v in record.items() if k not in ("iteration", "loss") and v is not None}
        assert {name: told[name] for name in kept} == pytest.approx(kept)
        assert told["loss"] == pytest.approx(record["loss"], abs=1e-3)  # rounded in transformers
    [evaluation] = [told for told in tracker.told if "eval_episodes" in told]
    assert evaluation["eval_episodes"] == len(TASKS)


def test_a_bar_of_iterations_is_drawn_under_the_table(folder, tmp_path, capsys):
    build(folder, tmp_path, max_steps=2, disable_tqdm=False).train()
    drawn = capsys.readouterr()
    assert "2/2" in drawn.err
    assert "no adv." in drawn.out + drawn.err
