"""Images in rollouts: at their places, counted, sampled with, refused where nobody can see."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from milegpo_algo.rollout.collect import play
from milegpo_algo.rollout.generator import images_of, with_images
from milegpo_algo.rollout.hf_backend import ChatCodec, HFGenerator
from milegpo_algo.rollout.metrics import Stopwatch, TimedGenerator
from milegpo_algo.rollout.vision import Vision, VisionCodec, VisionGenerator, reads_images
from tests.milegpo_algo.tiny import tiny_model, tiny_tokenizer
from tests.milegpo_algo.tiny_vision import (
    SIDE,
    TASKS,
    WORDS,
    TwoRooms,
    picture,
    qwen,
    qwen_processor,
)

PROCESSOR = qwen_processor()
CODEC, VISION = VisionCodec(PROCESSOR), Vision(PROCESSOR)
MODEL = qwen().eval()
PLACE = {"type": "image"}
END = WORDS.index("<|im_end|>")


def chat(*content):
    return [{"role": "user", "content": list(content)}]


def noise(seed, height=SIDE, width=SIDE):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def said(words):
    return {"type": "text", "text": words}


def shown(*images, words="door"):
    return with_images(chat(*[PLACE] * len(images), said(words)), images)


def generator(**settings):
    return VisionGenerator(MODEL, VISION, **{"end_ids": [END], "max_new_tokens": 5, **settings})


def test_images_go_to_their_places_in_order():
    one, two = noise(1), noise(2)
    messages = with_images(chat(PLACE, said("and"), PLACE), [one, two])
    found = images_of(messages)
    assert found[0] is one
    assert found[1] is two
    assert [part["type"] for part in messages[0]["content"]] == ["image", "text", "image"]


@pytest.mark.parametrize(("places", "images"), [(1, 2), (2, 1), (0, 1)])
def test_a_place_without_an_image_or_an_image_without_a_place_is_an_error(places, images):
    with pytest.raises(ValueError, match="place"):
        with_images(chat(said("x"), *[PLACE] * places), [noise(0)] * images)


def test_a_message_in_plain_text_has_no_images():
    messages = [{"role": "user", "content": "<image>"}]
    assert with_images(messages, []) == messages
    assert images_of(messages) == ()


def test_every_step_keeps_the_image_that_was_seen():
    episodes = play(
        TwoRooms(8),
        generator(max_new_tokens=1),
        CODEC,
        [(task, k) for task in TASKS for k in range(8)],
        max_prompt_tokens=32,
        seed=0,
    )
    seen = set()
    for episode in episodes:
        for step in episode.steps:
            room = int(step.state_id.split()[1])
            door = episode.task_id.split("-")[room]
            (image,) = step.images
            np.testing.assert_array_equal(image, picture(door))
            seen.add((room, door))
    assert len(seen) == 4


@pytest.mark.parametrize(("height", "width", "ids"), [(28, 28, 1), (56, 84, 6), (112, 28, 4)])
def test_a_prompt_counts_its_images_tokens(height, width, ids):
    prompt = CODEC.encode(shown(noise(0, height, width)))
    assert prompt.count(WORDS.index("<|image_pad|>")) == ids
    exact = PROCESSOR(
        text=[PROCESSOR.decode(CODEC.encode(shown(noise(0)))).strip()],
        images=[[noise(3, height, width)]],
    )["input_ids"][0]
    assert prompt == list(exact)


def test_a_prompt_whose_images_are_too_many_tokens_ends_the_episode():
    episodes = play(TwoRooms(1), generator(), CODEC, [(TASKS[0], 0)], max_prompt_tokens=9, seed=0)
    assert [episode.stop for episode in episodes] == ["context"]


BATCH = [
    shown(noise(1)),
    shown(noise(2, 56, 84), words="door ? left"),
    chat(said("door ?")),
    shown(noise(3), noise(4, 56, 28), words="right"),
]


def sample(batch, keys, **settings):
    return generator(**settings).generate(
        [CODEC.encode(messages) for messages in batch], keys, [images_of(m) for m in batch]
    )


def plain_logprobs(messages, reply, temperature):
    """One row, no cache, no padding."""
    prompt, images = CODEC.encode(messages), images_of(messages)
    ids = torch.tensor([[*prompt, *reply]])
    with torch.no_grad():
        logits = MODEL(input_ids=ids, **VISION.inputs(ids, [images])).logits[0] / temperature
    logits[:, list(VISION.never_sampled)] = -torch.inf
    picked = torch.log_softmax(logits, -1)[len(prompt) - 1 : -1]
    return picked.gather(1, torch.tensor(reply).unsqueeze(1)).squeeze(1).numpy()


@pytest.mark.parametrize("temperature", [1.0, 0.4])
def test_recorded_logprobs_are_those_of_a_plain_forward_pass(temperature):
    replies = sample(BATCH, range(4), temperature=temperature)
    for messages, reply in zip(BATCH, replies, strict=True):
        expected = plain_logprobs(messages, reply.token_ids, temperature)
        np.testing.assert_allclose(reply.logprobs, expected, atol=2e-5)


def test_a_row_gets_the_same_reply_alone_and_in_any_batch():
    together = sample(BATCH, [7, 8, 9, 10])
    assert sample(BATCH[::-1], [10, 9, 8, 7])[::-1] == pytest.approx(together)
    alone = [sample([m], [k])[0] for m, k in zip(BATCH, [7, 8, 9, 10], strict=True)]
    assert [r.token_ids for r in alone] == [r.token_ids for r in together]
    assert [r.token_ids for r in sample(BATCH, [7, 8, 9, 10], max_rows=1)] == [
        r.token_ids for r in together
    ]


def test_the_image_decides_what_is_said():
    dark, light = shown(picture("left")), shown(picture("right"))
    assert CODEC.encode(dark) == CODEC.encode(light)
    a, b = plain_logprobs(dark, [10], 1.0), plain_logprobs(light, [10], 1.0)
    assert abs(float(a[0] - b[0])) > 1e-3


def test_ids_of_images_are_never_sampled():
    replies = sample([shown(noise(1))] * 64, range(64), end_ids=[], max_new_tokens=8)
    said_ids = {i for reply in replies for i in reply.token_ids}
    assert said_ids == set(range(len(WORDS))) - set(VISION.never_sampled)
    assert set(VISION.never_sampled) == {
        WORDS.index("<|image_pad|>"),
        WORDS.index("<|video_pad|>"),
    }


def test_the_models_own_sampling_settings_do_not_count(monkeypatch):
    before = sample(BATCH, range(4))
    for name, value in (("repetition_penalty", 9.0), ("top_k", 1), ("no_repeat_ngram_size", 1)):
        monkeypatch.setattr(MODEL.generation_config, name, value)
    assert sample(BATCH, range(4)) == before


def test_a_reply_stops_at_an_end_or_at_its_length():
    replies = sample([shown(noise(1))] * 40, range(40))
    kinds = {reply.finish_reason for reply in replies}
    assert kinds == {"stop", "length"}
    for reply in replies:
        assert (reply.token_ids[-1] == END) is (reply.finish_reason == "stop")
        assert END not in reply.token_ids[:-1]
        assert len(reply.token_ids) <= 5


def test_a_text_model_refuses_images_and_says_what_to_do():
    tokenizer = tiny_tokenizer()
    with pytest.raises(ValueError, match="observation='text'"):
        ChatCodec(tokenizer).encode(shown(noise(0)))
    with pytest.raises(ValueError, match="vision-language"):
        HFGenerator(tiny_model(tokenizer), [2], 1).generate([[1]], [0], [[noise(0)]])


def test_a_family_with_other_inputs_is_refused():
    class Tiled(Vision):
        def __init__(self):
            super().__init__(PROCESSOR)
            self._process = lambda images, return_tensors: {
                "pixel_values": torch.zeros(1),
                "spatial_shapes": torch.zeros(1),
            }

    with pytest.raises(ValueError, match="spatial_shapes"):
        Tiled().inputs(torch.ones((1, 2), dtype=torch.long), [[noise(0)]])


def test_a_processor_needs_a_template():
    bare = qwen_processor()
    bare.chat_template = None
    with pytest.raises(ValueError, match="chat template"):
        VisionCodec(bare)


def test_a_setting_that_the_template_never_reads_is_refused():
    with pytest.raises(ValueError, match="enable_thinking"):
        VisionCodec(qwen_processor(), {"enable_thinking": False})


def test_configurations_tell_who_can_see():
    assert reads_images(MODEL.config)
    assert not reads_images(tiny_model(tiny_tokenizer()).config)


def test_generators_without_images_are_called_as_before():
    class TwoArguments:
        def generate(self, prompts, keys):
            return [(tuple(p), k) for p, k in zip(prompts, keys, strict=True)]

    timed = TimedGenerator(TwoArguments(), Stopwatch())
    assert timed.generate([[1], [2]], [3, 4]) == [((1,), 3), ((2,), 4)]
