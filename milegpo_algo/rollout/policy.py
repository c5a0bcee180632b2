"""Who plays: a policy reads chat messages and answers with text.

The rollout loop knows policies only. `TokenPolicy` is a model that reads and samples token ids,
whose steps can be trained on. `ChatPolicy` is anything that speaks text, such as a remote endpoint:
it plays and is counted, and leaves nothing to train on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from milegpo_algo.rollout.generator import (
    ChatGenerator,
    ChatReply,
    Codec,
    FinishReason,
    Generator,
    Image,
    Messages,
    Sample,
    Usage,
    images_of,
)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt that fits its policy's budget; ids where the policy reads ids, else empty."""

    messages: Messages
    token_ids: tuple[int, ...] = ()

    @property
    def images(self) -> tuple[Image, ...]:
        """Images of the messages, in order."""
        return images_of(self.messages)


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply as text, with the ids as sampled or, of a text model, its counts of tokens."""

    text: str
    finish_reason: FinishReason
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] | None = None
    usage: Usage | None = None


class Policy(Protocol):
    """Answers prompts. `fit` may run in one thread while `answer` runs in another."""

    def fit(self, candidates: Iterable[Messages]) -> Prompt | None:
        """Return the first of the candidates that fits the budget, or None."""
        ...

    def answer(self, prompts: Sequence[Prompt], keys: Sequence[int]) -> list[Reply]:
        """Answer each prompt; `keys[i]` names the randomness of row i."""
        ...


@dataclass(frozen=True)
class TokenPolicy:
    """A model that reads and samples token ids.

    Attributes:
        generator: samples the replies.
        codec: chat messages to ids and back.
        max_prompt_tokens: budget of a prompt.
    """

    generator: Generator
    codec: Codec
    max_prompt_tokens: int

    def fit(self, candidates: Iterable[Messages]) -> Prompt | None:
        """See `Policy.fit`."""
        for messages in candidates:
            ids = self.codec.encode(messages)
            if len(ids) <= self.max_prompt_tokens:
                return Prompt(messages, tuple(ids))
        return None

    def answer(self, prompts: Sequence[Prompt], keys: Sequence[int]) -> list[Reply]:
        """See `Policy.answer`. Sampled ids stay as they are; text is never turned back into ids."""
        samples = _generate(
            self.generator,
            [prompt.token_ids for prompt in prompts],
            keys,
            [prompt.images for prompt in prompts],
        )
        return [
            Reply(
                text=self.codec.decode(sample.token_ids),
                finish_reason=sample.finish_reason,
                token_ids=sample.token_ids,
                logprobs=sample.logprobs,
            )
            for sample in samples
        ]


@dataclass(frozen=True)
class ChatPolicy:
    """A model that takes chat messages and returns text.

    Attributes:
        generator: writes the replies.
        max_prompt_characters: budget of a prompt, in characters of its contents, since only the
            model's owner knows its tokens; None is no budget.
    """

    generator: ChatGenerator
    max_prompt_characters: int | None = None

    def fit(self, candidates: Iterable[Messages]) -> Prompt | None:
        """See `Policy.fit`."""
        for messages in candidates:
            length = sum(len(str(message["content"])) for message in messages)
            if self.max_prompt_characters is None or length <= self.max_prompt_characters:
                return Prompt(messages)
        return None

    def answer(self, prompts: Sequence[Prompt], keys: Sequence[int]) -> list[Reply]:
        """See `Policy.answer`."""
        replies = self.generator.chat([prompt.messages for prompt in prompts], keys)
        return [Reply(reply.text, reply.finish_reason, usage=reply.usage) for reply in replies]


@dataclass(frozen=True)
class LocalChat:
    """A local model as a `ChatGenerator`, for methods that write their own prompts.

    Attributes:
        generator: samples the replies.
        codec: chat messages to ids and back.
    """

    generator: Generator
    codec: Codec

    def chat(self, conversations: Sequence[Messages], keys: Sequence[int]) -> list[ChatReply]:
        """See `ChatGenerator.chat`."""
        prompts = [self.codec.encode(messages) for messages in conversations]
        samples = _generate(
            self.generator, prompts, keys, [images_of(messages) for messages in conversations]
        )
        return [
            ChatReply(
                text=self.codec.decode(sample.token_ids),
                finish_reason=sample.finish_reason,
                usage=Usage(len(prompt), len(sample.token_ids)),
            )
            for prompt, sample in zip(prompts, samples, strict=True)
        ]


def _generate(
    generator: Generator,
    prompts: Sequence[Sequence[int]],
    keys: Sequence[int],
    images: Sequence[Sequence[Image]],
) -> list[Sample]:
    """Hand images on where there are any."""
    if any(images):
        return generator.generate(prompts, keys, images)
    return generator.generate(prompts, keys)
