"""The players that bracket a table: a scripted expert above, uniformly random actions below.

Both go through the same pools, panels, reply rules and counts as a model. ``Advised`` is a wrapper
whose prompt is nothing but replies that could be given, and ``Echo`` a policy that gives one of
them. Which one is named by the row's key alone, so that results do not depend on the batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from baselines.demonstrations import Expert
from milegpo_algo.rollout.generator import Messages
from milegpo_algo.rollout.policy import Prompt, Reply
from milegpo_envs.prompts import template_for
from milegpo_envs.replies import parse_reply
from milegpo_envs.spaces import Message, MessagesSpace, TextSpace


# Any: Gymnasium types the wrapped environment by the wrapper's observations, which differ here.
class Advised(gym.Wrapper[Any, str, str, str], RecordConstructorArgs):
    """Candidate replies out, raw reply in.

    The observation holds one message a candidate: the expert's reply, or without an expert one for
    each admissible action that prompts show.

    Args:
        env: observes and takes text, with ``admissible_actions`` in its infos.
        expert: sees observations and admissible actions only.
        style: of the template that says which actions are hidden.
    """

    def __init__(
        self, env: gym.Env[str, str], expert: Expert | None = None, style: str = "papers"
    ) -> None:
        RecordConstructorArgs.__init__(self, expert=expert, style=style)
        gym.Wrapper.__init__(self, env)
        self.observation_space = MessagesSpace()
        self.action_space = TextSpace()
        self._expert = expert
        self._hidden = template_for(env, style).hidden

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[list[Message], dict[str, Any]]:
        """Start an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        if self._expert is not None:
            self._expert.reset(observation, info["admissible_actions"])
        return self._candidates(observation, info), {**info, **_reading("", True, None)}

    def step(self, action: str) -> tuple[list[Message], float, bool, bool, dict[str, Any]]:
        """Send the action of a reply."""
        reply = parse_reply(action)
        observation, reward, terminated, truncated, info = self.env.step(reply.action)
        info = {**info, **_reading(reply.action, reply.format_valid, reply.problem)}
        over = terminated or truncated
        # Nobody asks an expert about an episode that is over.
        messages = [_message("")] if over else self._candidates(observation, info)
        return messages, float(reward), terminated, truncated, info

    def _candidates(self, observation: str, info: dict[str, Any]) -> list[Message]:
        admissible = info["admissible_actions"]
        if self._expert is not None:
            action = self._expert.act(observation, admissible)
            return [_message(f"<think>{self._expert.intention}</think><action>{action}</action>")]
        shown = [a for a in admissible if a not in self._hidden] or list(admissible)
        return [_message(f"<think>any</think><action>{a}</action>") for a in shown]


class Echo:
    """A policy that answers with one of the prompt's messages, chosen by the row's key."""

    def fit(self, candidates: Iterable[Messages]) -> Prompt | None:
        """Take the first; nothing is too long."""
        return Prompt(next(iter(candidates)))

    def answer(self, prompts: Sequence[Prompt], keys: Sequence[int]) -> list[Reply]:
        """Choose."""
        return [
            Reply(str(p.messages[key % len(p.messages)]["content"]), "stop")
            for p, key in zip(prompts, keys, strict=True)
        ]


def _message(content: str) -> Message:
    return {"role": "assistant", "content": content}


def _reading(action: str, format_valid: bool, problem: str | None) -> dict[str, object]:
    return {
        "executed_action": action,
        "format_valid": format_valid,
        "format_problem": problem,
        "shorter_prompts": [],
    }
