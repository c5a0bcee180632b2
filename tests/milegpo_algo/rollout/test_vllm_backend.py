"""TRL's own client and weight streaming against a faked engine."""

from __future__ import annotations

import inspect
import math
import threading

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from peft import LoraConfig, get_peft_model

from milegpo_algo.rollout.collect import assign, play
from milegpo_algo.rollout.hf_backend import ChatCodec, HFGenerator
from milegpo_algo.rollout.probe import EngineStale, check_follows, last_trainable, probe
from milegpo_algo.rollout.vllm_backend import VLLMEngine
from milegpo_algo.rollout.vllm_requests import Sampling
from tests.milegpo_algo.rollout.fake_vllm import Engine, Server, installed, trl_generation
from tests.milegpo_algo.tiny import (
    TASK_IDS,
    house_pool,
    lively_model,
    plain_logprobs,
    tiny_tokenizer,
)

TOKENIZER = tiny_tokenizer()
END = TOKENIZER.eos_token_id
MANY_ENDS = [END, *range(0, len(TOKENIZER), 9)]  # so that replies differ in length
PROMPTS = [TOKENIZER(text)["input_ids"] for text in ("go to the hall", "take", "go to the hall")]
KEYS = [2**63 + 5, 7, 11]
SAMPLING = Sampling(end_ids=MANY_ENDS, max_new_tokens=8)


@pytest.fixture(scope="module", autouse=True)
def stubs():
    with installed():
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    lively_model(TOKENIZER).save_pretrained(folder)
    return str(folder)


@pytest.fixture
def server(folder):
    server = Server(Engine.load(folder))
    yield server
    server.close()


def generation_of(model, server=None, **settings):
    return trl_generation.VLLMGeneration(
        model,
        Accelerator(cpu=True),
        TOKENIZER,
        mode="colocate" if server is None else "server",
        server_base_url=None if server is None else server.url,
        max_model_length=512,
        **settings,
    )


def model_of(folder):
    return Engine.load(folder).model


def shift(model, by=0.05):
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(by * torch.randn(weight.shape))


@pytest.fixture(params=["server", "colocate", "sleeping"])
def engine(request, folder, server):
    model = model_of(folder)
    if request.param == "server":
        return VLLMEngine(generation_of(model, server))
    return VLLMEngine(generation_of(model, enable_sleep_mode=request.param == "sleeping"))


def test_replies_are_those_of_the_policy_with_its_log_probs(engine):
    model = engine.generation.model
    shift(model)  # the engine loaded older weights
    with engine.rollout(0, SAMPLING) as generator:
        samples = generator.generate(PROMPTS, KEYS)
    assert samples[0].token_ids != samples[2].token_ids  # one prompt, two keys
    expected = HFGenerator(model, MANY_ENDS, 8).generate(PROMPTS, [key >> 1 for key in KEYS])
    for prompt, sample, own in zip(PROMPTS, samples, expected, strict=True):
        assert (sample.token_ids, sample.finish_reason) == (own.token_ids, own.finish_reason)
        plain = plain_logprobs(model, prompt, sample.token_ids, 1.0)
        np.testing.assert_allclose(sample.logprobs, plain, atol=1e-5)


def test_a_row_s_reply_depends_on_its_prompt_and_key_alone(engine):
    with engine.rollout(0, SAMPLING) as generator:
        assert generator.generate(PROMPTS, KEYS)[1] == generator.generate(PROMPTS[1:2], [7])[0]


def test_a_colocated_engine_is_shown_the_images_of_each_row(folder, monkeypatch):
    engine = VLLMEngine(generation_of(model_of(folder)))
    asked = []
    answer = engine.generation.llm.generate

    def watched(prompts, sampling_params, use_tqdm):
        asked.extend(zip(prompts, sampling_params, strict=True))
        return answer(prompts, sampling_params, use_tqdm)

    monkeypatch.setattr(engine.generation.llm, "generate", watched)
    one = np.random.default_rng(0).integers(0, 256, (4, 6, 3), np.uint8)
    two = np.zeros((2, 2, 3), np.uint8)
    with engine.rollout(0, Sampling(MANY_ENDS, 8, never=(5, 6))) as generator:
        generator.generate(PROMPTS[:3], KEYS[:3], [[one], [], [two, one]])
        generator.generate(PROMPTS[:1], KEYS[:1])
    shown = [prompt.get("multi_modal_data", {}).get("image", []) for prompt, _ in asked]
    assert [len(images) for images in shown] == [1, 0, 2, 0]
    np.testing.assert_array_equal(np.asarray(shown[0][0]), one)
    np.testing.assert_array_equal(np.asarray(shown[2][0]), two)
    assert [prompt["prompt_token_ids"] for prompt, _ in asked[:3]] == [list(p) for p in PROMPTS[:3]]
    assert all(own.logit_bias == {5: -100.0, 6: -100.0} for _, own in asked)


