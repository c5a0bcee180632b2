import numpy as np
import pytest
import torch
from transformers import GenerationConfig

from milegpo_algo.rollout.hf_backend import (
    ChatCodec,
    HFGenerator,
    uniforms,
)
from tests.milegpo_algo.rollout.fakes import user
from tests.milegpo_algo.tiny import lively_model, plain_logprobs, tiny_tokenizer

TOKENIZER = tiny_tokenizer()
END = TOKENIZER.eos_token_id
MODEL = lively_model(TOKENIZER)
RNG = np.random.default_rng(0)
PROMPTS = [RNG.integers(3, len(TOKENIZER), size=n).tolist() for n in (7, 1, 12, 7, 30, 2, 19, 7)]
PROMPTS[3] = PROMPTS[0]
KEYS = list(range(100, 100 + len(PROMPTS)))
MANY_ENDS = list(range(0, len(TOKENIZER), 6))


def generator(**settings) -> HFGenerator:
    return HFGenerator(MODEL, **{"end_ids": [END], "max_new_tokens": 8, **settings})


def test_uniforms_are_splitmix64():
    # First outputs for seed 0: e220a8397b1dcdaf, 6e789e6aa1b965f4, 06c45d188009454f
    expected = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    got = [uniforms(np.zeros(1, dtype=np.uint64), t)[0] for t in range(3)]
    np.testing.assert_array_equal(got, [(x >> 11) / 2**53 for x in expected])


def test_uniforms_are_uniform_over_keys_and_positions():
    keys = np.arange(2000, dtype=np.uint64)
    values = np.concatenate([uniforms(keys, t) for t in range(20)])
    counts = np.histogram(values, bins=20, range=(0, 1))[0]
    assert ((counts - 2000) ** 2 / 2000).sum() < 45  # chi-square, 19 degrees: p about 0.001


@pytest.mark.parametrize("max_rows", [1, 3, 8])
@pytest.mark.parametrize("ends", [[END], MANY_ENDS])
def test_a_row_is_sampled_alike_in_every_batch(max_rows, ends):
    whole = generator(end_ids=ends).generate(PROMPTS, KEYS)
    cut = generator(end_ids=ends, max_rows=max_rows).generate(PROMPTS[::-1], KEYS[::-1])[::-1]
    for one, other in zip(whole, cut, strict=True):
        assert one.token_ids == other.token_ids
        np.testing.assert_allclose(one.logprobs, other.logprobs, atol=1e-4)


def test_equal_prompts_with_different_keys_get_their_own_replies():
    samples = generator().generate(PROMPTS, KEYS)
    assert samples[0].token_ids != samples[3].token_ids


@pytest.mark.parametrize("temperature", [1.0, 0.4])
def test_logprobs_are_those_of_the_distribution_sampled_from(temperature):
    samples = generator(temperature=temperature, end_ids=MANY_ENDS).generate(PROMPTS, KEYS)
    for prompt, sample in zip(PROMPTS, samples, strict=True):
        np.testing.assert_allclose(
            sample.logprobs,
            plain_logprobs(MODEL, prompt, sample.token_ids, temperature),
            atol=1e-4,
        )


def test_first_tokens_follow_the_model_s_distribution():
    prompt, count = PROMPTS[0], 4000
    samples = generator(max_new_tokens=1, max_rows=count).generate([prompt] * count, range(count))
    frequency = np.bincount([s.token_ids[0] for s in samples], minlength=len(TOKENIZER)) / count
    with torch.no_grad():
        expected = torch.softmax(MODEL(torch.tensor([prompt])).logits[0, -1], -1).numpy()
    likely = expected > 0.01
    assert likely.sum() >= 5
    spread = np.sqrt(expected * (1 - expected) / count)
    assert (np.abs(frequency - expected)[likely] < 4 * spread[likely]).all()


def test_temperature_0_is_greedy_as_transformers_has_it():
    width = max(map(len, PROMPTS))
    ids = torch.tensor([[0] * (width - len(p)) + p for p in PROMPTS])
    mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in PROMPTS])
    config = GenerationConfig(max_new_tokens=8, do_sample=False, eos_token_id=END, pad_token_id=0)
    expected = MODEL.generate(ids, attention_mask=mask, generation_config=config)[:, width:]
    samples = generator(temperature=0.0).generate(PROMPTS, KEYS)
    for sample, row in zip(samples, expected.tolist(), strict=True):
        assert list(sample.token_ids) == row[: len(sample.token_ids)]
    assert samples == generator(temperature=0.0).generate(PROMPTS, [0] * len(KEYS))


def test_a_reply_ends_with_the_end_token_or_at_its_budget():
    samples = generator(end_ids=MANY_ENDS, max_new_tokens=4).generate(PROMPTS, KEYS)
    assert {s.finish_reason for s in samples} == {"stop", "length"}
    for sample in samples:
        *before, last = sample.token_ids
        assert not set(before) & set(MANY_ENDS)
        assert (last in MANY_ENDS) == (sample.finish_reason == "stop")
        assert len(sample.token_ids) == 4 or sample.finish_reason == "stop"
        assert len(sample.logprobs) == len(sample.token_ids)


def test_prompts_of_one_token_can_be_continued():
    [sample] = generator().generate([[5]], [1])
    np.testing.assert_allclose(
        sample.logprobs, plain_logprobs(MODEL, [5], sample.token_ids, 1.0), atol=1e-4
    )


def test_no_prompts_give_no_samples():
    assert generator().generate([], []) == []


def test_an_empty_prompt_is_refused():
    with pytest.raises(ValueError, match="empty prompt"):
        generator().generate([[1], []], [0, 1])


@pytest.mark.parametrize("training", [True, False])
def test_the_model_s_mode_is_left_as_it_was(training):
    MODEL.train(training)
    generator().generate(PROMPTS[:1], KEYS[:1])
    assert MODEL.training is training
    MODEL.eval()


# ---- text ------------------------------------------------------------------------------------


def test_encoding_is_the_chat_template_s():
    messages = user("reach the attic. <|im_end|> ünïcode 房间")
    expected = TOKENIZER.apply_chat_template(
        messages, add_generation_prompt=True, tokenize=True, return_dict=False
    )
    assert ChatCodec(TOKENIZER).encode(messages) == expected


def test_encoding_twice_is_encoding_once():
    codec = ChatCodec(TOKENIZER)
    first = codec.encode(user("hall"))
    first.append(99)  # the caller's copy
    assert codec.encode(user("hall")) == first[:-1]


def test_template_settings_reach_the_template():
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = (
        "{{ messages[0]['content'] }}{% if not enable_thinking %}<no>{% endif %}"
    )
    text = ChatCodec(tokenizer, {"enable_thinking": False}).encode(user("a"))
    assert tokenizer.decode(text) == "a<no>"


def test_an_empty_prompt_becomes_one_token():
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = "{{ messages[0]['content'] }}"
    assert ChatCodec(tokenizer).encode(user("")) == [END]


def test_decoding_leaves_out_special_tokens():
    codec = ChatCodec(TOKENIZER)
    ids = [*TOKENIZER("go to hall", add_special_tokens=False)["input_ids"], END]
    assert codec.decode(ids) == "go to hall"
    assert codec.decode([]) == ""


def test_a_tokenizer_without_chat_template_is_refused():
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = None
    with pytest.raises(ValueError, match="no chat template"):
        ChatCodec(tokenizer)


def test_a_setting_that_the_template_never_reads_is_refused_by_name():
    with pytest.raises(ValueError, match="does not read enable_thinkin"):
        ChatCodec(tiny_tokenizer(), {"enable_thinkin": False})
