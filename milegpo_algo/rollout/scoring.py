"""Log-probs of replies for training: prompts are read into a cache, replies against it."""

from __future__ import annotations

import torch
from transformers import PreTrainedModel

from milegpo_algo.rollout.prefix import Layers, cache_of, read


def completion_logprobs(
    model: torch.nn.Module,
    unwrapped: PreTrainedModel,
    input_ids: torch.Tensor,
    attention_mask: torch.Tensor,
    width: int,
    *,
    temperature: float,
    entropy_gradient: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probs of the completion tokens and entropies of their distributions: (B, C), (B, C).

    Rows are [prompt padded on the left | completion padded on the right], as TRL lays them out.
    Both results are 0 where the mask is, and equal to TRL's up to rounding.

    Args:
        model: causal language model as it is trained, perhaps wrapped for several processes.
        unwrapped: the model itself, for reading prompts.
        input_ids: (B, P + C).
        attention_mask: (B, P + C).
        width: C, at least 1.
        temperature: divides the logits.
        entropy_gradient: whether the entropy is part of the loss.
    """
    prompts, completions = input_ids[:, :-width], input_ids[:, -width:]
    length = attention_mask[:, :-width].sum(1, keepdim=True) - 1  # (B, 1), the last token apart
    # The last prompt token predicts the first of the completion, whose last token predicts nothing.
    fed = torch.cat([prompts[:, -1:], completions[:, :-1]], dim=1)  # (B, C)
    step = torch.arange(width, device=fed.device)
    widest = int(length.max())
    if widest == 0:
        logits = model(input_ids=fed, use_cache=False).logits
    else:
        place = torch.arange(widest, device=fed.device)
        real = place < length  # (B, P - 1), now padded on the right
        columns = (place + prompts.size(1) - 1 - length).clamp(max=prompts.size(1) - 1)
        heads = prompts.gather(1, columns).masked_fill(~real, 0)
        layers = _read_distinct(unwrapped, heads)
        logits = model(
            input_ids=fed,
            attention_mask=torch.cat([real, torch.ones_like(fed, dtype=torch.bool)], dim=1).long(),
            position_ids=length + step,
            past_key_values=cache_of(layers),
            use_cache=True,
        ).logits  # (B, C, V)
    everything = torch.log_softmax(logits.float() / temperature, dim=-1)
    masked = attention_mask[:, -width:] == 0
    logprobs = everything.gather(-1, completions.unsqueeze(-1)).squeeze(-1)
    with torch.set_grad_enabled(entropy_gradient and torch.is_grad_enabled()):
        entropy = -(everything.exp() * everything).sum(-1)
    return logprobs.masked_fill(masked, 0.0), entropy.masked_fill(masked, 0.0)


def _read_distinct(model: PreTrainedModel, heads: torch.Tensor) -> Layers:
    """Keys and values of every row, equal rows read once."""
    first: dict[bytes, int] = {}
    source = [first.setdefault(row.tobytes(), len(first)) for row in heads.cpu().numpy()]
    if len(first) == len(heads):
        return read(model, heads)
    device = heads.device
    chosen = torch.tensor([source.index(i) for i in range(len(first))], device=device)
    back = torch.tensor(source, device=device)
    layers = read(model, heads[chosen])
    return [(keys.index_select(0, back), values.index_select(0, back)) for keys, values in layers]
