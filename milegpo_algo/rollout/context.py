"""What a model's context leaves for a prompt."""

from __future__ import annotations

from transformers import PretrainedConfig


def prompt_budget(config: PretrainedConfig, max_prompt_tokens: int, longest_reply: int) -> int:
    """Tokens that a prompt may have: those asked for, or as many as the context has room for.

    min(max_prompt_tokens, max_position_embeddings - longest_reply). Beyond its positions a model
    answers badly or not at all.

    Args:
        config: of the model; one that names no number of positions is taken at its word.
        max_prompt_tokens: asked for.
        longest_reply: in tokens.

    Raises:
        ValueError: a reply alone fills the context.
    """
    context: int | None = getattr(config.get_text_config(), "max_position_embeddings", None)
    if context is None:
        return max_prompt_tokens
    if longest_reply >= context:
        raise ValueError(
            f"The model's context holds {context} tokens, and a reply of {longest_reply} leaves "
            f"no room for a prompt. Lower max_completion_length below {context}."
        )
    return min(max_prompt_tokens, context - longest_reply)