def test_a_server_is_not_sent_images(folder, server):
    engine = VLLMEngine(generation_of(model_of(folder), server))
    with (
        pytest.raises(ValueError, match="colocate"),
        engine.rollout(0, SAMPLING) as generator,
    ):
        generator.generate(PROMPTS[:1], KEYS[:1], [[np.zeros((2, 2, 3), np.uint8)]])


def test_weights_go_to_a_server_once_a_version(folder, server):
    engine = VLLMEngine(generation_of(model_of(folder), server))
    for version in (0, 0, 1):
        with engine.rollout(version, SAMPLING) as generator:
            for _ in range(3):
                generator.generate(PROMPTS, KEYS)
    assert server.calls["update_weights"] == 2
    assert server.calls["v1/completions"] == 3 * 3 * len(PROMPTS)


def test_without_seeds_a_server_is_asked_once_a_step(folder, server):
    engine = VLLMEngine(generation_of(model_of(folder), server))
    with engine.rollout(0, Sampling(MANY_ENDS, 8, seeded=False)) as generator:
        samples = generator.generate(PROMPTS, KEYS)
    assert server.calls["v1/completions"] == 1
    for prompt, sample in zip(PROMPTS, samples, strict=True):
        plain = plain_logprobs(server.engine.model, prompt, sample.token_ids, 1.0)
        np.testing.assert_allclose(sample.logprobs, plain, atol=1e-5)


def test_a_sleeping_engine_is_woken_once_a_rollout_and_given_its_weights_back(folder):
    engine = VLLMEngine(generation_of(model_of(folder), enable_sleep_mode=True))
    log = engine.generation.llm.log
    for version in (0, 0):  # training, then evaluation: its sleep cost the engine its weights
        log.clear()
        with engine.rollout(version, SAMPLING) as generator:
            generator.generate(PROMPTS, KEYS)
            samples = generator.generate(PROMPTS, KEYS)
        known = [entry for i, entry in enumerate(log) if entry != (log[i - 1] if i else None)]
        assert known == ["wake weights", "weights", "reset", "wake kv_cache", "generate", "sleep"]
    assert not any(math.isnan(value) for sample in samples for value in sample.logprobs)


def test_an_engine_sleeps_after_a_rollout_that_failed(folder):
    engine = VLLMEngine(generation_of(model_of(folder), enable_sleep_mode=True))
    with pytest.raises(KeyError), engine.rollout(0, SAMPLING):
        raise KeyError
    assert engine.generation.llm.log[-1] == "sleep"


def test_a_log_prob_the_engine_cannot_tell_is_nan(folder, server):
    engine = VLLMEngine(generation_of(model_of(folder), server))
    with engine.rollout(0, SAMPLING) as generator:
        [before] = generator.generate(PROMPTS[:1], KEYS[:1])
        server.unknown = before.token_ids[1]
        [sample] = generator.generate(PROMPTS[:1], KEYS[:1])
    assert sample.token_ids == before.token_ids
    for token, value, known in zip(sample.token_ids, sample.logprobs, before.logprobs, strict=True):
        assert math.isnan(value) if token == server.unknown else value == known


def test_a_server_without_log_probs_gives_none(folder, server, monkeypatch):
    engine = VLLMEngine(generation_of(model_of(folder), server))
    choice = server._choice
    monkeypatch.setattr(server, "_choice", lambda *a: {**choice(*a), "logprobs": None})
    with engine.rollout(0, SAMPLING) as generator:
        assert [s.logprobs for s in generator.generate(PROMPTS, KEYS)] == [None] * 3


@pytest.mark.parametrize("mode", ["server", "colocate"])
@pytest.mark.parametrize("adapter", [True, False])
def test_an_engine_follows_the_weights_that_are_trained(folder, server, mode, adapter):
    model = model_of(folder)
    if adapter:
        model = get_peft_model(model, LoraConfig(r=4, target_modules=["q_proj", "v_proj"]))
    generation = generation_of(model, server if mode == "server" else None)
    versions = iter(range(9))

    def look():
        with VLLMEngine(generation).rollout(next(versions), Sampling([END], 1, 0.0)) as generator:
            return probe(generator, PROMPTS)

    parameters = last_trainable(model)
    before = [parameter.detach().clone() for parameter in parameters]
    check_follows(look, parameters)
    assert all(torch.equal(a, b) for a, b in zip(before, parameters, strict=True))

    generation.sync_weights = lambda: None
    with pytest.raises(EngineStale, match="did not change"):
        check_follows(look, parameters)


