"""What an endpoint answered: a chat completion, or something else, which is said in words.

Servers differ: content may be missing, null, or a list of parts; tokens may not be counted. Text is
made valid Unicode, so that whatever a model says can be stored, shown and sent again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from milegpo_algo.rollout.generator import FinishReason


class EndpointError(RuntimeError):
    """The endpoint refused a request, or kept failing; the text says what to change."""


@dataclass(frozen=True)
class Completion:
    """The first choice of an answer; tokens: read and written, None where they are not counted."""

    text: str
    finish_reason: FinishReason
    tokens: tuple[int, int] | None


def completion_of(answer: object) -> Completion:
    """Read a parsed answer.

    Raises:
        EndpointError: it is not a chat completion; quotes it.
    """
    match answer:
        case {"choices": [{"message": {**message}, **choice}, *_]}:
            text = _text(message.get("content"))
        case _:
            text = None
    if text is None:
        raise EndpointError(f"Not a chat completion: {str(answer)[:500]}")
    return Completion(
        text.encode(errors="replace").decode(),  # half a surrogate pair cannot be sent or stored
        "length" if choice.get("finish_reason") == "length" else "stop",
        _tokens(answer),
    )


def seconds_to_wait(headers: Mapping[str, str], otherwise: float, most: float) -> float:
    """Return what ``Retry-After`` asks for, up to ``most``; ``otherwise`` if it is no such number.

    It may be a date, which is not read.
    """
    try:
        asked = float(headers.get("retry-after", ""))
    except ValueError:
        return otherwise
    return min(asked, most) if asked >= 0 and not math.isnan(asked) else otherwise


def _text(content: Any) -> str | None:  # parsed JSON
    """Text of a message: none is empty; None if it is neither text nor parts of text."""
    match content:
        case None:
            return ""
        case str():
            return content
        case [*parts]:
            return "".join(
                part["text"]
                for part in parts
                if isinstance(part, dict) and isinstance(part.get("text"), str)
            )
    return None


def _tokens(answer: Any) -> tuple[int, int] | None:  # parsed JSON
    match answer:
        case {"usage": {"prompt_tokens": int(read), "completion_tokens": int(written)}}:
            return read, written
    return None
