"""Two rooms that are seen and not told, and tiny vision-language models to walk them.

Each room has two doors. The picture is dark on the side of the right one; the prompt says nothing.
The right door leads on, the wrong one ends the episode, any other word stays where it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    CLIPImageProcessorPil,
    LlavaConfig,
    LlavaForConditionalGeneration,
    LlavaProcessor,
    PreTrainedTokenizerFast,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen2_5_VLProcessor,
    Qwen2VLImageProcessorPil,
)

DOORS = ("left", "right")
TASKS = tuple(f"{first}-{second}" for first in DOORS for second in DOORS)
SPECIAL = ("<pad>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>")
SPECIAL = (*SPECIAL, "<|image_pad|>", "<|video_pad|>")
WORDS = (*SPECIAL, "user", "assistant", "door", "left", "right", "?")
TEMPLATE = (
    "{% for m in messages %}<|im_start|> {{ m['role'] }} {% for p in m['content'] %}"
    "{% if p['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% else %}{{ p['text'] }}{% endif %} {% endfor %}<|im_end|> {% endfor %}"
    "{% if add_generation_prompt %}<|im_start|> assistant{% endif %}"
)
SIDE = 28  # pixels


def picture(door: str, blank: bool = False) -> np.ndarray:
    """A room: dark where the right door is."""
    image = np.full((SIDE, SIDE, 3), 255, dtype=np.uint8)
    if not blank:
        image[:, : SIDE // 2] = 0 if door == "left" else 255
        image[:, SIDE // 2 :] = 0 if door == "right" else 255
    return image


class TwoRooms:
    """A pool of two-room episodes, four steps long at most; `blank` hides what there is to see."""

    def __init__(self, size: int, blank: bool = False) -> None:
        self._size, self._blank = size, blank

    def __len__(self) -> int:
        return self._size

    def reset(self, task_ids: Sequence[str]) -> list[tuple[object, Mapping[str, object]]]:
        self._doors = [task.split("-") for task in task_ids]
        self._room = [0] * len(task_ids)
        self._steps = [0] * len(task_ids)
        return [self._seen(slot, None) for slot in range(len(task_ids))]

    def step(self, actions: Mapping[int, str]) -> dict[int, tuple[object, ...]]:
        return {slot: self._step(slot, action.strip()) for slot, action in actions.items()}

    def _step(self, slot: int, action: str) -> tuple[object, ...]:
        right = self._doors[slot][self._room[slot]]
        self._steps[slot] += 1
        opened = action == right
        self._room[slot] += opened
        done = self._room[slot] == 2
        lost = action in DOORS and not opened
        messages, info = self._seen(slot, action)
        reward = 10.0 if done else 0.0
        return messages, reward, done or lost, self._steps[slot] == 4, info

    def _seen(self, slot: int, action: str | None) -> tuple[object, Mapping[str, object]]:
        room = min(self._room[slot], 1)
        task = "-".join(self._doors[slot])
        content = [{"type": "image"}, {"type": "text", "text": "door ?"}]
        info = {
            "task_id": task,
            "state_id": f"{task} {self._room[slot]}",
            "success": self._room[slot] == 2,
            "score": float(self._room[slot] == 2),
            "images": [picture(self._doors[slot][room], self._blank)],
            "executed_action": action,
            "format_valid": True,
            "action_valid": action is None or action in DOORS,
            "invalid_reason": None if action is None or action in DOORS else "no door",
        }
        return [{"role": "user", "content": content}], info


def tokenizer() -> PreTrainedTokenizerFast:
    """One id a word."""
    words = Tokenizer(models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="?"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made = PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="<pad>", eos_token="<|im_end|>", padding_side="left"
    )
    made.add_special_tokens({"additional_special_tokens": list(SPECIAL[3:])})
    return made


class WithoutVideo(Qwen2_5_VLProcessor):
    """Qwen2.5-VL's processor for images alone: its video part needs torchvision."""

    @classmethod
    def get_attributes(cls) -> list[str]:
        return ["image_processor", "tokenizer"]

    def __init__(self, image_processor, tokenizer, chat_template=None):
        self.image_token, self.video_token = "<|image_pad|>", "<|video_pad|>"
        self.image_token_id = tokenizer.convert_tokens_to_ids(self.image_token)
        self.video_token_id = tokenizer.convert_tokens_to_ids(self.video_token)
        super(Qwen2_5_VLProcessor, self).__init__(
            image_processor, tokenizer, chat_template=chat_template
        )


def qwen_processor() -> WithoutVideo:
    """One id for every 28 x 28 pixels."""
    images = Qwen2VLImageProcessorPil(size={"shortest_edge": SIDE**2, "longest_edge": 64 * SIDE**2})
    return WithoutVideo(images, tokenizer(), chat_template=TEMPLATE)


def _id(word: str) -> int:
    return WORDS.index(word)


TEXT = {
    "vocab_size": len(WORDS),
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 512,
    "pad_token_id": 0,
    "bos_token_id": None,
    "eos_token_id": 2,
}


def qwen(seed: int = 0) -> Qwen2_5_VLForConditionalGeneration:
    """A random Qwen2.5-VL: two layers of text, one of vision."""
    torch.manual_seed(seed)
    vision = {
        "depth": 1,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_heads": 2,
        "out_hidden_size": 32,
        "patch_size": 14,
        "window_size": 112,
        "fullatt_block_indexes": [0],
    }
    rope = {"rope_type": "default", "mrope_section": [2, 3, 3], "rope_theta": 10_000.0}
    config = Qwen2_5_VLConfig(
        text_config={**TEXT, "rope_parameters": rope},
        vision_config=vision,
        image_token_id=_id("<|image_pad|>"),
        video_token_id=_id("<|video_pad|>"),
        vision_start_token_id=_id("<|vision_start|>"),
        vision_end_token_id=_id("<|vision_end|>"),
        tie_word_embeddings=True,
    )
    return Qwen2_5_VLForConditionalGeneration(config)


def save_llava(folder: Path) -> str:
    """Save a random LLaVA and its processor, which load without torchvision."""
    torch.manual_seed(0)
    vision = {
        "model_type": "clip_vision_model",
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "image_size": SIDE,
        "patch_size": 14,
        "projection_dim": 32,
    }
    config = LlavaConfig(
        text_config={"model_type": "qwen2", **TEXT},
        vision_config=vision,
        image_token_index=_id("<|image_pad|>"),
        image_token_id=_id("<|image_pad|>"),
        vision_feature_layer=-1,
        vision_feature_select_strategy="full",
        image_seq_length=5,
        tie_word_embeddings=True,
    )
    LlavaForConditionalGeneration(config).save_pretrained(folder)
    processor = LlavaProcessor(
        CLIPImageProcessorPil(size={"height": SIDE, "width": SIDE}, do_center_crop=False),
        tokenizer(),
        patch_size=14,
        vision_feature_select_strategy="full",
        chat_template=TEMPLATE,
        image_token="<|image_pad|>",
        num_additional_image_tokens=1,
    )
    processor.save_pretrained(folder)
    return str(folder)
