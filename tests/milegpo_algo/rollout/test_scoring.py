import numpy as np
import pytest
import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from milegpo_algo.rollout.prefix import can_read, read
from milegpo_algo.rollout.scoring import completion_logprobs
from tests.milegpo_algo.tiny import lively_model, plain_logprobs, tiny_tokenizer

MODEL = lively_model(tiny_tokenizer())
RNG = np.random.default_rng(0)
PROMPTS = [RNG.integers(3, 300, size=n).tolist() for n in (7, 1, 12, 7, 30, 2, 19, 7)]
PROMPTS[3] = PROMPTS[0]


def layout(prompts, completions, fill=0):
    """TRL's layout: prompts padded on the left, completions on the right."""
    width = max(map(len, prompts))
    room = max(map(len, completions))
    ids = [[fill] * (width - len(p)) + p for p in prompts]
    mask = [[0] * (width - len(p)) + [1] * len(p) for p in prompts]
    for row, c in enumerate(completions):
        ids[row] += [*c] + [fill] * (room - len(c))
        mask[row] += [1] * len(c) + [0] * (room - len(c))
    return torch.tensor(ids), torch.tensor(mask), room


COMPLETIONS = [[4, 9, 2], [7], [8, 8, 8, 8, 8], [1, 2], [3], [9, 9], [30], [31, 2]]


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_completion_logprobs_are_those_of_each_row_alone(temperature):
    ids, mask, room = layout(PROMPTS, COMPLETIONS)
    with torch.no_grad():
        values, entropies = completion_logprobs(
            MODEL, MODEL, ids, mask, room, temperature=temperature
        )
    for row, (prompt, completion) in enumerate(zip(PROMPTS, COMPLETIONS, strict=True)):
        expected = plain_logprobs(MODEL, prompt, completion, temperature)
        np.testing.assert_allclose(values[row, : len(completion)], expected, atol=1e-4)
        assert (values[row, len(completion) :] == 0).all()
        assert (entropies[row, len(completion) :] == 0).all()
        assert (entropies[row, : len(completion)] > 0).all()


def test_ids_at_masked_places_change_neither_value_nor_gradient():
    def result(fill):
        MODEL.zero_grad()
        ids, mask, room = layout(PROMPTS, COMPLETIONS, fill)
        values, _ = completion_logprobs(MODEL, MODEL, ids, mask, room, temperature=1.0)
        values.sum().backward()
        return values.detach(), MODEL.model.layers[0].mlp.up_proj.weight.grad.clone()

    (value, gradient), (other_value, other_gradient) = result(0), result(11)
    torch.testing.assert_close(value, other_value, rtol=0, atol=0)
    torch.testing.assert_close(gradient, other_gradient, rtol=0, atol=0)


def test_entropy_has_a_gradient_only_on_demand():
    ids, mask, room = layout(PROMPTS, COMPLETIONS)
    for wanted in (True, False):
        _, entropy = completion_logprobs(
            MODEL, MODEL, ids, mask, room, temperature=1.0, entropy_gradient=wanted
        )
        assert entropy.requires_grad is wanted


def test_the_gradient_is_that_of_one_forward_pass_over_whole_rows():
    ids, mask, room = layout(PROMPTS, COMPLETIONS)
    MODEL.zero_grad()
    values, _ = completion_logprobs(MODEL, MODEL, ids, mask, room, temperature=1.0)
    values.sum().backward()
    got = [p.grad.clone() for p in MODEL.parameters()]
    MODEL.zero_grad()
    for prompt, completion in zip(PROMPTS, COMPLETIONS, strict=True):
        logits = MODEL(torch.tensor([[*prompt, *completion]])).logits[0, len(prompt) - 1 : -1]
        targets = torch.tensor(completion).unsqueeze(1)
        torch.log_softmax(logits, -1).gather(1, targets).sum().backward()
    for mine, whole in zip(got, MODEL.parameters(), strict=True):
        torch.testing.assert_close(mine, whole.grad, rtol=1e-3, atol=1e-3)


def test_prompts_of_one_token_need_no_cache():
    ids, mask, room = layout([[5], [6]], [[7, 8], [9]])
    with torch.no_grad():
        values, _ = completion_logprobs(MODEL, MODEL, ids, mask, room, temperature=1.0)
    np.testing.assert_allclose(values[0], plain_logprobs(MODEL, [5], [7, 8], 1.0), atol=1e-4)


def test_reading_stops_before_the_last_layer_s_feed_forward():
    calls = []
    hooks = [
        layer.mlp.register_forward_hook(lambda *_, i=i: calls.append(i))
        for i, layer in enumerate(MODEL.model.layers)
    ]
    read(MODEL, torch.tensor([[5, 6, 7]]))
    for hook in hooks:
        hook.remove()
    assert calls == [0]


def test_what_is_read_is_what_a_whole_pass_caches():
    ids = torch.tensor([[5, 6, 7], [8, 9, 10]])
    with torch.no_grad():
        whole = MODEL(ids, use_cache=True).past_key_values
        for (keys, values), layer in zip(read(MODEL, ids), whole.layers, strict=True):
            torch.testing.assert_close(keys, layer.keys)
            torch.testing.assert_close(values, layer.values)


def test_models_that_see_a_window_or_are_checkpointed_are_not_taken_apart():
    windowed = Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=32,
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=1,
            intermediate_size=16,
            use_sliding_window=True,
            sliding_window=4,
            max_window_layers=1,
        )
    )
    assert not can_read(windowed)
    assert can_read(MODEL)
    checkpointed = lively_model(tiny_tokenizer())
    checkpointed.gradient_checkpointing_enable()
    checkpointed.train()
    assert not can_read(checkpointed)
    checkpointed.eval()
    assert can_read(checkpointed)
