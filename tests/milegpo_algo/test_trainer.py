"""The trainer on a random two-layer model and a lottery: seconds a test, one thread."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from peft import LoraConfig
from transformers import AutoModelForCausalLM

from milegpo_algo import Rollouts, make_estimator
from milegpo_algo.batch import Row, Share
from milegpo_algo.config import MultiTurnConfig
from milegpo_algo.rollout.collect import Episode, to_records
from milegpo_algo.trainer import MultiTurnTrainer
from tests.milegpo_algo.lottery import LotteryPool
from tests.milegpo_algo.tiny import save_tiny

TASKS = ("a", "b", "c", "d", "e")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_tiny(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def settings(output: Path, **changes) -> MultiTurnConfig:
    return MultiTurnConfig(
        **{
            "output_dir": str(output),
            "estimator": "gigpo",
            "tasks_per_iteration": 3,
            "num_generations": 4,
            "mini_batch_size": 16,
            "per_device_train_batch_size": 6,
            "max_completion_length": 4,
            "max_prompt_tokens": 200,
            "max_steps": 1,
            "learning_rate": 1e-2,
            "save_strategy": "no",
            "disable_tqdm": True,
            "use_cpu": True,
            **changes,
        }
    )


class Spied(MultiTurnTrainer):
    """Keeps its episodes and every micro-batch that reaches the loss."""

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.episodes: list[list[Episode]] = []
        self.batches: list[dict[str, torch.Tensor]] = []
        self.shares: list[Share] = []

    def _rollout(self, iteration: int) -> list[Episode]:
        self.episodes.append(super()._rollout(iteration))
        return self.episodes[-1]

    def _backward(self, model, part):
        self.shares.append(part)
        return super()._backward(model, part)

    def _compute_loss(self, model, inputs):
        self.batches.append({name: value.clone() for name, value in inputs.items()})
        return super()._compute_loss(model, inputs)


def build(folder: str, output: Path, *, pool: int = 12, tasks=TASKS, **changes) -> Spied:
    rest = {k: changes.pop(k) for k in ("eval_tasks", "eval_pool", "peft_config") if k in changes}
    return Spied(folder, LotteryPool(pool), settings(output, **changes), tasks, **rest)


def weights(trainer: MultiTurnTrainer) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in trainer.model.named_parameters()}


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def untimed(records: list[dict[str, object]]) -> list[dict[str, object]]:
    return [{k: v for k, v in record.items() if not k.startswith("seconds/")} for record in records]


def trained_rows(batches) -> Counter:
    """(prompt, completion, advantage) of every row that counts, as it reached the loss."""
    rows = Counter()
    for batch in batches:
        for i, mask in enumerate(batch["completion_mask"]):
            if mask.sum() == 0:
                continue
            prompt = batch["prompt_ids"][i][batch["prompt_mask"][i] == 1]
            completion = batch["completion_ids"][i][mask == 1]
            advantage = float(batch["advantages"][i])
            rows[tuple(prompt.tolist()), tuple(completion.tolist()), advantage] += 1
    return rows


# ---- what reaches the loss -----------------------------------------------------------------


def test_every_row_of_a_ragged_iteration_is_trained_on_once_with_its_own_advantage(
    folder, tmp_path
):
    trainer = build(folder, tmp_path)
    trainer.train()
    [episodes] = trainer.episodes
    steps = [step for episode in episodes for step in episode.steps]
    assert len(steps) % 16 != 0
    credit = make_estimator("gigpo")(Rollouts.from_steps(to_records(episodes, "format")))
    assert np.count_nonzero(credit) > 5
    expected = Counter(
        (step.prompt_ids, step.completion_ids, float(np.float32(advantage)))
        for step, advantage in zip(steps, credit, strict=True)
    )
    assert trained_rows(trainer.batches) == expected


def test_every_epoch_over_an_iteration_trains_on_every_row(folder, tmp_path):
    trainer = build(folder, tmp_path, num_iterations=2)
    trainer.train()
    rows = trained_rows(trainer.batches)
    assert all(count % 2 == 0 for count in rows.values())
    assert sum(rows.values()) == 2 * sum(len(e.steps) for e in trainer.episodes[0])


def test_old_logprobs_are_those_of_sampling_and_the_gap_is_logged(folder, tmp_path):
    trainer = build(folder, tmp_path)
    trainer.train()
    sampled = sorted(
        value
        for episode in trainer.episodes[0]
        for step in episode.steps
        for value in step.logprobs
    )
    used = sorted(
        value
        for batch in trainer.batches
        for value in batch["old_per_token_logps"][batch["completion_mask"] == 1].tolist()
    )
    np.testing.assert_array_equal(np.float32(sampled), np.float32(used))
    [record] = lines(tmp_path / "metrics.jsonl")
    assert 0 <= record["sampling_gap/mean"] <= record["sampling_gap/max"] < 1e-5


def test_recomputed_old_logprobs_change_next_to_nothing(folder, tmp_path):
    sampled = build(folder, tmp_path / "a")
    recomputed = build(folder, tmp_path / "b", use_sampled_logprobs=False)
    for trainer in (sampled, recomputed):
        trainer.train()
    for name, value in weights(sampled).items():
        torch.testing.assert_close(value, weights(recomputed)[name], rtol=1e-3, atol=1e-4)


# ---- the loss, against a plain reference ----------------------------------------------------


def made_rows(tokenizer_size: int) -> list[Row]:
    """Rows of uneven lengths, with log-probs far enough off that every clip is hit."""
    rng = np.random.default_rng(3)
    lengths = [(5, 3), (9, 1), (2, 4), (7, 0), (4, 2), (6, 4), (3, 3)]
    rows = []
    for i, (prompt, completion) in enumerate(lengths):
        rows.append(
            Row(
                prompt=rng.integers(3, tokenizer_size, prompt),
                completion=rng.integers(3, tokenizer_size, completion),
                sampled_logprobs=None,
                advantage=(-1.5, 0.7, 0.0, 2.0)[i % 4],
                old_logprobs=(rng.normal(-6.3, 1.0, completion)).astype(np.float32),
                ref_logprobs=(rng.normal(-6.3, 0.5, completion)).astype(np.float32),
            )
        )
    return rows


def reference_loss(model, rows: list[Row], loss_type: str, beta: float) -> torch.Tensor:
    """The objective as a formula, row by row, no padding."""
    per_row = []
    for row in rows:
        ids = torch.tensor([[*row.prompt, *row.completion]])
        count = len(row.completion)
        logits = model(ids).logits[0, len(row.prompt) - 1 : len(row.prompt) - 1 + count]
        targets = torch.tensor(row.completion).unsqueeze(1)
        logprobs = torch.log_softmax(logits, -1).gather(1, targets).squeeze(1)
        ratio = torch.exp(logprobs - torch.tensor(row.old_logprobs))
        gain = torch.min(
            ratio.clamp(max=3.0) * row.advantage, ratio.clamp(0.8, 1.2) * row.advantage
        )
        x = torch.tensor(row.ref_logprobs) - logprobs
        per_row.append(-gain + beta * (torch.exp(x) - x - 1))
    if loss_type == "grpo":
        means = [values.mean() if len(values) else values.sum() for values in per_row]
        return torch.stack(means).mean()
    return torch.cat(per_row).mean()  # dapo and bnpo: over all tokens


@pytest.mark.parametrize("loss_type", ["dapo", "bnpo", "grpo"])
@pytest.mark.parametrize("micro", [1, 3, 16])
def test_the_loss_is_the_exact_mean_over_the_mini_batch(folder, tmp_path, loss_type, micro):
    beta = 0.05
    trainer = build(
        folder, tmp_path, loss_type=loss_type, beta=beta, per_device_train_batch_size=micro
    )
    trainer.current_gradient_accumulation_steps = 1  # set by the loop of transformers
    trainer.model.train()
    rows = made_rows(300)
    got = trainer._backward(trainer.model, Share.of(rows, 1, 0))
    model = AutoModelForCausalLM.from_pretrained(folder)
    expected = reference_loss(model, rows, loss_type, beta)
    expected.backward()
    torch.testing.assert_close(got, expected.detach(), rtol=1e-4, atol=1e-6)
    for (name, mine), theirs in zip(
        trainer.model.named_parameters(), model.parameters(), strict=True
    ):
        torch.testing.assert_close(mine.grad, theirs.grad, rtol=2e-3, atol=2e-6, msg=name)


def test_a_row_that_does_not_count_changes_no_gradient(folder, tmp_path):
    gradients = []
    for fillers in (0, 3):
        trainer = build(folder, tmp_path)
        trainer.current_gradient_accumulation_steps = 1
        trainer.model.train()
        rows = made_rows(300)
        huge = np.full(4, 1e9, dtype=np.float32)
        filler = Row(rows[0].prompt, rows[5].completion, None, 1e9, huge, huge, counts=False)
        share = Share.of(rows, 1, 0)
        share.rows.extend([filler] * fillers)
        trainer._backward(trainer.model, share)
        gradients.append([p.grad for p in trainer.model.parameters()])
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-7)


def test_rows_without_advantage_still_count_in_the_mean(folder, tmp_path):
    rows = made_rows(300)
    losses = []
    for kept in (rows, [row for row in rows if row.advantage != 0.0]):
        trainer = build(folder, tmp_path, beta=0.0)
        trainer.current_gradient_accumulation_steps = 1
        trainer.model.train()
        tokens = sum(row.tokens for row in kept)
        losses.append(float(trainer._backward(trainer.model, Share.of(kept, 1, 0))) * tokens)
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_every_mini_batch_is_an_optimizer_step_of_its_own(folder, tmp_path):
    plain = {"optim": "sgd", "learning_rate": 0.5, "max_grad_norm": 0.0}
    trainer = build(folder, tmp_path, beta=0.05, mini_batch_size=8, **plain)
    trainer.train()
    assert len(trainer.shares) >= 3
    model = AutoModelForCausalLM.from_pretrained(folder)
    norms = []
    for share in trainer.shares:
        model.zero_grad()
        reference_loss(model, share.rows, "dapo", 0.05).backward()
        norms.append(math.sqrt(sum(float(p.grad.square().sum()) for p in model.parameters())))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.5 * parameter.grad
    for (name, mine), theirs in zip(
        trainer.model.named_parameters(), model.parameters(), strict=True
    ):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-5, msg=name)
    [record] = lines(tmp_path / "metrics.jsonl")
    assert record["grad_norm_mean"] == pytest.approx(np.mean(norms), rel=1e-3)
    assert record["updates"] == len(norms)
    assert trainer.state.log_history[0]["grad_norm"] == pytest.approx(norms[-1], rel=1e-3)


@pytest.mark.parametrize("far", [1e4, math.nan, math.inf])
def test_a_reference_far_away_is_held_and_counted(folder, tmp_path, far):
    class Far(Spied):
        def _reference_logprobs(self, rows):
            return [np.full(len(row.completion), far, dtype=np.float32) for row in rows]

    trainer = Far(folder, LotteryPool(12), settings(tmp_path, kl_limit=3.0), TASKS)
    trainer.train()
    [record] = lines(tmp_path / "metrics.jsonl")
    assert record["kl_cuts"] == sum(row.tokens for share in trainer.shares for row in share.rows)
    assert math.isfinite(record["loss"])
    assert all(torch.isfinite(weight).all() for weight in weights(trainer).values())


# ---- runs -----------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_run_bit_for_bit(folder, tmp_path):
    runs = [build(folder, tmp_path / name, max_steps=2) for name in "ab"]
    for trainer in runs:
        trainer.train()
    records = [untimed(lines(tmp_path / name / "metrics.jsonl")) for name in "ab"]
    assert records[0] == records[1]
    assert len(records[0]) == 2
    assert runs[0].episodes == runs[1].episodes
    for name, value in weights(runs[0]).items():
        assert torch.equal(value, weights(runs[1])[name]), name


def test_another_seed_gives_another_run(folder, tmp_path):
    one, other = build(folder, tmp_path / "a", seed=1), build(folder, tmp_path / "b", seed=2)
    for trainer in (one, other):
        trainer.train()
    assert one.episodes != other.episodes


def test_a_resumed_run_equals_one_that_was_never_stopped(folder, tmp_path):
    """Stops in the second epoch: of 5 tasks, 3 an iteration, so one ends after iteration 2."""
    whole = build(folder, tmp_path / "whole", max_steps=5)
    whole.train()
    saving = {"save_strategy": "steps", "save_steps": 3, "max_steps": 5}
    killed = build(folder, tmp_path / "cut", **{**saving, "max_steps": 4})
    killed.train()  # iteration 4 is lost: the last checkpoint is iteration 3's
    resumed = build(folder, tmp_path / "cut", **saving)
    resumed.train(resume_from_checkpoint=str(tmp_path / "cut" / "checkpoint-3"))
    assert resumed.episodes == whole.episodes[3:]
    for name, value in weights(whole).items():
        assert torch.equal(value, weights(resumed)[name]), name
    records = [untimed(lines(tmp_path / n / "metrics.jsonl")) for n in ("whole", "cut")]
    assert records[0] == records[1]
    assert [record["iteration"] for record in records[1]] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "changes",
    [
        {"tasks": ("only",), "tasks_per_iteration": 3},
        {"num_generations": 1},
        {"max_completion_length": 1},
        {"beta": 0.0},
        {"pool": 5},
        {"mini_batch_size": 1000, "per_device_train_batch_size": 1000},
        {"estimator": "milegpo", "estimator_settings": ["eta=0.5"], "convention": "verl-agent"},
    ],
    ids=lambda changes: "-".join(changes),
)
def test_corner_cases_train(folder, tmp_path, changes):
    trainer = build(folder, tmp_path, max_steps=2, **changes)
    before = weights(trainer)
    trainer.train()
    records = lines(tmp_path / "metrics.jsonl")
    assert [record["iteration"] for record in records] == [1, 2]
    assert all(math.isfinite(record["loss"]) for record in records)
    assert any(not torch.equal(before[n], w) for n, w in weights(trainer).items())


def test_empty_replies_are_trained_on_like_any_other(folder, tmp_path):
    trainer = build(folder, tmp_path)
    trainer.eos_token_ids = list(range(len(trainer.processing_class)))  # any first token ends it
    trainer.train()
    steps = [step for episode in trainer.episodes[0] for step in episode.steps]
    assert {len(step.completion_ids) for step in steps} == {1}
    assert sum(trained_rows(trainer.batches).values()) == len(steps)


def test_endless_replies_are_cut_and_trained_on(folder, tmp_path):
    trainer = build(folder, tmp_path)
    trainer.eos_token_ids = [-1]  # never sampled
    trainer.train()
    steps = [step for episode in trainer.episodes[0] for step in episode.steps]
    assert {(len(step.completion_ids), step.finish_reason) for step in steps} == {(4, "length")}
    assert lines(tmp_path / "metrics.jsonl")[0]["cut_replies"] == 1


def test_without_a_kl_term_there_is_no_reference(folder, tmp_path):
    trainer = build(folder, tmp_path, beta=0.0)
    trainer.train()
    assert trainer.ref_model is None
    assert "ref_per_token_logps" not in trainer.batches[0]
    assert "seconds/reference" not in lines(tmp_path / "metrics.jsonl")[0]


def test_an_iteration_without_rows_changes_nothing_and_is_counted(folder, tmp_path):
    trainer = build(folder, tmp_path, max_prompt_tokens=1, max_steps=2)
    before = weights(trainer)
    trainer.train()
    for record in lines(tmp_path / "metrics.jsonl"):
        assert (record["rows"], record["stop/context"], record["loss"]) == (0, 1, 0)
    assert all(torch.equal(before[name], value) for name, value in weights(trainer).items())


def test_metrics_cover_an_iteration(folder, tmp_path):
    build(folder, tmp_path).train()
    [record] = lines(tmp_path / "metrics.jsonl")
    assert {
        "loss",
        "success",
        "score",
        "episode_length",
        "rows",
        "prompt_tokens",
        "completion_tokens",
        "format_valid",
        "action_valid",
        "stop/horizon",
        "zero_advantage",
        "degenerate_groups",
        "padding",
        "sampling_gap/mean",
        "kl",
        "kl_cuts",
        "entropy",
        "clip_ratio/region_mean",
        "grad_norm_mean",
        "updates",
        "seconds/generation",
        "seconds/environment",
        "seconds/tokenising",
        "seconds/credit",
        "seconds/reference",
        "seconds/update",
        "seconds/total",
    } <= set(record)


def test_adapters_train_against_the_model_without_them(folder, tmp_path):
    trainer = build(
        folder,
        tmp_path,
        peft_config=LoraConfig(target_modules=["q_proj", "up_proj"], r=4, lora_dropout=0.1),
    )
    before = weights(trainer)
    trainer.train()
    changed = {n for n, w in weights(trainer).items() if not torch.equal(before[n], w)}
    assert changed
    assert all("lora_" in name for name in changed)
    [record] = lines(tmp_path / "metrics.jsonl")
    assert record["sampling_gap/max"] < 1e-5


def test_dropout_that_stays_on_is_refused(folder, tmp_path):
    config = LoraConfig(target_modules=["q_proj"], lora_dropout=0.1)
    with pytest.raises(ValueError, match="lora_dropout"):
        build(folder, tmp_path, peft_config=config, disable_dropout=False)


# ---- evaluation -----------------------------------------------------------------------------


def test_evaluation_plays_every_task_once_in_a_smaller_pool(folder, tmp_path):
    trainer = build(folder, tmp_path, eval_tasks=TASKS, eval_pool=LotteryPool(2))
    trainer.model.train()
    metrics = trainer.evaluate()
    assert trainer.model.training
    assert metrics["eval_episodes"] == len(TASKS)
    assert 0 <= metrics["eval_success"] <= 1
    assert metrics["eval_success/x"] == metrics["eval_success"]
    assert untimed(lines(tmp_path / "evaluations.jsonl"))[0]["iteration"] == 0


def test_evaluation_does_not_depend_on_the_training_seed(folder, tmp_path):
    results = []
    for seed in (1, 2):
        trainer = build(folder, tmp_path / str(seed), seed=seed, eval_tasks=TASKS)
        results.append(untimed([trainer.evaluate()]))
    timeless = [{k: v for k, v in r[0].items() if "seconds" not in k} for r in results]
    assert timeless[0] == timeless[1]


def test_evaluation_does_not_disturb_training(folder, tmp_path):
    plain = build(folder, tmp_path / "plain", max_steps=2)
    evaluated = build(
        folder,
        tmp_path / "evaluated",
        max_steps=2,
        eval_strategy="steps",
        eval_steps=1,
        eval_on_start=True,
        eval_tasks=TASKS,
    )
    for trainer in (plain, evaluated):
        trainer.train()
    for name, value in weights(plain).items():
        assert torch.equal(value, weights(evaluated)[name]), name
    records = [untimed(lines(tmp_path / n / "metrics.jsonl")) for n in ("plain", "evaluated")]
    assert records[0] == records[1]
    evaluations = lines(evaluated.evaluations_file.path)
    assert [record["iteration"] for record in evaluations] == [0, 1, 2]


def test_the_best_evaluation_can_choose_the_checkpoint(folder, tmp_path):
    trainer = build(
        folder,
        tmp_path,
        max_steps=2,
        eval_strategy="steps",
        eval_steps=1,
        save_strategy="steps",
        save_steps=1,
        load_best_model_at_end=True,
        metric_for_best_model="eval_success",
        greater_is_better=True,
        eval_tasks=TASKS,
    )
    trainer.train()
    assert trainer.state.best_model_checkpoint is not None


def test_evaluation_without_tasks_says_what_to_do(folder, tmp_path):
    with pytest.raises(ValueError, match="eval_tasks"):
        build(folder, tmp_path).evaluate()
