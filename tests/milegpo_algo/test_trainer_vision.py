"""The trainer on what is seen: every row with its own image, gradients into the eye, learning."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from peft import LoraConfig

from milegpo_algo.batch import Row, shares
from milegpo_algo.config import MultiTurnConfig
from milegpo_algo.rollout.vision import VisionCodec
from milegpo_algo.trainer import MultiTurnTrainer
from tests.milegpo_algo.lottery import LotteryPool
from tests.milegpo_algo.tiny import save_tiny
from tests.milegpo_algo.tiny_vision import (
    TASKS,
    TwoRooms,
    picture,
    qwen,
    qwen_processor,
    save_llava,
)


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
            "tasks_per_iteration": 4,
            "num_generations": 16,
            "mini_batch_size": 64,
            "per_device_train_batch_size": 64,
            "max_completion_length": 1,
            "max_prompt_tokens": 64,
            "max_steps": 1,
            "learning_rate": 3e-3,
            "beta": 0.0,
            "bf16": False,
            "gradient_checkpointing": False,
            "report_to": "none",
            "save_strategy": "no",
            "disable_tqdm": True,
            "use_cpu": True,
            **changes,
        }
    )


def build(output: Path, *, blank: bool = False, **changes) -> MultiTurnTrainer:
    return MultiTurnTrainer(
        qwen(),
        TwoRooms(64, blank),
        settings(output, **changes),
        TASKS,
        TASKS * 32,
        TwoRooms(64, blank),
        qwen_processor(),
    )


def noise(seed: int, height: int = 28, width: int = 28) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def rows_with_images(count: int) -> list[Row]:
    """Rows whose prompts differ in length and whose images differ in size, told by advantage."""
    codec = VisionCodec(qwen_processor())
    rows = []
    for i in range(count):
        image = noise(i, 28 * (1 + i % 2), 28 * (1 + i % 3))
        parts = [{"type": "image", "image": image}, {"type": "text", "text": "door " * (1 + i % 4)}]
        rows.append(
            Row(
                prompt=np.array(codec.encode([{"role": "user", "content": parts}])),
                completion=np.array([10, 11, 2][: 1 + i % 3]),
                sampled_logprobs=None,
                advantage=float(i),
                images=(image,),
            )
        )
    return rows


def pixels_by_row(batch: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    """As TRL cuts them: patches of images, images of rows."""
    patches = batch["image_grid_thw"].prod(-1)
    of_rows = [int(part.sum()) for part in torch.split(patches, batch["num_images"])]
    return list(torch.split(batch["pixel_values"], of_rows))


def test_shuffled_dealt_and_sorted_every_row_keeps_its_image(tmp_path):
    trainer = build(tmp_path)
    rows = rows_with_images(23)
    seen = []
    for rank in range(2):
        for share in shares(rows, size=10, seed=1, iteration=0, world=2, rank=rank):
            batch = trainer._collate(share.rows)
            pixels = pixels_by_row(batch)
            assert len(pixels) == len(share.rows)
            for row, own in zip(batch["advantages"].tolist(), pixels, strict=True):
                (image,) = rows[int(row)].images
                expected = qwen_processor().image_processor(images=[[image]], return_tensors="pt")
                torch.testing.assert_close(own, expected["pixel_values"])
                seen.append(int(row))
    assert set(seen) == set(range(23))


def test_logprobs_do_not_depend_on_the_batch_or_the_order_of_rows(tmp_path):
    trainer = build(tmp_path, per_device_train_batch_size=5)
    rows = rows_with_images(12)
    order = np.random.default_rng(0).permutation(12)

    def score(some: list[Row]) -> list[np.ndarray]:
        with torch.no_grad():
            return trainer._score(some, lambda batch: trainer._logprobs(trainer.model, batch))

    alone = [score([row])[0] for row in rows]
    for values, i in zip(score([rows[i] for i in order]), order, strict=True):
        np.testing.assert_allclose(values, alone[i], atol=2e-5)


def test_rows_that_differ_by_their_image_only_are_scored_apart(tmp_path):
    trainer = build(tmp_path)
    [row, *_] = rows_with_images(1)
    rows = [row, replace(row, images=(noise(99),)), row]
    with torch.no_grad():
        one, other, again = trainer._score(
            rows, lambda batch: trainer._logprobs(trainer.model, batch)
        )
    assert np.abs(one - other).max() > 1e-4
    np.testing.assert_array_equal(one, again)


class Spied(MultiTurnTrainer):
    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.batches: list[dict[str, torch.Tensor]] = []
        self.episodes: list[list] = []

    def _rows(self, episodes):
        self.episodes.append(episodes)
        return super()._rows(episodes)

    def _compute_loss(self, model, inputs):
        self.batches.append(dict(inputs))
        return super()._compute_loss(model, inputs)


def test_what_the_loss_is_fed_is_what_was_seen(tmp_path):
    """Rows of the loss, by image and reply, are the steps of the episodes; the tower learns."""
    trainer = Spied(
        qwen(),
        TwoRooms(64),
        settings(tmp_path, mini_batch_size=32, seed=0),
        TASKS,
        None,
        None,
        qwen_processor(),
    )
    before = {name: p.detach().clone() for name, p in trainer.model.named_parameters()}
    trainer.train()
    process = qwen_processor().image_processor
    door_of = {}
    for door in ("left", "right"):
        pixels = process(images=[[picture(door)]], return_tensors="pt")["pixel_values"]
        door_of[pixels.numpy().tobytes()] = door
    fed = sorted(
        (door_of[own.numpy().tobytes()], int(completion[0]))
        for batch in trainer.batches
        for own, completion, mask in zip(
            pixels_by_row(batch), batch["completion_ids"], batch["completion_mask"], strict=True
        )
        if mask.any()
    )
    taken = sorted(
        (e.task_id.split("-")[int(s.state_id.split()[1])], s.completion_ids[0])
        for e in trainer.episodes[0]
        for s in e.steps
    )
    assert fed == taken
    moved = {n: (p.detach() - before[n]).abs().max() for n, p in trainer.model.named_parameters()}
    tower = [n for n in moved if ".visual." in n]
    assert len(tower) > 8
    assert all(moved[n] > 0 for n in tower)


def test_two_rooms_are_learnt_from_pixels(tmp_path):
    """Chance at the doors is 1/4; the same run on blank pictures stays there."""
    trainer = build(tmp_path, max_steps=18, learning_rate=5e-3, eval_temperature=1.0)
    assert trainer.evaluate()["eval_success"] < 0.2
    trainer.train()
    assert trainer.evaluate()["eval_success"] > 0.8
    trainer.eval_pool = TwoRooms(64, blank=True)
    assert trainer.evaluate()["eval_success"] < 0.5


def test_nothing_is_learnt_from_blank_pictures(tmp_path):
    trainer = build(tmp_path, blank=True, max_steps=18, learning_rate=5e-3, eval_temperature=1.0)
    trainer.train()
    assert trainer.evaluate()["eval_success"] < 0.45


def test_another_family_from_a_folder_with_a_reference_policy(tmp_path):
    """LLaVA: one tensor an image; processor and reference are loaded with the model."""
    folder = save_llava(tmp_path / "model")
    trainer = MultiTurnTrainer(
        folder,
        TwoRooms(16),
        settings(tmp_path / "run", beta=0.01, max_steps=2, num_generations=8),
        TASKS,
    )
    trainer.train()
    metrics = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").open()]
    assert metrics[0]["kl"] == pytest.approx(0.0, abs=1e-6)
    assert metrics[1]["kl"] > 0.0
    assert metrics[0]["updates"] > 0


def test_a_critic_shares_the_eye_or_is_refused(tmp_path):
    with pytest.raises(ValueError, match="critic='shared'"):
        build(tmp_path / "separate", estimator="ppo")
    trainer = build(tmp_path / "shared", estimator="ppo", critic="shared", seed=0)
    trainer.train()
    [metrics] = [json.loads(line) for line in (tmp_path / "shared/metrics.jsonl").open()]
    assert metrics["value_loss"] > 0.0
    assert torch.count_nonzero(trainer.critic.head.weight) > 0


def test_an_adapter_sees(tmp_path):
    trainer = MultiTurnTrainer(
        qwen(),
        TwoRooms(64),
        settings(tmp_path, beta=0.01, max_steps=2, seed=0),
        TASKS,
        processing_class=qwen_processor(),
        peft_config=LoraConfig(r=4, lora_alpha=8, lora_dropout=0.0, target_modules="all-linear"),
    )
    before = {n: p.detach().clone() for n, p in trainer.model.named_parameters()}
    trainer.train()
    moved = [n for n, p in trainer.model.named_parameters() if (p.detach() != before[n]).any()]
    assert moved
    assert all("lora" in n for n in moved)
    assert any(".visual." in n for n in moved)


def test_a_text_run_is_fed_what_it_was_before_there_were_images(tmp_path):
    fed = {}

    class Keys(MultiTurnTrainer):
        def _compute_loss(self, model, inputs):
            fed.update(inputs)
            return super()._compute_loss(model, inputs)

    trainer = Keys(
        save_tiny(tmp_path / "model"),
        LotteryPool(12),
        settings(tmp_path / "run", num_generations=4, max_prompt_tokens=200),
        ("a", "b", "c", "d"),
    )
    trainer.train()
    assert trainer.vision is None
    assert set(fed) == {
        *("prompt_ids", "prompt_mask", "completion_ids", "completion_mask", "advantages"),
        *("old_per_token_logps", "num_items_in_batch", "loss_scale", "value_scale"),
    }
