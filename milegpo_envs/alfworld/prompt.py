"""Prompts for ALFWorld (arXiv:2010.03768), in the styles of ``milegpo_envs.prompts``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from milegpo_envs.prompts import COMPACT, PAPERS, Template

_TASK = "Your task is to: "
_LEAD_IN = "You are in the middle of a room. Looking quickly around you, "
# "You arrive at desk 1. On the desk 1, you see ...": what follows names the place again.
_MOVE = re.compile(r"^You (?:arrive at|open the) [^.]*\. (?=\S)")
_ARTICLE = re.compile(r"(?<=[ ,])(?:and )?an? (?=[a-z]+ \d)")


def task_sentence(first_observation: str) -> str:
    """Return the goal as the game states it, without its lead-in; the whole text if it has none."""
    _, found, task = first_observation.partition(_TASK)
    return task.strip() if found else first_observation


def short_observation(text: str) -> str:
    """Drop what repeats and what adds nothing: banner, task, lead-ins, articles, capitals.

    "You arrive at desk 1. On the desk 1, you see a pen 1, and a mug 2." becomes
    "on the desk 1: pen 1, mug 2."
    """
    paragraphs = [p for p in text.split("\n\n") if not p.startswith(("-= ", _TASK))]
    line = " ".join(" ".join(paragraphs).split()).removeprefix(_LEAD_IN)
    return (
        _ARTICLE.sub("", _MOVE.sub("", line).lower())
        .replace(", you see ", ": ")
        .removeprefix("you see ")
    )


PROMPTS: Mapping[str, Template] = {
    "papers": replace(
        PAPERS,
        role=(
            "You are a household robot in the ALFRED world. "
            "You move and handle things by short text commands, one at a time."
        ),
        task="Your task: {task}",
        hidden=frozenset({"help"}),
        task_of=task_sentence,
    ),
    "compact": replace(
        COMPACT,
        hidden=frozenset({"help", "inventory", "look"}),
        task_of=task_sentence,
        show=short_observation,
    ),
}
"""Style -> template."""
