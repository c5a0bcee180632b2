"""Prompt templates: what a step looks like to a model.

The protocol is that of GiGPO (arXiv:2505.10978) in our own words, one user message per step: role,
task, from step 2 on the number of steps taken and the last observation/action pairs with their
step numbers, the current observation, the admissible actions, and how to answer. Two styles:

    papers    the whole protocol, for instruction-tuned models
    compact   bare short lines, for tiny models that are trained on the format first

An environment brings its templates as ``prompt_templates``, a mapping from style to ``Template``,
usually ``dataclasses.replace`` of the ones here in a ``prompt.py`` of its own folder. Without it
the neutral templates serve. Reading the reply is in ``replies``, keeping the history in
``wrappers``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import gymnasium as gym

from milegpo_envs.errors import unknown_name

IMAGE_MARK = "<image>"
"""Where a template for pictures wants the current one; plain text in all other prompts."""


@dataclass(frozen=True)
class Turn:
    """One past step: its number from 1, what was seen before acting, and what was sent."""

    step: int
    observation: str
    action: str


@dataclass(frozen=True)
class Moment:
    """All a template may use.

    Observations are texts: of one that is a picture, or a text and a picture, the text, which may
    be empty.

    first_observation: of the episode; where text environments state the task.
    history: the turns to show, oldest first; the newest is turn ``step - 1``.
    step: number of the step about to be taken, from 1.
    """

    first_observation: str
    history: tuple[Turn, ...]
    observation: str
    admissible_actions: tuple[str, ...]
    step: int


def verbatim(text: str) -> str:
    """Leave a text as it is."""
    return text


def one_line(text: str) -> str:
    """Join lines and runs of blanks."""
    return " ".join(text.split())


@dataclass(frozen=True)
class Template:
    """The blocks of a prompt, joined by line breaks; an empty one is left out.

    Blocks are format strings. ``task`` has {task}; ``progress`` (from step 2 on) has {taken};
    ``pairs`` (with some history) has {shown}; ``pair`` has {step}, {observation}, {action} and
    {result}, which is the observation the action led to; ``newest_pair`` likewise, and may leave
    {result} out, as it is the current observation; ``observation`` has {step} and {observation};
    ``actions`` has {actions}.

    separator: between two admissible actions.
    hidden: admissible actions that are not shown.
    task_of: finds the task's sentence in the first observation. A task equal to the current
        observation is not said twice.
    show: how an observation, or the task, is written.
    """

    role: str
    task: str
    progress: str
    pairs: str
    pair: str
    newest_pair: str
    observation: str
    actions: str
    instruction: str
    separator: str = "\n"
    hidden: frozenset[str] = frozenset()
    task_of: Callable[[str], str] = verbatim
    show: Callable[[str], str] = verbatim

    def render(self, moment: Moment) -> str:
        """Write the prompt of a step."""
        task = self.show(self.task_of(moment.first_observation))
        now = self.show(moment.observation)
        actions = [a for a in moment.admissible_actions if a not in self.hidden]
        blocks = [self.role]
        if task != now:
            blocks.append(self.task.format(task=task))
        if moment.step > 1:
            blocks.append(self.progress.format(taken=moment.step - 1))
        if moment.history:
            blocks.append(self.pairs.format(shown=len(moment.history)))
            blocks.extend(self._pairs(moment.history, now))
        blocks.append(self.observation.format(step=moment.step, observation=now))
        if actions:
            blocks.append(self.actions.format(actions=self.separator.join(actions)))
        blocks.append(self.instruction)
        return "\n".join(block for block in blocks if block)

    def _pairs(self, history: tuple[Turn, ...], now: str) -> list[str]:
        """Write the history, each turn with what came of it."""
        seen = [self.show(turn.observation) for turn in history]
        forms = [self.pair] * (len(history) - 1) + [self.newest_pair]
        return [
            form.format(step=turn.step, observation=before, action=turn.action, result=after)
            for form, turn, before, after in zip(
                forms, history, seen, [*seen[1:], now], strict=True
            )
        ]


PAPERS = Template(
    role="You are an agent that acts in a text environment, one action at a time.",
    task="This is how the episode began, with the task to solve:\n{task}",
    progress="Steps taken so far: {taken}.",
    pairs="The latest {shown} of them, oldest first:",
    pair="[step {step}] observation: {observation}\n[step {step}] action: {action}",
    newest_pair="[step {step}] observation: {observation}\n[step {step}] action: {action}",
    observation="You are at step {step}. Current observation:\n{observation}",
    actions="Admissible actions, one a line:\n{actions}",
    instruction=(
        "First think through the situation and what should come next, inside <think></think>. "
        "Then answer with exactly one admissible action, inside <action></action>."
    ),
)
"""The neutral full template."""

COMPACT = Template(
    role="",
    task="task: {task}",
    progress="",
    pairs="",
    pair="{step} {action} -> {result}",
    newest_pair="{step} {action}",
    observation="obs: {observation}",
    actions="actions: {actions}",
    instruction="",
    separator=" | ",
    show=one_line,
)
"""The neutral short template."""

NEUTRAL: Mapping[str, Template] = {"papers": PAPERS, "compact": COMPACT}
"""Style -> template, for environments that bring none."""


@runtime_checkable
class HasPrompts(Protocol):
    """An environment that brings templates of its own."""

    @property
    def prompt_templates(self) -> Mapping[str, Template]:
        """Style -> template; a style left out is the neutral one."""
        ...


def template_for(env: gym.Env[str, str], style: str) -> Template:
    """Find the template of an environment, wrapped or not, in a style.

    Raises:
        UnknownName: neither the environment nor this module has the style.
    """
    base = env.unwrapped
    own = base.prompt_templates if isinstance(base, HasPrompts) else {}
    templates = {**NEUTRAL, **own}
    if style not in templates:
        raise unknown_name("prompt style", style, templates)
    return templates[style]
