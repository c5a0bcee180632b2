"""A critic: the value of what has been written so far, before each token of a reply.

Either a model of its own (trunk and head), or a head alone on another model's hidden states. Leaves
out where values are computed, and what they are fitted to.
"""

from __future__ import annotations

from typing import cast

import torch
from transformers import AutoModel, PreTrainedModel
from trl.trainer.utils import disable_dropout_in_model


class Critic(torch.nn.Module):
    """v(prompt, tokens so far) = w . h + b, h the last hidden state; w = b = 0 at the start.

    Args:
        hidden: length of h.
        trunk: computes h; None for a head on states that are handed in.
    """

    def __init__(self, hidden: int, trunk: PreTrainedModel | None = None) -> None:
        super().__init__()
        self.trunk = trunk
        self.head = torch.nn.Linear(hidden, 1)
        torch.nn.init.zeros_(self.head.weight)
        torch.nn.init.zeros_(self.head.bias)

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, width: int
    ) -> torch.Tensor:
        """Values before each of the last `width` tokens: (B, P + C) to (B, C)."""
        if self.trunk is None:
            raise RuntimeError("A shared critic has no trunk: hand its states to of_states.")
        positions = (attention_mask.cumsum(1) - 1).clamp(min=0)
        states = self.trunk(
            input_ids=input_ids, attention_mask=attention_mask, position_ids=positions
        ).last_hidden_state
        return self.of_states(before_tokens(states, width))

    def of_states(self, states: torch.Tensor) -> torch.Tensor:
        """Values from hidden states: (B, C, H) to (B, C), in float32."""
        with torch.autocast(states.device.type, enabled=False):
            return cast(torch.Tensor, self.head(states.float()).squeeze(-1))


def load_critic(name: str, revision: str | None = None) -> Critic:
    """A separate critic that starts from a causal language model, in float32, without dropout."""
    trunk = AutoModel.from_pretrained(name, dtype=torch.float32, revision=revision)
    disable_dropout_in_model(trunk)
    return Critic(trunk.config.get_text_config().hidden_size, trunk)


def before_tokens(states: torch.Tensor, width: int) -> torch.Tensor:
    """States that the last `width` tokens are predicted from: (B, P + C, H) to (B, C, H).

    States of length C are those already: prompts were read into a cache before.
    """
    return states if states.size(1) == width else states[:, -width - 1 : -1]


def value_loss(
    values: torch.Tensor,
    old: torch.Tensor,
    returns: torch.Tensor,
    mask: torch.Tensor,
    clip: float,
) -> torch.Tensor:
    """Sum over real tokens of max((v - R)^2, (v_c - R)^2) / 2; all (B, C).

    v_c is v held within `clip` of the old value (the clipped value loss of PPO implementations,
    arXiv:2005.12729).
    """
    held = old + (values - old).clamp(-clip, clip)
    worst = torch.max((values - returns).square(), (held - returns).square())
    return 0.5 * worst.masked_fill(mask == 0, 0.0).sum()
