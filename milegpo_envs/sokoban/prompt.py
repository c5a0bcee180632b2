"""Prompts for Sokoban, in the styles of `milegpo_envs.prompts`, for boards in text and in pictures.

The protocol is that of GiGPO (arXiv:2505.10978) in our own words: rules, symbols, the board, the
moves. Where the board is a picture, `<image>` marks its place, and earlier steps are told by their
moves alone. The compact style leaves out the outer walls, which are always there, and earlier
boards, which add nothing to the present one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from milegpo_envs.prompts import COMPACT, IMAGE_MARK, PAPERS, Template

_RULES = (
    "You are solving Sokoban puzzles. You walk on a grid and push boxes; the puzzle is solved when "
    "every box stands on a target.\n"
    "Rules: you move up, down, left or right by one cell. Walking against a box pushes it, if the "
    "cell behind it is free of walls and boxes. Boxes cannot be pulled, so a box pushed into a "
    "corner, or along a wall without a target, may be lost for good."
)
_SYMBOLS = "Symbols: # wall, _ floor, O target, X box, √ box on a target, P you, S you on a target."
_PICTURE = (
    "In the picture, walls are brown bricks, floor is pale, a target is a red diamond with red "
    "corners, a box is a yellow crate with a cross (green once on a target), and you are the blue "
    "figure."
)


def no_task(first_observation: str) -> str:
    """Return nothing: every level has the same task, and the rules state it."""
    return ""


def inner(board: str) -> str:
    """Write a board without its outer walls, cells apart by blanks and rows by bars."""
    rows = [line.split()[1:-1] for line in board.split("\n")[1:-1]]
    return " | ".join(" ".join(row) for row in rows)


_TEXT = replace(
    PAPERS,
    role=f"{_RULES}\n{_SYMBOLS}",
    task="",
    task_of=no_task,
    pair="[step {step}] board:\n{observation}\n[step {step}] move: {action}",
    newest_pair="[step {step}] board:\n{observation}\n[step {step}] move: {action}",
    observation="You are at step {step}. The board now:\n{observation}",
    actions="Admissible actions: {actions}",
    separator=", ",
    instruction=(
        "First reason inside <think></think>: where are you, the boxes and the targets, which push "
        "brings a box nearer to a target, and does it lock a box in? "
        "Then answer with exactly one move, inside <action></action>."
    ),
)
_COMPACT = replace(
    COMPACT,
    task="",
    task_of=no_task,
    pair="{step} {action}",
    newest_pair="{step} {action}",
    observation="{observation}",
    actions="",
    show=inner,
)

TEXT_PROMPTS: Mapping[str, Template] = {"papers": _TEXT, "compact": _COMPACT}
"""Style -> template, for boards in text."""

IMAGE_PROMPTS: Mapping[str, Template] = {
    "papers": replace(
        _TEXT,
        role=f"{_RULES}\n{_PICTURE}",
        pair="[step {step}] move: {action}",
        newest_pair="[step {step}] move: {action}",
        observation=f"You are at step {{step}}. The board now: {IMAGE_MARK}",
    ),
    "compact": replace(_COMPACT, observation=IMAGE_MARK, show=str),
}
"""Style -> template, for boards in pictures."""

BOTH_PROMPTS: Mapping[str, Template] = {
    "papers": replace(
        _TEXT,
        role=f"{_RULES}\n{_SYMBOLS}\n{_PICTURE}",
        observation=f"You are at step {{step}}. The board now: {IMAGE_MARK}\n{{observation}}",
    ),
    "compact": replace(_COMPACT, observation=f"{IMAGE_MARK} {{observation}}"),
}
"""Style -> template, for boards in text and picture."""