def test_an_engine_that_lags_behind_is_found(folder):
    model = model_of(folder)
    own = HFGenerator(model, [END], 1, 0.0)
    seen = []

    def look():
        seen.append(probe(own, PROMPTS))
        return seen[-2 if len(seen) > 1 else -1]  # one update late

    with pytest.raises(EngineStale, match=r"did not change|lags behind"):
        check_follows(look, last_trainable(model))


def test_a_prompt_and_reply_too_long_for_the_engine_are_refused_before_the_run(engine, server):
    server.room = 512
    engine.check_room(512)
    with pytest.raises(ValueError, match=r"512 tokens.* are 513"):
        engine.check_room(513)


def test_an_empty_prompt_is_refused(engine):
    with engine.rollout(0, SAMPLING) as generator, pytest.raises(ValueError, match="empty prompt"):
        generator.generate([[1], []], [0, 1])


def test_whole_episodes_are_those_of_transformers(folder, server):
    engine = VLLMEngine(generation_of(model_of(folder), server))
    codec, pool = ChatCodec(TOKENIZER), house_pool(4, max_episode_steps=3)
    settings = {"max_prompt_tokens": 400, "seed": 3}
    sampling = Sampling([END], 6)
    with engine.rollout(0, sampling) as generator:
        episodes = play(pool, generator, codec, assign(TASK_IDS[:2], 2), **settings)

    class SameSeeds(HFGenerator):
        def generate(self, prompts, keys):
            return super().generate(prompts, [key >> 1 for key in keys])

    own = SameSeeds(model_of(folder), [END], 6, max_rows=1)
    expected = play(pool, own, codec, assign(TASK_IDS[:2], 2), **settings)
    assert episodes == expected
    pool.close()


# ---- several processes ---------------------------------------------------------------------------


class Threads:
    """Processes played by threads."""

    def __init__(self, size: int) -> None:
        self.barrier = threading.Barrier(size, timeout=20)
        self.desk: list[object] = [None] * size

    def rank(self, index: int):
        return ThreadRank(self, index)


class ThreadRank:
    def __init__(self, all_of_them: Threads, index: int) -> None:
        self.threads, self.index = all_of_them, index

    def gather(self, mine):
        self.threads.desk[self.index] = mine
        self.threads.barrier.wait()
        everyone = list(self.threads.desk)
        self.threads.barrier.wait()
        return everyone

    def agree(self, compute):
        return self.gather(compute() if self.index == 0 else None)[0]


def test_processes_with_different_numbers_of_rows_get_their_own_text(folder, server):
    """Three processes: seven, no and two calls, with one to three rows each."""
    generation = generation_of(model_of(folder), server)
    threads, plan = Threads(3), {0: [3, 1, 2, 1, 1, 3, 1], 1: [], 2: [2, 3]}
    got: dict[int, list[object]] = {}

    def run(index):
        engine = VLLMEngine(generation, threads.rank(index))
        engine.version = 0
        with engine.rollout(0, SAMPLING) as generator:
            got[index] = [
                generator.generate(PROMPTS[:count], [100 * index + t] * count)
                for t, count in enumerate(plan[index])
            ]

    running = [threading.Thread(target=run, args=(index,)) for index in plan]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(30)
    own = HFGenerator(server.engine.model, MANY_ENDS, 8, max_rows=1)
    for index, counts in plan.items():
        assert got[index] == [
            own.generate(PROMPTS[:count], [(100 * index + t) >> 1] * count)
            for t, count in enumerate(counts)
        ]


# ---- what is used of TRL ---------------------------------------------------------------------


def test_trl_s_client_takes_the_settings_that_are_sent():
    from trl.generation.vllm_client import VLLMClient

    taken = set(inspect.signature(VLLMClient.generate).parameters)
    assert {"prompts", "generation_kwargs", *SAMPLING.settings()} <= taken
    assert "logprob_token_ids" in inspect.getsource(VLLMClient.generate)
    assert callable(VLLMClient.get_server_info)


@pytest.mark.parametrize(
    "name",
    [
        "mode",
        "enable_sleep_mode",
        "tensor_parallel_size",
        "accelerator",
        "llm",
        "vllm_client",
        "tp_group",
        "_llm_weights_sleeping",
    ],
)
def test_trl_s_engine_still_has(name):
    assert f"self.{name}" in inspect.getsource(trl_generation.VLLMGeneration)


def test_trl_still_wakes_the_weights_when_it_sends_them():
    source = inspect.getsource(trl_generation.VLLMGeneration.sync_weights)
    assert 'wake_up(tags=["weights"])' in source
    assert "self._llm_weights_sleeping = False" in source
