"""ReAct: thoughts, actions and observations of the whole episode in one prompt (arXiv:2210.03629).

The agent is a wrapper with the interface of ``Prompted``, so that it runs on the same environments,
pools, panels and backends, and its replies are read by the same rule: the thought stands inside
<think></think>, the action inside <action></action>. What differs from ``Prompted`` is what the
model sees: worked examples first, then everything that happened, its own thoughts included.

Left out: the free-form "Thought 1: ... Action 1: ..." lines of the paper, which would need a reply
rule of their own and would measure that rule too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from baselines.demonstrations import Expert
from milegpo_envs.prompts import template_for
from milegpo_envs.replies import Reply, parse_reply
from milegpo_envs.spaces import Message, MessagesSpace, TextSpace

THOUGHT_CHARACTERS = 1000
"""What is kept of one thought, so that a runaway reply does not fill every prompt after it."""

Notes = Callable[[str], Sequence[str]]
"""From a task id to what the agent wants to remember about it."""


@dataclass(frozen=True)
class ThoughtTurn:
    """What was thought, what was sent, and what the environment answered."""

    thought: str
    action: str
    result: str

    def written(self) -> str:
        """Write the turn as the model saw it."""
        return (
            f"<think>{self.thought}</think><action>{self.action}</action>\n"
            f"Observation: {self.result}"
        )


@dataclass(frozen=True)
class WorkedExample:
    """A whole successful episode."""

    first_observation: str
    turns: tuple[ThoughtTurn, ...]

    def written(self) -> str:
        """Write the episode as a transcript."""
        return transcript(self.first_observation, self.turns)


def transcript(first_observation: str, turns: Sequence[ThoughtTurn]) -> str:
    """Write an episode, or its beginning."""
    return "\n".join([f"Observation: {first_observation}", *(turn.written() for turn in turns)])


Examples = Mapping[str, Sequence[WorkedExample]]
"""Worked examples by ``info["task_type"]``; "" for environments without kinds of tasks."""


def no_notes(task_id: str) -> tuple[str, ...]:
    """Remember nothing."""
    return ()


# Any: Gymnasium types the wrapped environment by the wrapper's observations, which differ here.
class ReAct(gym.Wrapper[Any, str, str, str], RecordConstructorArgs):
    """Prompt in, raw reply out, with the whole episode in the prompt.

    Info gains what ``Prompted`` adds, and ``transcript`` (str): the episode so far.
    ``shorter_prompts`` drop the oldest turns first, in ever larger steps (1, 2, 4, ... turns), then
    the examples; never the task, the notes or the current observation.

    Args:
        env: observes and takes text.
        examples: those of the task's kind are shown before it; make them with the same environment
            settings, so that they speak the same grammar.
        notes: asked at every reset, by task id.
        style: of the environment's template, of which the role, the current observation, the list
            of actions and the instruction are used.
        forbid_cjk: see ``Prompted``.
    """

    def __init__(
        self,
        env: gym.Env[str, str],
        examples: Examples | None = None,
        notes: Notes = no_notes,
        style: str = "papers",
        forbid_cjk: bool = False,
    ) -> None:
        RecordConstructorArgs.__init__(
            self, examples=examples, notes=notes, style=style, forbid_cjk=forbid_cjk
        )
        gym.Wrapper.__init__(self, env)
        self.observation_space = MessagesSpace()
        self.action_space = TextSpace()
        self.template = template_for(env, style)
        self._known, self._notes, self._forbid_cjk = examples or {}, notes, forbid_cjk
        self._examples: tuple[WorkedExample, ...] = ()
        self._first: str | None = None
        self._turns: list[ThoughtTurn] = []
        self._remembered: tuple[str, ...] = ()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[list[Message], dict[str, Any]]:
        """Start an episode and prompt for its first step."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._first, self._turns = observation, []
        self._remembered = tuple(self._notes(str(info["task_id"])))
        self._examples = tuple(self._known.get(str(info.get("task_type", "")), ()))
        return self._prompt(info, Reply(action="", problem=None))

    def step(self, action: str) -> tuple[list[Message], float, bool, bool, dict[str, Any]]:
        """Send the action of a raw reply and prompt for the next step."""
        if self._first is None:
            raise gym.error.ResetNeeded("Call reset() before step().")
        reply = parse_reply(action, forbid_cjk=self._forbid_cjk)
        observation, reward, terminated, truncated, info = self.env.step(reply.action)
        self._turns.append(ThoughtTurn(thought_of(action), reply.action, observation))
        messages, info = self._prompt(info, reply)
        return messages, float(reward), terminated, truncated, info

    def _prompt(self, info: dict[str, Any], reply: Reply) -> tuple[list[Message], dict[str, Any]]:
        assert self._first is not None  # reset and step come first
        actions = tuple(info.get("admissible_actions", ()))
        kept = len(self._turns)
        cuts = [kept - back for back in _doubling(kept)]
        shorter = [self._message(actions, turns, self._examples) for turns in cuts]
        shorter += [
            self._message(actions, cuts[-1] if cuts else kept, self._examples[:few])
            for few in reversed(range(len(self._examples)))
        ]
        return self._message(actions, kept, self._examples), {
            **info,
            "executed_action": reply.action,
            "format_valid": reply.format_valid,
            "format_problem": reply.problem,
            "shorter_prompts": shorter,
            "transcript": transcript(self._first, self._turns),
        }

    def _message(
        self, actions: Sequence[str], turns: int, examples: Sequence[WorkedExample]
    ) -> list[Message]:
        """Write the prompt with the newest ``turns`` turns and these examples."""
        template = self.template
        shown = [a for a in actions if a not in template.hidden]
        recent = self._turns[len(self._turns) - turns :]
        left_out = len(self._turns) - turns
        blocks = [
            template.role,
            *(f"An example of a solved task:\n{e.written()}" for e in examples),
            "Now solve this task.",
            *(f"What you noted after an earlier failure: {note}" for note in self._remembered),
            f"Observation: {self._first}",
            f"[{left_out} older turns are left out]" if left_out else "",
            *(turn.written() for turn in recent),
            # With no turn shown, the latest observation would be lost.
            f"Observation: {self._turns[-1].result}" if left_out and not recent else "",
            template.actions.format(actions=template.separator.join(shown)) if shown else "",
            template.instruction,
        ]
        return [{"role": "user", "content": "\n".join(block for block in blocks if block)}]


