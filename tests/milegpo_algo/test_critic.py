"""The critic alone, and PPO in the trainer."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from peft import LoraConfig
from transformers import AutoModelForCausalLM

from milegpo_algo import Rollouts
from milegpo_algo.batch import Row, collate
from milegpo_algo.critic import Critic, before_tokens, load_critic, value_loss
from milegpo_algo.rollout.collect import to_records
from tests.milegpo_algo.test_trainer import build, folder, lines, one_thread, weights

__all__ = ["folder", "one_thread"]  # fixtures

PPO = {"estimator": "ppo", "critic_learning_rate": 1e-2}


def test_value_loss_is_the_worse_of_the_clipped_and_the_plain_error():
    # v moved from 0 by 2, held at 0.5: errors (2 - 3)^2 = 1 and (0.5 - 3)^2 = 6.25; half of 6.25
    # v moved from 1 to 1.2, inside the clip: (1.2 - 1)^2 / 2 = 0.02
    values, old, returns = (torch.tensor([[a, b, 7.0]]) for a, b in ((2, 1.2), (0, 1.0), (3, 1.0)))
    mask = torch.tensor([[1, 1, 0]])
    got = value_loss(values, old, returns, mask, clip=0.5)
    assert float(got) == pytest.approx(6.25 / 2 + 0.02)


def test_what_is_masked_changes_neither_value_loss_nor_gradient():
    found = []
    for far in (0.0, math.inf, math.nan):
        values = torch.tensor([[0.3, 0.1]], requires_grad=True)
        other = torch.tensor([[0.0, far]])
        loss = value_loss(values, other, other, torch.tensor([[1, 0]]), 0.5)
        loss.backward()
        assert values.grad is not None
        found.append((float(loss.detach()), float(values.grad[0, 0])))
    assert len(set(found)) == 1


def test_a_new_critic_says_zero(folder):
    critic = load_critic(folder)
    ids = torch.tensor([[5, 6, 7, 8]])
    assert critic(ids, torch.ones_like(ids), 2).tolist() == [[0.0, 0.0]]


def test_values_do_not_depend_on_padding(folder):
    critic = load_critic(folder)
    torch.nn.init.normal_(critic.head.weight)
    rows = [Row(np.arange(3, 3 + p), np.arange(20, 20 + c), None, 0.0) for p, c in ((9, 2), (4, 3))]

    def values(part):
        batch = collate(part, 0, torch.device("cpu"))
        ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], 1)
        mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], 1)
        return critic(ids, mask, batch["completion_ids"].size(1)).detach()

    together = values(rows)
    for i, row in enumerate(rows):
        count = len(row.completion)
        torch.testing.assert_close(together[i, :count], values([row])[0], rtol=1e-4, atol=1e-5)


def test_states_before_tokens_are_one_place_to_the_left():
    states = torch.arange(5.0).reshape(1, 5, 1)
    assert before_tokens(states, 2).flatten().tolist() == [2.0, 3.0]
    assert before_tokens(states, 5) is states


def test_a_critic_without_trunk_needs_states():
    with pytest.raises(RuntimeError, match="of_states"):
        Critic(4)(torch.zeros(1, 2), torch.ones(1, 2), 1)


# ---- in the trainer -------------------------------------------------------------------------


@pytest.mark.parametrize("critic", ["separate", "shared"])
@pytest.mark.parametrize("across", [False, True])
def test_ppo_trains_policy_and_critic(folder, tmp_path, critic, across):
    trainer = build(
        folder,
        tmp_path,
        critic=critic,
        max_steps=2,
        estimator_settings=[f"bootstrap_across_steps={across}"],
        **PPO,
    )
    before = weights(trainer)
    trainer.train()
    records = lines(tmp_path / "metrics.jsonl")
    assert all(math.isfinite(record["loss"]) for record in records)
    assert records[0]["value_loss"] > 0
    assert {"explained_variance", "seconds/values"} <= set(records[0])
    assert any(not torch.equal(before[n], w) for n, w in weights(trainer).items())
    assert float(trainer.critic.head.weight.detach().abs().sum()) > 0


def test_a_token_has_the_advantage_that_the_estimator_gave_it(folder, tmp_path):
    trainer = build(folder, tmp_path, **PPO)
    torch.nn.init.normal_(trainer.critic.head.weight)
    seen = []
    values_of = trainer._values

    def spied(rows):
        seen.append(values_of(rows))
        return seen[-1]

    trainer._values = spied
    trainer.train()
    rollouts = Rollouts.from_steps(to_records(trainer.episodes[0], "format"))
    credit = trainer.estimator(rollouts, seen[0])
    targets = trainer.estimator.targets(rollouts, seen[0])
    expected = sorted(
        (tuple(np.float32(a)), tuple(np.float32(r))) for a, r in zip(credit, targets, strict=True)
    )
    got = []
    for batch in trainer.batches:
        for i, mask in enumerate(batch["completion_mask"]):
            n = int(mask.sum())
            assert not batch["advantages"][i, n:].any()
            row = (batch["advantages"][i, :n], batch["returns"][i, :n])
            got.append(tuple(tuple(part.numpy()) for part in row))
    assert sorted(got) == expected


@pytest.mark.parametrize("critic", ["separate", "shared"])
def test_trajectories_tell_what_the_critic_said_of_each_prompt(folder, tmp_path, critic):
    trainer = build(folder, tmp_path, critic=critic, trajectory_steps=1, **PPO)
    torch.nn.init.normal_(trainer.critic.head.weight)
    head = trainer.critic.head.weight.detach().clone().squeeze(0)
    trainer.train()
    trunk = AutoModelForCausalLM.from_pretrained(folder).model
    [path] = tmp_path.glob("iteration-*.jsonl")
    written = [step for episode in lines(path) for step in episode["steps"]]
    played = [step for episode in trainer.episodes[0] for step in episode.steps]
    assert len({round(step["value"], 6) for step in written}) > 3
    for line, step in zip(written, played, strict=True):
        with torch.no_grad():
            states = trunk(torch.tensor([step.prompt_ids])).last_hidden_state[0, -1]
        assert line["value"] == pytest.approx(float(states @ head), abs=1e-4)


def test_a_shared_critic_pulls_on_the_trunk(folder, tmp_path):
    ends = []
    for name, coefficient in (("a", 0.0), ("b", 1.0)):
        trainer = build(
            folder,
            tmp_path / name,
            critic="shared",
            value_coefficient=coefficient,
            max_steps=2,
            **PPO,
        )
        torch.nn.init.normal_(trainer.critic.head.weight, std=0.1)
        trainer.train()
        ends.append(weights(trainer))
    assert any(not torch.equal(ends[0][n], ends[1][n]) for n in ends[0])


@pytest.mark.parametrize("critic", ["separate", "shared"])
@pytest.mark.parametrize("lora", [False, True])
def test_a_resumed_run_with_a_critic_equals_one_never_stopped(folder, tmp_path, critic, lora):
    """5 tasks, 3 an iteration: the checkpoint of iteration 2 lies past an epoch's end."""

    def made(name, steps):
        adapter = LoraConfig(target_modules=["q_proj", "up_proj"], r=4) if lora else None
        return build(
            folder,
            tmp_path / name,
            critic=critic,
            max_steps=steps,
            save_strategy="steps",
            save_steps=2,
            peft_config=adapter,
            **PPO,
        )

    whole = made("whole", 3)
    whole.train()
    made("cut", 2).train()
    resumed = made("cut", 3)
    resumed.train(resume_from_checkpoint=str(tmp_path / "cut" / "checkpoint-2"))
    for name, value in weights(whole).items():
        assert torch.equal(value, weights(resumed)[name]), name
    mine, theirs = whole.critic.state_dict(), resumed.critic.state_dict()
    assert all(torch.equal(value, theirs[name]) for name, value in mine.items())


def test_a_critic_in_half_precision_is_refused(folder, tmp_path):
    trainer = build(folder, tmp_path, **PPO)
    trainer.args.fp16 = True
    with pytest.raises(ValueError, match="fp16"):
        trainer._add_critic(folder)
