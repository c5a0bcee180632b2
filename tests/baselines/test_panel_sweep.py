"""A panel is swept: each game exactly once, the same score however it is batched."""

import hashlib
from dataclasses import dataclass, replace
from functools import partial

import pytest

from baselines.evaluation import evaluate_policy, summary
from milegpo_algo.rollout.generator import sampling_key
from milegpo_algo.rollout.policy import Prompt, Reply
from milegpo_envs.alfworld import games
from milegpo_envs.alfworld.compiled import compiled
from milegpo_envs.alfworld.experts import shortest_plan
from milegpo_envs.panels import named_panel
from milegpo_envs.pool import MakeEnv, make_pool
from milegpo_envs.wrappers import Prompted

HORIZON = 12
SEED = 123
PANEL = named_panel("alfworld/small/valid_seen")
MAKE = MakeEnv(
    "milegpo/ALFWorld-v0",
    {"split": "valid_seen", "size": "small", "max_episode_steps": HORIZON},
    (partial(Prompted, style="compact"),),
)


def number(text):
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


@dataclass
class Scripted:
    """Knows what to say by the name of the step, and the rest by the prompt alone."""

    script: dict

    def fit(self, candidates):
        return Prompt(next(iter(candidates)))

    def answer(self, prompts, keys):
        return [
            Reply(self.script.get(key) or wander(prompt), "stop")
            for prompt, key in zip(prompts, keys, strict=True)
        ]


def wander(prompt):
    """An action of the prompt's list, drawn by a hash of the prompt; sometimes no action at all."""
    text = prompt.messages[-1]["content"]
    listed = [action.strip() for action in text.rsplit("actions:", 1)[-1].split("|")]
    drawn = number(text)
    if drawn % 7 == 0:
        return "no tags at all"
    return f"<think></think><action>{listed[drawn % len(listed)]}</action>"


def strays(task_id):
    return number(task_id) % 3 == 0


@pytest.fixture(scope="module")
def script():
    """Shortest plans for two games in three."""
    out = {}
    for task_id in PANEL.task_ids:
        game = games.generate(task_id)
        plan = shortest_plan(compiled(game), game.task_type, game.params)
        for step, command in enumerate([] if strays(task_id) else plan):
            key = sampling_key(SEED, 0, task_id, 0, step)
            out[key] = f"<think></think><action>{command}</action>"
    return out


@pytest.fixture(scope="module")
def sweep(script):
    """Play the whole panel with a number of slots and workers; equal calls are played once."""
    known = {}

    def sweep(slots, workers=0):
        if (slots, workers) not in known:
            pool = make_pool(MAKE, slots, workers=workers)
            seen = []
            known[slots, workers] = evaluate_policy(
                pool, Scripted(script), PANEL, seeds=[SEED], on_progress=lambda *a: seen.append(a)
            )
            pool.close()
            assert seen[-1] == (140, 140)
        return known[slots, workers]

    return sweep


@pytest.mark.parametrize("slots", [1, 64, 128, 140])
def test_a_sweep_plays_each_game_once_with_one_score_at_any_batch_size(sweep, slots):
    played = sweep(slots)
    assert [episode.task_id for episode in played] == list(PANEL.task_ids)
    planned = [episode for episode in played if not strays(episode.task_id)]
    assert all(episode.success for episode in planned)
    assert 80 < len(planned) < 110
    strayed = [episode for episode in played if strays(episode.task_id)]
    assert all(episode.stop in ("success", "horizon") for episode in strayed)
    assert sum(episode.action_valid < 1 for episode in strayed) > 0
    assert summary(played) == summary(sweep(64))


@pytest.mark.parametrize("workers", [1, 4])
def test_workers_never_move_a_score(sweep, workers):
    assert sweep(64, workers) == sweep(64)


def test_the_order_of_the_panel_moves_no_episode(sweep, script):
    turned = replace(PANEL, task_ids=PANEL.task_ids[::-1])
    pool = make_pool(MAKE, 64)
    played = evaluate_policy(pool, Scripted(script), turned, seeds=[SEED])
    pool.close()
    assert played[::-1] == sweep(64)
