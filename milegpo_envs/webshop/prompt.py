"""Prompts for WebShop (arXiv:2207.01206), in the styles of ``milegpo_envs.prompts``."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import replace

from milegpo_envs.prompts import COMPACT, PAPERS, Template, one_line
from milegpo_envs.webshop.render import RENDERINGS, SEPARATOR

_INSTRUCTION = re.compile(r"Instruction: ?$")
_BUTTON = re.compile(r"\[(clicked )?button\] (.*) \[(?:clicked )?button_\]")
_TITLE = 60  # characters of a line that a short observation keeps


def page_lines(text: str) -> list[str]:
    """The nodes of a page in either text rendering, more or less: bodies can have line breaks."""
    return text.split(SEPARATOR) if SEPARATOR in text else text.split("\n")


def plain_line(line: str) -> str:
    """A line without the marks of a button."""
    line = line.strip()
    button = _BUTTON.fullmatch(line)
    return line if button is None else button[2]


def instruction(observation: str) -> str:
    """The instruction on a page, what follows its heading; the whole text if it has none."""
    lines = page_lines(observation)
    for heading, line in itertools.pairwise(lines):
        if _INSTRUCTION.match(heading):
            return line.strip()
    return observation


def without_instruction(observation: str) -> str:
    """A page without the instruction, which the prompt states once."""
    lines = page_lines(observation)
    for i, heading in enumerate(lines[:-1]):
        if _INSTRUCTION.match(heading):
            glue = SEPARATOR if SEPARATOR in observation else "\n"
            return glue.join(lines[:i] + lines[i + 2 :]).strip()
    return observation


def short_page(observation: str) -> str:
    """One line without the instruction and the buttons, which the actions list; long lines cut.

    What was clicked keeps an asterisk. A text that is no page is only put on one line.
    """
    page = without_instruction(observation)
    if page == observation:
        return one_line(observation)
    shown = []
    for line in page_lines(page):
        button = _BUTTON.match(line.strip())
        if button is None:
            shown.append(line.strip()[:_TITLE])
        elif button[1] or re.fullmatch(r"B\w{9}", button[2]):
            shown.append(button[2] + ("*" if button[1] else ""))
    return "; ".join(line for line in shown if line)


_PAPERS = replace(
    PAPERS,
    role=(
        "You are a customer of an online shop. You search it, open products, choose their "
        "options and buy one, by one text action at a time."
    ),
    task="Your task is to: {task}",
    instruction=("Replace <your query> by words to search for. " + PAPERS.instruction),
    task_of=instruction,
    show=without_instruction,
)
_COMPACT = replace(COMPACT, task_of=instruction, show=short_page)

PROMPTS: Mapping[str, Mapping[str, Template]] = {
    mode: {"papers": _PAPERS, "compact": _COMPACT}
    if mode in ("text", "text_rich")
    else {"papers": replace(_PAPERS, task_of=PAPERS.task_of, show=PAPERS.show)}
    for mode in RENDERINGS
}
"""Observation mode -> style -> template."""