def thought_of(reply: str) -> str:
    """Return the thought of a raw reply, on one line and cut to a bounded length."""
    _, _, rest = reply.partition("<think>")
    return " ".join(rest.partition("</think>")[0][: 4 * THOUGHT_CHARACTERS].split())[
        :THOUGHT_CHARACTERS
    ]


def worked_example(env: gym.Env[str, str], expert: Expert, task_id: str) -> WorkedExample | None:
    """Let an expert play a task; None if it does not succeed.

    Args:
        env: text environment, of a split that is not evaluated on.
        expert: says what each of its actions is for.
        task_id: of the split.
    """
    first, info = env.reset(options={"task": task_id})
    expert.reset(first, info["admissible_actions"])
    observation, turns, over = first, [], False
    while not over:
        action = expert.act(observation, info["admissible_actions"])
        observation, _, terminated, truncated, info = env.step(action)
        turns.append(ThoughtTurn(f"Next: {expert.intention}.", action, observation))
        over = terminated or truncated
    return WorkedExample(first, tuple(turns)) if info["success"] else None


def _doubling(kept: int) -> list[int]:
    """1, 2, 4, ... and at last ``kept``: how many of the oldest turns to leave out."""
    steps = [2**power for power in range(kept.bit_length()) if 2**power < kept]
    return [*steps, kept] if kept else []
