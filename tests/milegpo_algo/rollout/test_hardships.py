"""What goes wrong in a long run, with real environments and real tokenizers: nothing is lost."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import Counter
from functools import partial

import numpy as np
import pytest

from milegpo_algo import Rollouts, make_estimator
from milegpo_algo.rollout.collect import assign, collect, play, to_records
from milegpo_algo.rollout.generator import Sample, known_logprobs
from milegpo_algo.rollout.hf_backend import ChatCodec, HFGenerator
from milegpo_algo.rollout.metrics import episode_metrics
from milegpo_algo.rollout.schedule import TaskSchedule
from milegpo_envs.pool import MakeEnv, ProcessPool
from milegpo_envs.wrappers import Prompted
from tests.milegpo_algo.rollout.fakes import ByteCodec, CountingPool, Parrot
from tests.milegpo_algo.tiny import TASK_IDS, house_pool, lively_model, tiny_tokenizer
from tests.toys import HORIZON, HOUSE_ID, well_formed

TOKENIZER = tiny_tokenizer()
END = TOKENIZER.eos_token_id
CODEC = ChatCodec(TOKENIZER)


class Scripted:
    """Says the ids it is given, over and over."""

    def __init__(self, ids, finish="stop", logprobs=None):
        self.sample = Sample(tuple(ids), logprobs, finish)

    def generate(self, prompts, keys):
        return [self.sample for _ in prompts]


def house(generator, tasks=TASK_IDS[:2], group_size=2, pool=None, **settings):
    pool = house_pool(8) if pool is None else pool
    try:
        return collect(
            pool,
            generator,
            CODEC,
            tasks,
            group_size=group_size,
            max_prompt_tokens=600,
            seed=0,
            **settings,
        )
    finally:
        pool.close()


def test_trained_ids_are_the_sampled_ids_although_text_would_give_others():
    spelled = [TOKENIZER.convert_tokens_to_ids(letter) for letter in well_formed("wait")]
    broken = TOKENIZER.encode("é", add_special_tokens=False)[:1]  # half a character
    ids = (*spelled, *broken, END, END)
    assert TOKENIZER.encode(TOKENIZER.decode(ids)) != list(ids)
    episodes = house(Scripted(ids, logprobs=(-1.0,) * len(ids)))
    assert {step.completion_ids for e in episodes for step in e.steps} == {ids}
    assert {len(step.logprobs) for e in episodes for step in e.steps} == {len(ids)}


def test_sampled_ids_of_a_model_reach_the_record_untouched():
    seen = []

    class Watched(HFGenerator):
        def generate(self, prompts, keys):
            samples = super().generate(prompts, keys)
            seen.extend(zip(map(tuple, prompts), samples, strict=True))
            return samples

    episodes = house(Watched(lively_model(TOKENIZER), [END], 8))
    told = Counter((p, s.token_ids, s.logprobs) for p, s in seen)
    steps = [step for e in episodes for step in e.steps]
    assert told == Counter((s.prompt_ids, s.completion_ids, s.logprobs) for s in steps)


def test_a_model_that_never_ends_plays_to_the_horizon():
    episodes = house(HFGenerator(lively_model(TOKENIZER), [], 4))
    assert all(step.finish_reason == "length" for e in episodes for step in e.steps)
    assert {(e.stop, len(e.steps)) for e in episodes} == {("horizon", HORIZON)}
    assert episode_metrics(episodes)["cut_replies"] == 1.0


@pytest.mark.parametrize("ids", [(), (END,)])
def test_an_empty_reply_is_malformed_and_costs_a_step(ids):
    episodes = house(Scripted(ids))
    steps = [step for e in episodes for step in e.steps]
    assert len(steps) == 4 * HORIZON
    assert not any(step.format_valid for step in steps)
    assert {step.completion_ids for step in steps} == {ids}


@pytest.mark.parametrize("text", ["x" * 100_000, well_formed("go " * 33_000)])
def test_a_reply_of_a_hundred_thousand_characters_is_an_action_that_is_not_admissible(text):
    class Long(ByteCodec):
        def encode(self, messages):
            return CODEC.encode(messages)

        def decode(self, token_ids):
            return text

    pool = house_pool(2)
    plan = assign(TASK_IDS[:1], 2)
    episodes = play(pool, Scripted((1,)), Long(), plan, max_prompt_tokens=600, seed=0)
    pool.close()
    steps = [step for e in episodes for step in e.steps]
    assert len(steps) == 2 * HORIZON
    assert all(step.reply == text and not step.action_valid for step in steps)
    assert max(len(step.prompt_ids) for step in steps) <= 600


@pytest.mark.parametrize("halves", [1, 2])
def test_a_killed_worker_costs_its_own_episodes_only(halves):
    make = MakeEnv(f"tests.toys:{HOUSE_ID}", wrappers=(partial(Prompted, style="compact"),))
    before = set(multiprocessing.active_children())
    pool = ProcessPool(make, size=4, workers=2)

    class Killer(Scripted):
        calls = 0

        def generate(self, prompts, keys):
            self.calls += 1
            if self.calls == 4:
                mine = [w for w in multiprocessing.active_children() if w not in before]
                os.kill(mine[0].pid, signal.SIGKILL)
                mine[0].join()
            return super().generate(prompts, keys)

    episodes = house(Killer((1, END)), pool=pool, halves=halves)
    assert Counter(e.stop for e in episodes) == {"error": 2, "horizon": 2}
    assert all("error" in e.extras for e in episodes if e.stop == "error")
    rates = episode_metrics(episodes)
    assert (rates["stop/error"], rates["episodes"]) == (1 / 2, 4)
    assert len(Rollouts.from_steps(to_records(episodes, "format"))) == rates["rows"]


def test_an_environment_that_raises_in_reset_or_step_ends_its_own_episode_only():
    [sick, well] = TASK_IDS[:2]
    episodes = house(Scripted((1, END)), pool=house_pool(4, fails_on=sick))
    assert [(e.task_id, e.stop) for e in episodes] == [
        (sick, "error"),
        (sick, "error"),
        (well, "horizon"),
        (well, "horizon"),
    ]


def test_one_rollout_a_task_gives_a_row_a_step():
    tasks = ["wins@3", "loses@2"]
    episodes = collect(
        CountingPool(2), Parrot(), ByteCodec(), tasks, group_size=1, max_prompt_tokens=99, seed=0
    )
    rollouts = Rollouts.from_steps(to_records(episodes, "format"))
    assert len(rollouts) == 5
    for name in ("grpo", "rloo", "gigpo", "milegpo"):
        advantages = make_estimator(name)(rollouts)
        assert advantages.shape == (5,)
        assert np.isfinite(advantages).all()


def test_fewer_tasks_than_an_iteration_asks_for_are_all_played_and_named_apart():
    schedule = TaskSchedule(TASK_IDS[:2], 5, seed=0)
    episodes = house(Scripted((1, END)), tasks=schedule.tasks(0), group_size=2)
    assert len({(e.task_id, e.trajectory_id) for e in episodes}) == len(episodes) == 10
    assert len(Rollouts.from_steps(to_records(episodes, "format"))) == 10 * HORIZON


def test_a_budget_no_prompt_fits_gives_episodes_without_rows():
    pool = house_pool(2)
    plan = assign(TASK_IDS[:1], 2)
    episodes = play(pool, Scripted((1,)), CODEC, plan, max_prompt_tokens=3, seed=0)
    pool.close()
    assert [(e.stop, e.steps) for e in episodes] == [("context", ())] * 2
    assert to_records(episodes, "format") == []


def test_a_budget_just_met_keeps_all_history_and_one_token_less_drops_the_oldest():
    long = house(Scripted((1, END)), tasks=TASK_IDS[:1], group_size=1)[0].steps[3].prompt_ids

    def fourth(budget):
        pool = house_pool(1)
        plan = assign(TASK_IDS[:1], 1)
        [e] = play(pool, Scripted((1, END)), CODEC, plan, max_prompt_tokens=budget, seed=0)
        pool.close()
        return e.steps[3].prompt_ids

    assert fourth(len(long)) == long
    assert len(fourth(len(long) - 1)) < len(long)


def test_an_unknown_log_prob_makes_the_ratio_exactly_one_and_is_counted():
    sampled = np.array([-1.0, np.nan, -0.5], dtype=np.float32)
    recomputed = np.array([-1.1, -2.0, -0.5], dtype=np.float32)
    filled, count = known_logprobs(sampled, recomputed)
    assert count == 1
    assert np.exp(recomputed - filled)[1] == 1.0
    assert (filled[[0, 2]] == sampled[[0, 2]]).all()
