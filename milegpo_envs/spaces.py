"""Gymnasium spaces that really contain text observations, raw replies and chat messages.

``gymnasium.spaces.Text`` needs a character set and tests membership letter by letter; a game's text
and a model's reply may hold any Unicode. Both spaces here batch as a tuple of spaces, as custom
spaces do: ``SyncVectorEnv`` takes them as they are, ``AsyncVectorEnv`` with
``shared_memory=False``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NotRequired, TypedDict

import numpy as np
from gymnasium.spaces import Space

ROLES = ("system", "user", "assistant")

Role = Literal["system", "user", "assistant"]


class Part(TypedDict):
    """A text, or the place of an image: ``{"type": "image"}``. The image itself travels apart."""

    type: Literal["text", "image"]
    text: NotRequired[str]


class Message(TypedDict):
    """One chat message, as chat templates take it; in parts where it holds images."""

    role: Role
    content: str | list[Part]


# Letters that text goes wrong on: case pairs of unequal length, combining marks, right-to-left,
# CJK, astral planes, the tags of replies, line breaks of several kinds, NUL. No surrogates: a
# sample can be written as UTF-8.
_SAMPLED = "abc xyz 019 .,:;<>/[]{}|\\\"'\n\t\r\0\x1f\u2028àßİǅ\u0301אبเ中文한🏠🧪"


class TextSpace(Space[str]):
    """Every string of at most ``max_length`` characters, in any script, even lone surrogates.

    ``sample`` draws short strings from a small alphabet of awkward letters, enough to try an
    environment with.

    Args:
        max_length: the bound in characters.
        seed: of ``sample``.
    """

    def __init__(
        self, max_length: int = 2**20, seed: int | np.random.Generator | None = None
    ) -> None:
        if max_length < 0:
            raise ValueError(f"max_length must be 0 or more, not {max_length}.")
        self.max_length = max_length
        super().__init__(dtype=str, seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        """Text has no fixed-size array form."""
        return False

    def sample(self, mask: None = None, probability: None = None) -> str:
        """Draw a string of up to 32 characters; masks mean nothing here and are refused."""
        _refuse(mask, probability)
        length = int(self.np_random.integers(0, min(self.max_length, 32) + 1))
        letters = self.np_random.integers(0, len(_SAMPLED), size=length)
        return "".join(_SAMPLED[i] for i in letters)

    def contains(self, x: object) -> bool:
        """Tell whether ``x`` is a string within the bound."""
        return isinstance(x, str) and len(x) <= self.max_length

    def __eq__(self, other: object) -> bool:
        """Equal bounds make equal spaces."""
        return isinstance(other, TextSpace) and other.max_length == self.max_length

    __hash__ = None  # type: ignore[assignment]  # mutable (its generator), as every Gymnasium space

    def __repr__(self) -> str:
        """Name the bound."""
        return f"TextSpace(max_length={self.max_length})"


class MessagesSpace(Space[list[Message]]):
    """Every non-empty list of chat messages with the roles system, user and assistant.

    A content is a text, or a non-empty list of parts: texts and places of images.

    Args:
        max_length: the bound in characters of one message's content.
        seed: of ``sample``.
    """

    def __init__(
        self, max_length: int = 2**20, seed: int | np.random.Generator | None = None
    ) -> None:
        self.content = TextSpace(max_length, seed=seed)
        super().__init__(seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        """Chat messages have no fixed-size array form."""
        return False

    def seed(self, seed: int | None = None) -> int:
        """Seed ``sample``."""
        used: int = super().seed(seed)
        self.content.seed(used)
        return used

    def sample(self, mask: None = None, probability: None = None) -> list[Message]:
        """Draw one user message; masks mean nothing here and are refused."""
        _refuse(mask, probability)
        return [{"role": "user", "content": self.content.sample()}]

    def contains(self, x: object) -> bool:
        """Tell whether ``x`` is a list of well-formed messages."""
        return isinstance(x, list) and len(x) > 0 and all(self._is_message(m) for m in x)

    def _is_message(self, x: object) -> bool:
        return (
            isinstance(x, dict)
            and x.keys() == {"role", "content"}
            and x["role"] in ROLES
            and self._is_content(x["content"])
        )

    def _is_content(self, x: object) -> bool:
        if not isinstance(x, list):
            return self.content.contains(x)
        return len(x) > 0 and all(self._is_part(part) for part in x)

    def _is_part(self, x: object) -> bool:
        if x == {"type": "image"}:
            return True
        return (
            isinstance(x, dict)
            and x.keys() == {"type", "text"}
            and x["type"] == "text"
            and self.content.contains(x["text"])
        )

    def from_jsonable(self, sample_n: Iterable[list[Message]]) -> list[list[Message]]:
        """Messages are JSON already."""
        return list(sample_n)

    def __eq__(self, other: object) -> bool:
        """Equal bounds make equal spaces."""
        return isinstance(other, MessagesSpace) and other.content == self.content

    __hash__ = None  # type: ignore[assignment]  # mutable (its generator), as every Gymnasium space

    def __repr__(self) -> str:
        """Name the bound."""
        return f"MessagesSpace(max_length={self.content.max_length})"


def _refuse(mask: object, probability: object) -> None:
    """Text spaces sample without masks."""
    if mask is not None or probability is not None:
        raise ValueError("Text spaces take no mask and no probability in sample().")
