"""Dynamic sampling, importance weights, stopping, tables: what is switched on by a setting."""

from __future__ import annotations

import json
import math
import os
import signal
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
import torch
from peft import LoraConfig
from transformers import AutoModelForCausalLM, TrainerCallback

from milegpo_algo.batch import Row, Share, collate, truncated_importance
from milegpo_algo.rollout.hf_backend import uniforms
from milegpo_algo.rollout.probe import EngineStale
from milegpo_algo.rollout.schedule import TaskSchedule
from milegpo_algo.trainer.resume import MARKER, Progress, last_checkpoint
from milegpo_algo.trainer.sampling import degenerate
from milegpo_algo.trainer.table import heading, line
from tests.milegpo_algo.rollout.fake_vllm import Engine, Server, installed
from tests.milegpo_algo.test_trainer import (
    TASKS,
    Spied,
    build,
    folder,
    lines,
    made_rows,
    one_thread,
    reference_loss,
    trained_rows,
    untimed,
    weights,
)

__all__ = ["folder", "one_thread"]  # fixtures

CPU = torch.device("cpu")


# ---- importance weights ---------------------------------------------------------------------


def test_importance_is_cut_at_the_cap_and_one_where_unknown():
    old = np.float32([-1.0, -1.0, -1.0, np.nan, -5.0])
    sampled = np.float32([-1.0 - math.log(1.5), -9.0, np.nan, -1.0, -1.0])
    found, unknown = truncated_importance(old, sampled, 2.0)
    np.testing.assert_allclose(found, [1.5, 2.0, 1.0, 1.0, math.exp(-4)], rtol=1e-6)
    assert found[2] == 1.0
    assert unknown == 2


def test_importance_weighs_the_loss_of_its_token(folder, tmp_path):
    trainer = build(folder, tmp_path, beta=0.0)
    trainer.current_gradient_accumulation_steps = 1
    trainer.model.train()
    rows = [replace(row, ref_logprobs=None) for row in made_rows(300)]
    weighed = [
        replace(row, importance=np.full(len(row.completion), 0.5, np.float32)) for row in rows
    ]
    plain = trainer._backward(trainer.model, Share.of(rows, 1, 0))
    half = trainer._backward(trainer.model, Share.of(weighed, 1, 0))
    assert float(half) == pytest.approx(0.5 * float(plain), rel=1e-5)


def test_importance_correction_recomputes_old_logprobs(folder, tmp_path):
    trainer = build(folder, tmp_path, importance_correction="token_truncate")
    trainer.train()
    assert trainer.args.use_sampled_logprobs is False
    [record] = lines(tmp_path / "metrics.jsonl")
    assert record["importance/mean"] == pytest.approx(1.0, abs=1e-4)
    assert record["importance/capped"] == 0
    assert all(batch["advantages"].dim() == 2 for batch in trainer.batches)


class Forgetful(Spied):
    """An engine that does not know one log-prob of each reply."""

    def _rollout(self, iteration):
        episodes = super()._rollout(iteration)
        done = []
        for episode in episodes:
            steps = tuple(
                replace(step, logprobs=(math.nan, *step.logprobs[1:])) for step in episode.steps
            )
            done.append(replace(episode, steps=steps))
        self.episodes[-1] = done
        return done


@pytest.mark.parametrize("correction", ["none", "token_truncate"])
def test_an_unknown_logprob_gives_ratio_one_and_a_count(folder, tmp_path, correction):
    from tests.milegpo_algo.lottery import LotteryPool
    from tests.milegpo_algo.test_trainer import settings

    args = settings(tmp_path, importance_correction=correction, mini_batch_size=1000)
    trainer = Forgetful(folder, LotteryPool(12), args, TASKS)
    trainer.train()
    [record] = lines(tmp_path / "metrics.jsonl")
    assert record["unknown_logprobs"] == record["rows"]
    assert math.isfinite(record["loss"])
    start = AutoModelForCausalLM.from_pretrained(folder)
    for batch in trainer.batches:
        assert torch.isfinite(batch["old_per_token_logps"]).all()
        ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], 1)
        mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], 1)
        width = batch["completion_ids"].size(1)
        with torch.no_grad():
            positions = (mask.cumsum(1) - 1).clamp(min=0)
            logits = start(ids, attention_mask=mask, position_ids=positions).logits
        first = torch.log_softmax(logits[:, -width - 1], -1)
        chosen = first.gather(1, batch["completion_ids"][:, :1]).squeeze(1)
        torch.testing.assert_close(batch["old_per_token_logps"][:, 0], chosen, rtol=0, atol=1e-4)


def test_both_ways_of_correcting_at_once_are_refused(tmp_path):
    from tests.milegpo_algo.test_trainer import settings

    with pytest.raises(ValueError, match="use_sampled_logprobs"):
        settings(tmp_path, importance_correction="token_truncate", use_sampled_logprobs=True)


