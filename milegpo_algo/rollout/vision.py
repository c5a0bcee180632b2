"""Models that read images: prompts with places for them, sampling, and what a forward pass is fed.

A row carries its images as they came from the environment, uint8 arrays; the processor's tensors
are made when a batch is put together and kept nowhere. Ids of prompts hold one id for each patch of
an image that the language model sees, so a prompt's budget counts them.

Sampling goes through `model.generate`, since every family counts its positions in its own way (two
axes of an image, or patches in a row); which token comes next is decided here, by each row's own
random numbers, as in `hf_backend`. Tested with Qwen2.5-VL and LLaVA. Leaves out: video, sound, and
families that need more than `IMAGE_INPUTS`, such as Gemma 3 and tiled LFM2-VL or InternVL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import (
    GenerationConfig,
    LogitsProcessor,
    LogitsProcessorList,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    ProcessorMixin,
)

from milegpo_algo.rollout.generator import Codec, Generator, Image, Messages, Sample, images_of
from milegpo_algo.rollout.hf_backend import (
    ChatCodec,
    HFGenerator,
    check_template,
    choose,
    in_batches,
    uniforms,
)

IMAGE_INPUTS = ("pixel_values", "image_grid_thw", "image_sizes", "pixel_attention_mask")
"""Arguments of a model's forward pass that processors make of images alone."""

MODALITIES = "mm_token_type_ids"
"""Argument that tells ids of images from ids of text, for families that want it."""


def reads_images(config: PretrainedConfig) -> bool:
    """Whether a model of this configuration takes images."""
    return "vision_config" in config.to_dict()


Processing = PreTrainedTokenizerBase | ProcessorMixin
"""A tokenizer, or the processor of a vision-language model."""


def codec_of(
    processing: Processing, template_settings: Mapping[str, object] | None = None
) -> Codec:
    """The codec of a model, by what it is fed with."""
    if isinstance(processing, ProcessorMixin):
        return VisionCodec(processing, template_settings)
    return ChatCodec(processing, template_settings)


def vision_of(processing: Processing) -> Vision | None:
    """What makes inputs of images; None for a model that reads text only."""
    return Vision(processing) if isinstance(processing, ProcessorMixin) else None


def generator_of(
    model: PreTrainedModel,
    vision: Vision | None,
    end_ids: Sequence[int],
    max_new_tokens: int,
    temperature: float,
    max_rows: int = 128,
) -> Generator:
    """The sampler of a model; see `HFGenerator` and `VisionGenerator`."""
    if vision is None:
        return HFGenerator(model, end_ids, max_new_tokens, temperature, max_rows)
    return VisionGenerator(model, vision, end_ids, max_new_tokens, temperature, max_rows)


def tokenizer_of(processing: Processing) -> PreTrainedTokenizerBase:
    """The tokenizer, alone or within a processor."""
    if isinstance(processing, PreTrainedTokenizerBase):
        return processing
    return cast(PreTrainedTokenizerBase, processing.tokenizer)


class VisionCodec:
    """A processor with its chat template, as a `Codec`.

    Args:
        processor: of a vision-language model.
        template_settings: passed to the template.
        cache_size: prompts remembered, by text and sizes of images, on which alone the ids depend.
    """

    def __init__(
        self,
        processor: ProcessorMixin,
        template_settings: Mapping[str, object] | None = None,
        cache_size: int = 4096,
    ) -> None:
        if not processor.chat_template:
            raise ValueError(
                "The processor has no chat template. Set processor.chat_template, or use an "
                "instruction-tuned model."
            )
        self.processor = processor
        self.template_settings = dict(template_settings or {})
        check_template(str(processor.chat_template), self.template_settings)
        self._ids_of = lru_cache(cache_size)(self._encode)

    def encode(self, messages: Messages) -> list[int]:
        """Token ids of the messages and the opening of the assistant's turn."""
        render = cast(Callable[..., str], self.processor.apply_chat_template)
        text = render(
            [{**message, "content": _in_parts(message["content"])} for message in messages],
            tokenize=False,
            add_generation_prompt=True,
            **self.template_settings,
        )
        shapes = tuple(image.shape for image in images_of(messages))
        return list(self._ids_of(text, shapes))

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text of the ids, special tokens left out."""
        tokenizer = tokenizer_of(self.processor)
        return cast(str, tokenizer.decode(list(token_ids), skip_special_tokens=True))

    def _encode(self, text: str, shapes: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
        blank = [np.zeros(shape, dtype=np.uint8) for shape in shapes]
        images = {"images": [blank]} if blank else {}
        encoded = self.processor(text=[text], add_special_tokens=False, **images)
        return tuple(int(i) for i in encoded["input_ids"][0])


def _in_parts(content: object) -> list[dict[str, object]]:
    """A content as chat templates of vision-language models want it, without the pixels."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    parts = cast("Sequence[Mapping[str, object]]", content)
    return [{k: v for k, v in part.items() if k != "image"} for part in parts]


