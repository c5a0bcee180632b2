"""Prompts read apart from replies, into a key/value cache and no further than replies need.

Of a prompt, a reply needs the keys and values of every layer and nothing else. So a prompt is read
up to the keys and values of the last layer, and not through that layer's attention and feed-forward
part. In training the gradient flows back through the cache. Small models gain most (a third of the
time with two layers); equal prompts, such as those of the rollouts of one task at their first step,
gain in models of any size.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import cast

import torch
from transformers import PreTrainedModel
from transformers.cache_utils import Cache, CacheLayerMixin, DynamicLayer

Layers = list[tuple[torch.Tensor, torch.Tensor]]
"""Keys and values of each layer: (B, H, P, d)."""


_LAYER: Callable[[], DynamicLayer] = DynamicLayer  # transformers leaves the constructor untyped


class _PromptRead(Exception):
    """The last layer's keys and values are in the cache."""


class _LastLayer(DynamicLayer):
    """Ends the forward pass that fills it."""

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: object, **kwargs: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        self.lazy_initialization(key_states, value_states)
        self.keys, self.values = key_states, value_states
        raise _PromptRead


class RoomyLayer(DynamicLayer):
    """A cache layer with room for the whole reply: a new token is written, nothing is copied.

    Args:
        room: keys and values (2, B, H, P + C, d).
        filled: P.
    """

    def __init__(self, room: torch.Tensor, filled: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # transformers leaves it so
        self.dtype, self.device, self.is_initialized = room.dtype, room.device, True
        self.room, self.filled = room, filled
        self._show()

    def _show(self) -> tuple[torch.Tensor, torch.Tensor]:
        keys, values = self.room[:, :, :, : self.filled]
        self.keys, self.values = keys, values
        return keys, values

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: object, **kwargs: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write the new tokens' keys and values; all of them so far."""
        end = self.filled + key_states.shape[-2]
        self.room[0, :, :, self.filled : end] = key_states
        self.room[1, :, :, self.filled : end] = value_states
        self.filled = end
        return self._show()

    def keep(self, rows: torch.Tensor) -> None:
        """Drop all other rows."""
        self.room = self.room.index_select(1, rows)
        self._show()


def read(model: PreTrainedModel, ids: torch.Tensor) -> Layers:
    """Keys and values of prompts padded on the right (B, P), where causal attention never looks.

    No mask is needed for that; what stands at padded places is for the reader to mask.
    """
    count = layer_count(model)
    last: Callable[[], DynamicLayer] = _LastLayer
    layers = [*(_LAYER() for _ in range(count - 1)), last()]
    with contextlib.suppress(_PromptRead):
        model(input_ids=ids, past_key_values=Cache(layers=list(layers)), use_cache=True)
    return [(cast(torch.Tensor, layer.keys), cast(torch.Tensor, layer.values)) for layer in layers]


def cache_of(layers: Layers) -> Cache:
    """A cache that continues after what was read."""
    held: list[CacheLayerMixin] = []
    for keys, values in layers:
        layer = _LAYER()
        layer.lazy_initialization(keys, values)
        layer.keys, layer.values = keys, values
        held.append(layer)
    return Cache(layers=list(held))


def layer_count(model: PreTrainedModel) -> int:
    """Layers of the model, each of which keeps its own keys and values."""
    return cast(int, model.config.get_text_config().num_hidden_layers)


def can_read(model: PreTrainedModel) -> bool:
    """Whether training can take a model's prompts apart from its replies.

    It cannot where a layer sees a window of slots (here a gap may lie between prompt and reply),
    where layers share their keys and values, where gradient checkpointing forbids a cache, or where
    prompts hold images, whose positions only the model can count.
    """
    if hasattr(model.config, "vision_config"):
        return False
    config = model.config.get_text_config().to_dict()
    kinds: Sequence[str] = config.get("layer_types") or ()
    return (
        all(kind == "full_attention" for kind in kinds)
        and not config.get("num_kv_shared_layers")
        and not (model.is_gradient_checkpointing and model.training)
    )