# ---- what is masked, entropy ----------------------------------------------------------------


def test_masked_advantages_are_zero_whatever_stands_there():
    rows = [
        Row(np.arange(1, 3), np.arange(1, 4), None, 1.0, importance=np.float32([1, 2, 3])),
        Row(np.arange(1, 3), np.arange(1, 2), None, 1.0, token_advantages=np.float32([7])),
        Row(np.arange(1, 3), np.arange(1, 3), None, 9.0, counts=False),
    ]
    got = collate(rows, 0, CPU)["advantages"].tolist()
    assert got == [[1, 2, 3], [7, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("loss_type", ["dapo", "grpo"])
def test_the_entropy_bonus_is_a_mean_over_all_tokens(folder, tmp_path, loss_type):
    """The same whatever the micro-batches, for losses by token and by row."""
    found = []
    for micro in (1, 3, 16):
        trainer = build(
            folder,
            tmp_path,
            loss_type=loss_type,
            beta=0.0,
            entropy_coef=0.5,
            per_device_train_batch_size=micro,
        )
        trainer.current_gradient_accumulation_steps = 1
        trainer.model.train()
        rows = [replace(row, ref_logprobs=None) for row in made_rows(300)]
        found.append(float(trainer._backward(trainer.model, Share.of(rows, 1, 0))))
        assert trainer.entropy_coef == 0.5
    assert found == pytest.approx([found[0]] * 3, rel=1e-4)


# ---- dynamic sampling, degenerate groups ----------------------------------------------------


def test_a_schedule_is_taken_from_any_position():
    schedule = TaskSchedule(["a", "b", "c"], 2, seed=3)
    assert schedule.take(0, 4) == schedule.tasks(0) + schedule.tasks(1)


def test_dynamic_sampling_replaces_groups_with_equal_returns(folder, tmp_path):
    trainer = build(
        folder, tmp_path, dynamic_sampling_rounds=10, num_generations=2, tasks_per_iteration=4
    )
    trainer.train()
    [episodes] = trainer.episodes
    groups = [episodes[at : at + 2] for at in range(0, len(episodes), 2)]
    [record] = lines(tmp_path / "metrics.jsonl")
    assert len(groups) == 4
    assert not any(degenerate(group) for group in groups)
    assert record["dynamic/rounds"] > 1
    assert record["dynamic/replaced_groups"] == (len(trainer.played) - len(episodes)) / 2 > 0
    assert record["episodes"] == len(trainer.played)
    assert record["rows"] == sum(len(e.steps) for e in episodes)
    names = [(e.task_id, e.trajectory_id) for e in trainer.played]
    assert len(set(names)) == len(names)
    assert trainer.progress.position == len(trainer.played) // 2


def test_the_last_round_of_dynamic_sampling_keeps_everything(folder, tmp_path):
    trainer = build(folder, tmp_path, dynamic_sampling_rounds=3, num_generations=1)
    trainer.train()
    assert len(trainer.episodes[0]) == 3
    assert len(trainer.played) == 9
    assert lines(tmp_path / "metrics.jsonl")[0]["dynamic/rounds"] == 3


def test_dynamic_sampling_resumes_with_the_tasks_it_would_have_drawn(folder, tmp_path):
    changes = {"dynamic_sampling_rounds": 4, "num_generations": 2, "save_strategy": "steps"}
    whole = build(folder, tmp_path / "whole", max_steps=3, save_steps=1, **changes)
    whole.train()
    build(folder, tmp_path / "cut", max_steps=2, save_steps=1, **changes).train()
    resumed = build(folder, tmp_path / "cut", max_steps=3, save_steps=1, **changes)
    resumed.train(resume_from_checkpoint=str(tmp_path / "cut" / "checkpoint-2"))
    assert resumed.episodes == whole.episodes[2:]
    for name, value in weights(whole).items():
        assert torch.equal(value, weights(resumed)[name]), name


def test_rows_of_degenerate_groups_can_do_without_kl_and_still_count(folder, tmp_path):
    kept, left = (
        build(folder, tmp_path / str(kl), estimator="grpo", degenerate_kl=kl, num_generations=2)
        for kl in (True, False)
    )
    for trainer in (kept, left):
        trainer.train()
    [record] = lines(tmp_path / "False" / "metrics.jsonl")
    silent = round(record["silent_rows"] * record["rows"])
    assert 0 < silent < record["rows"]
    assert sum(trained_rows(left.batches).values()) == record["rows"] - silent
    assert sum(share.count for share in left.shares) == record["rows"]
    assert sum(share.tokens for share in left.shares) == sum(s.tokens for s in kept.shares)


def test_the_mean_is_over_rows_left_out_too(folder, tmp_path):
    trainer = build(folder, tmp_path, beta=0.0)
    trainer.current_gradient_accumulation_steps = 1
    trainer.model.train()
    rows = [replace(row, ref_logprobs=None) for row in made_rows(300)]
    silent = [replace(row, trains=row.advantage != 0.0) for row in rows]
    losses = [
        float(trainer._backward(trainer.model, Share.of(part, 1, 0))) for part in (rows, silent)
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    model = AutoModelForCausalLM.from_pretrained(folder)
    full = [replace(row, ref_logprobs=row.old_logprobs) for row in rows]
    expected = float(reference_loss(model, full, "dapo", 0.0).detach())
    assert losses[0] == pytest.approx(expected, rel=1e-4)


# ---- stopping and going on ------------------------------------------------------------------


def test_a_run_with_nothing_to_learn_from_stops_and_says_so(folder, tmp_path, capsys):
    trainer = build(folder, tmp_path, max_prompt_tokens=1, max_steps=9, flat_patience=2)
    trainer.train()
    assert trainer.state.global_step == 2
    assert "nothing to learn from in 2 iterations" in trainer.stopped
    assert "Stopped after iteration 2" in capsys.readouterr().out


class Interrupted(TrainerCallback):
    """Sends this process a signal in its second iteration."""

    def __init__(self, number: int) -> None:
        self.number = number

    def on_step_begin(self, args, state, control, **_):
        if state.global_step == 1:
            os.kill(os.getpid(), self.number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_iteration_with_a_checkpoint_to_resume_from(
    folder, tmp_path, number, capsys
):
    before = signal.getsignal(number)
    stopped = build(folder, tmp_path / "cut", max_steps=4)
    stopped.add_callback(Interrupted(number))
    stopped.train()
    assert (stopped.state.global_step, stopped.stopped) == (2, signal.Signals(number).name)
    assert signal.getsignal(number) == before
    checkpoint = last_checkpoint(tmp_path / "cut")
    assert checkpoint == tmp_path / "cut" / "checkpoint-2"
    assert f"resume_from_checkpoint={checkpoint}" in capsys.readouterr().out
    resumed = build(folder, tmp_path / "cut", max_steps=4)
    resumed.train(resume_from_checkpoint=str(checkpoint))
    whole = build(folder, tmp_path / "whole", max_steps=4)
    whole.train()
    for name, value in weights(whole).items():
        assert torch.equal(value, weights(resumed)[name]), name
    records = [untimed(lines(tmp_path / n / "metrics.jsonl")) for n in ("whole", "cut")]
    assert records[0] == records[1]


def test_a_checkpoint_broken_off_is_not_the_last_one_and_is_refused(folder, tmp_path):
    for number in (1, 2, 10):
        (tmp_path / f"checkpoint-{number}").mkdir()
        Progress(number, 0).save(tmp_path / f"checkpoint-{number}")
    assert last_checkpoint(tmp_path).name == "checkpoint-10"
    (tmp_path / "checkpoint-10" / MARKER).unlink()
    assert last_checkpoint(tmp_path).name == "checkpoint-2"
    assert Progress.load(tmp_path / "checkpoint-2") == Progress(2, 0)
    with pytest.raises(FileNotFoundError, match="earlier one"):
        Progress.load(tmp_path / "checkpoint-10")


def test_adapters_resume_bit_for_bit_across_an_epoch(folder, tmp_path):
    def made(name, steps):
        adapter = LoraConfig(target_modules=["q_proj", "up_proj"], r=4)
        saving = {"save_strategy": "steps", "save_steps": 2, "max_steps": steps}
        return build(folder, tmp_path / name, peft_config=adapter, **saving)

    whole = made("whole", 4)
    whole.train()
    made("cut", 3).train()
    resumed = made("cut", 4)
    resumed.train(resume_from_checkpoint=str(tmp_path / "cut" / "checkpoint-2"))
    for name, value in weights(whole).items():
        assert torch.equal(value, weights(resumed)[name]), name


def test_the_best_evaluation_is_the_final_policy_where_that_is_the_rule(folder, tmp_path):
    trainer = build(
        folder,
        tmp_path,
        final_checkpoint="best",
        eval_strategy="steps",
        eval_steps=1,
        max_steps=3,
        eval_tasks=TASKS,
    )
    trainer.train()
    rates = [record["success"] for record in lines(trainer.evaluations_file.path)]
    best = 1 + rates.index(max(rates))
    assert trainer.state.best_model_checkpoint.endswith(f"checkpoint-{best}")
    kept = AutoModelForCausalLM.from_pretrained(trainer.state.best_model_checkpoint).state_dict()
    assert all(torch.equal(value, kept[name]) for name, value in weights(trainer).items())


# ---- seeing ---------------------------------------------------------------------------------


def test_trajectories_of_chosen_iterations_are_written(folder, tmp_path):
    trainer = build(folder, tmp_path, trajectory_steps=2, max_steps=3)
    trainer.train()
    [path] = tmp_path.rglob("iteration-*.jsonl")
    assert "000002" in path.name
    written = [json.loads(text) for text in path.read_text().splitlines()]
    assert len(written) == len(trainer.episodes[1])
    advantages = [step["advantage"] for episode in written for step in episode["steps"]]
    expected = {float(key[2]) for key in trained_rows(trainer.batches)}
    assert {float(np.float32(a)) for a in advantages} <= expected


def test_the_table_has_a_cell_under_every_heading():
    text = line("3/9", {"success": 0.5, "loss": 0.25})
    assert len(text) == len(heading())
    assert "50.0%" in text
    assert "0.2500" in text
    assert line("eval 3", {"eval_success": 0.5}, "eval_").split()[2] == "50.0%"


def test_the_table_is_printed_while_training(folder, tmp_path, capsys):
    build(folder, tmp_path, max_steps=2).train()
    printed = capsys.readouterr().out
    assert printed.count("no adv.") == 1
    assert "1/2" in printed
    assert "2/2" in printed


# ---- an engine of its own -------------------------------------------------------------------


@pytest.mark.parametrize("lora", [False, True])
def test_a_server_samples_and_follows_the_weights(folder, tmp_path, lora):
    adapter = LoraConfig(target_modules=["q_proj", "up_proj"], r=4) if lora else None
    with installed():
        server = Server(Engine.load(folder))
        try:
            trainer = build(
                folder,
                tmp_path,
                use_vllm=True,
                vllm_mode="server",
                vllm_server_base_url=server.url,
                max_steps=2,
                peft_config=adapter,
            )
            trainer.train()
        finally:
            server.close()
    records = lines(tmp_path / "metrics.jsonl")
    assert [record["iteration"] for record in records] == [1, 2]
    for record in records:
        assert record["sampling_gap/max"] < 1e-3
        assert record["importance/mean"] == pytest.approx(1.0, abs=1e-3)
        assert record["unknown_logprobs"] == 0


@pytest.mark.parametrize("sleeps", [False, True])
def test_a_colocated_engine_samples_and_follows_the_weights(folder, tmp_path, sleeps):
    colocated = {"use_vllm": True, "vllm_mode": "colocate", "vllm_enable_sleep_mode": sleeps}
    with installed():
        trainer = build(folder, tmp_path, max_steps=2, vllm_max_model_length=512, **colocated)
        trainer.train()
        log = trainer.vllm_generation.llm.log
    for record in lines(tmp_path / "metrics.jsonl"):
        assert record["sampling_gap/max"] < 1e-3
        assert record["unknown_logprobs"] == 0
    # three looks of the probe, then a rollout for each iteration: weights once each
    sent = [entry for i, entry in enumerate(log) if entry == "weights" != log[i - 1]]
    assert len(sent) == 3 + 2
    assert ("sleep" in log) == sleeps


def test_an_engine_that_never_sees_the_weights_ends_the_run_before_its_first_rollout(
    folder, tmp_path
):
    colocated = {"use_vllm": True, "vllm_mode": "colocate", "vllm_max_model_length": 512}
    with installed():
        trainer = build(
            folder,
            tmp_path,
            peft_config=LoraConfig(target_modules=["q_proj", "up_proj"], r=4),
            **colocated,
        )
        trainer.vllm_generation.sync_weights = lambda: None
        with pytest.raises(EngineStale, match="did not change"):
            trainer.train()
    assert trainer.episodes == []


def test_an_engine_too_small_for_the_longest_row_is_refused_before_the_run(folder, tmp_path):
    colocated = {"use_vllm": True, "vllm_mode": "colocate", "vllm_max_model_length": 128}
    with installed():
        trainer = build(folder, tmp_path, **colocated)
        with pytest.raises(ValueError, match="max_prompt_tokens"):
            trainer.train()


def test_a_server_gives_the_episodes_that_transformers_gives(folder, tmp_path):
    """Iteration 1, replies to the same prompts and seeds: the probe left every weight as it was."""
    with installed():
        server = Server(Engine.load(folder))
        try:
            url = server.url
            served = build(
                folder,
                tmp_path / "vllm",
                use_vllm=True,
                vllm_mode="server",
                vllm_server_base_url=url,
            )
            served.train()
        finally:
            server.close()
    own = build(folder, tmp_path / "own", generation_rows=1)
    with patch("milegpo_algo.rollout.hf_backend.uniforms", _halved(uniforms)):
        own.train()
    ids = [[[s.completion_ids for s in e.steps] for e in t.episodes[0]] for t in (served, own)]
    assert ids[0] == ids[1]


def _halved(draw):
    """Random numbers of the seeds that a server is sent: keys without their lowest bit."""
    return lambda keys, position: draw(keys >> np.uint64(1), position)