class Vision:
    """What a model's forward pass is fed beside ids and masks.

    Args:
        processor: of the model.
    """

    def __init__(self, processor: ProcessorMixin) -> None:
        self._process = processor.image_processor
        ids = {*processor.image_token_ids, *processor.video_token_ids, *processor.audio_token_ids}
        self._marks = torch.tensor([i for i in processor.image_token_ids if i is not None])
        self._tells_modalities = MODALITIES in processor.model_input_names
        self.never_sampled: tuple[int, ...] = tuple(sorted(i for i in ids if i is not None))
        """Ids that stand for images, video and sound, and mean nothing in a reply."""

    def inputs(
        self, ids: torch.Tensor, images: Sequence[Sequence[Image]]
    ) -> dict[str, torch.Tensor]:
        """Tensors of a batch, images in the order of rows; nothing for a batch without images.

        Args:
            ids: (B, L), of prompts or of prompts and replies.
            images: of each row, in the order of their places.

        Raises:
            ValueError: the model's family is not supported.
        """
        if not any(images):
            return {}
        shown = [list(row) for row in images if row]
        made = dict(self._process(images=shown, return_tensors="pt"))
        strange = sorted(made.keys() - set(IMAGE_INPUTS))
        if strange:
            raise ValueError(
                f"{type(self._process).__name__} makes {', '.join(strange)}, which is not "
                "supported: take a model such as Qwen2.5-VL or LLaVA."
            )
        tensors = {name: torch.as_tensor(made[name]).to(ids.device) for name in made}
        if self._tells_modalities:
            tensors[MODALITIES] = torch.isin(ids, self._marks.to(ids.device)).long()
        return tensors


@dataclass
class VisionGenerator:
    """Samples from a vision-language model of transformers; text-only rows are welcome.

    Ids of images are never sampled: in training they would call for images that are not there.
    Log-probs are of the distribution without them.

    Attributes:
        model: the policy. It is put in evaluation mode while sampling and back afterwards.
        vision: makes the inputs.
        end_ids: ids that end a reply; the one sampled is kept as the reply's last id.
        max_new_tokens: longest reply.
        temperature: divides the logits; 0 takes the most likely token.
        max_rows: rows sampled at once; a longer list is sorted by length and cut.
    """

    model: PreTrainedModel
    vision: Vision
    end_ids: Sequence[int]
    max_new_tokens: int
    temperature: float = 1.0
    max_rows: int = 128

    @torch.no_grad()
    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        keys: Sequence[int],
        images: Sequence[Sequence[Image]] = (),
    ) -> list[Sample]:
        """Sample one reply per prompt; see `HFGenerator.generate`."""
        shown = images or [()] * len(prompts)
        return in_batches(
            self.model,
            prompts,
            self.max_rows,
            lambda rows: self._sample(
                [prompts[i] for i in rows], [keys[i] for i in rows], [shown[i] for i in rows]
            ),
        )

    def _sample(
        self,
        prompts: Sequence[Sequence[int]],
        keys: Sequence[int],
        images: Sequence[Sequence[Image]],
    ) -> list[Sample]:
        width = max(len(prompt) for prompt in prompts)
        ids = torch.zeros((len(prompts), width), dtype=torch.long)
        mask = torch.zeros_like(ids)
        for i, prompt in enumerate(prompts):  # padded on the left
            ids[i, width - len(prompt) :] = torch.tensor(prompt)
            mask[i, width - len(prompt) :] = 1
        ids, mask = ids.to(self.model.device), mask.to(self.model.device)
        chosen = _Choosing(np.asarray(keys, dtype=np.uint64), self.temperature, self._forbidden)
        generate = cast("Callable[..., object]", self.model.generate)
        generate(
            inputs=ids,
            attention_mask=mask,
            **self.vision.inputs(ids, images),
            generation_config=GenerationConfig(
                max_new_tokens=self.max_new_tokens,
                do_sample=False,
                eos_token_id=list(self.end_ids),
                pad_token_id=0,
                # not those of the model's own settings, which fill up what is not named here
                repetition_penalty=1.0,
                no_repeat_ngram_size=0,
            ),
            logits_processor=LogitsProcessorList([chosen]),
        )
        return chosen.samples(self.end_ids)

    @property
    def _forbidden(self) -> torch.Tensor:
        return torch.tensor(self.vision.never_sampled, dtype=torch.long, device=self.model.device)


@dataclass
class _Choosing(LogitsProcessor):  # type: ignore[misc,unused-ignore]
    """Leaves of each row's logits the one token that its random numbers choose; remembers all."""

    keys: NDArray[np.uint64]
    temperature: float
    forbidden: torch.Tensor
    ids: list[NDArray[np.int64]] = field(default_factory=list)  # (B,), one array a step
    logprobs: list[NDArray[np.float32]] = field(default_factory=list)

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        allowed = scores.float().index_fill(1, self.forbidden, -torch.inf)
        tokens, logprobs = choose(allowed, uniforms(self.keys, len(self.ids)), self.temperature)
        self.ids.append(tokens.cpu().numpy())
        self.logprobs.append(logprobs.cpu().numpy())
        only = torch.full_like(scores, -torch.inf)
        return only.scatter(1, tokens.unsqueeze(1), 0.0)

    def samples(self, end_ids: Sequence[int]) -> list[Sample]:
        """One sample a row, cut after its first id that ends a reply."""
        ids, logprobs = np.stack(self.ids, axis=1), np.stack(self.logprobs, axis=1)
        samples = []
        for row, values in zip(ids, logprobs, strict=True):
            ends = np.flatnonzero(np.isin(row, end_ids))
            length = int(ends[0]) + 1 if len(ends) else len(row)
            samples.append(
                Sample(
                    token_ids=tuple(row[:length].tolist()),
                    logprobs=tuple(values[:length].tolist()),
                    finish_reason="stop" if len(ends) else "length",
                )
            )
        return samples
