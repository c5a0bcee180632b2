"""Wrappers around text environments: chat prompts in and raw replies out, and state ids.

``Prompted`` turns any text environment into one that speaks to a chat model. ``StateId`` gives any
Gymnasium environment the ``state`` and ``state_id`` of the contract. Both go over ``gym.make`` and
record their arguments, so that ``env.spec.make()`` rebuilds the wrapped environment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium.core import ActType, ObsType
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from milegpo_envs.prompts import IMAGE_MARK, Moment, Turn, template_for
from milegpo_envs.replies import Reply, parse_reply
from milegpo_envs.spaces import Message, MessagesSpace, Part, TextSpace
from milegpo_envs.state import readable, state_id

Image: TypeAlias = NDArray[np.uint8]
"""Rows, columns and the three colours."""


# Any: Gymnasium types the wrapped environment by the wrapper's observations, which differ here.
class Prompted(gym.Wrapper[Any, str, str, str], RecordConstructorArgs):
    """Prompt in, raw reply out.

    The observation is the step's chat messages (one user message), the action the model's whole
    reply. A malformed reply still sends something and spends a step. Info gains

        executed_action   str                   what was sent; "" after reset
        format_valid      bool                  whether the reply was well-formed; True after reset
        format_problem    str or None           why not, one of ``replies.PROBLEMS``
        shorter_prompts   list[list[Message]]   the same step with the oldest history dropped turn
                                                by turn, down to none; empty without history

    and, where observations are pictures, or texts and pictures (a mapping with the keys ``text``
    and ``image``):

        images            list[array]           the picture of each ``{"type": "image"}`` in the
                                                messages, in order; the same in shorter prompts

    Args:
        env: observes text, pictures or both, and takes text; ``info["admissible_actions"]`` is
            listed where it is given.
        history: how many past observation/action pairs a prompt shows at most.
        style: of the environment's templates, or of the neutral ones (see ``prompts``).
        forbid_cjk: count replies with CJK ideographs as malformed, as the GiGPO reference does.

    Raises:
        UnknownName: there is no such style.
    """

    def __init__(
        self,
        env: gym.Env[str, str],
        history: int = 2,
        style: str = "papers",
        forbid_cjk: bool = False,
    ) -> None:
        if history < 0:
            raise ValueError(f"history counts past steps to show, from 0; it cannot be {history}.")
        RecordConstructorArgs.__init__(self, history=history, style=style, forbid_cjk=forbid_cjk)
        gym.Wrapper.__init__(self, env)
        self.observation_space = MessagesSpace()
        self.action_space = TextSpace()
        self.template = template_for(env, style)
        self._history = history
        self._forbid_cjk = forbid_cjk
        self._moment: Moment | None = None
        self._images: list[Image] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[list[Message], dict[str, Any]]:
        """Start an episode and prompt for its first step."""
        observation, info = self.env.reset(seed=seed, options=options)
        text, self._images = _seen(observation, self.env)
        self._moment = Moment(
            first_observation=text,
            history=(),
            observation=text,
            admissible_actions=_admissible(info),
            step=1,
        )
        return self._prompt(self._moment, info, Reply(action="", problem=None))

    def step(self, action: str) -> tuple[list[Message], float, bool, bool, dict[str, Any]]:
        """Send the action of a raw reply and prompt for the next step."""
        if self._moment is None:
            raise gym.error.ResetNeeded("Call reset() before step().")
        reply = parse_reply(action, forbid_cjk=self._forbid_cjk)
        observation, reward, terminated, truncated, info = self.env.step(reply.action)
        text, self._images = _seen(observation, self.env)
        before = self._moment
        turns = (*before.history, Turn(before.step, before.observation, reply.action))
        self._moment = Moment(
            first_observation=before.first_observation,
            history=turns[len(turns) - min(self._history, len(turns)) :],
            observation=text,
            admissible_actions=_admissible(info),
            step=before.step + 1,
        )
        messages, info = self._prompt(self._moment, info, reply)
        return messages, float(reward), terminated, truncated, info

    def _prompt(
        self, moment: Moment, info: dict[str, Any], reply: Reply
    ) -> tuple[list[Message], dict[str, Any]]:
        """Render a moment, and say in info what became of the reply that led to it."""
        shorter = [
            replace(moment, history=moment.history[dropped:])
            for dropped in range(1, len(moment.history) + 1)
        ]
        images = {"images": self._images} if self._images else {}
        return self._messages(moment), {
            **info,
            **images,
            "executed_action": reply.action,
            "format_valid": reply.format_valid,
            "format_problem": reply.problem,
            "shorter_prompts": [self._messages(m) for m in shorter],
        }

    def _messages(self, moment: Moment) -> list[Message]:
        prompt = self.template.render(moment)
        if not self._images:
            return [{"role": "user", "content": prompt}]
        before, marked, after = prompt.partition(IMAGE_MARK)
        if not marked:
            raise ValueError(f"A template for pictures says where: it has no {IMAGE_MARK}.")
        parts: list[Part] = [{"type": "text", "text": t} for t in (before, after)]
        parts.insert(1, {"type": "image"})
        return [{"role": "user", "content": [p for p in parts if p.get("text") != ""]}]


class StateId(gym.Wrapper[ObsType, ActType, ObsType, ActType], RecordConstructorArgs):
    """Attach ``state`` and ``state_id`` to the infos of any Gymnasium environment.

    Args:
        env: any environment; its observations and actions pass through.
        canonical: from an observation and its info to the canonical state, as plain data (see
            ``state``): everything that decides what can happen next, and nothing else. The task
            belongs to it wherever the tasks of an environment differ in more than their goal state.
    """

    def __init__(
        self,
        env: gym.Env[ObsType, ActType],
        canonical: Callable[[ObsType, dict[str, Any]], object],
    ) -> None:
        RecordConstructorArgs.__init__(self, canonical=canonical)
        gym.Wrapper.__init__(self, env)
        self._canonical = canonical

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[ObsType, dict[str, Any]]:
        """Reset, and name the first state."""
        observation, info = self.env.reset(seed=seed, options=options)
        return observation, self._named(observation, info)

    def step(self, action: ActType) -> tuple[ObsType, float, bool, bool, dict[str, Any]]:
        """Step, and name the state reached."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, float(reward), terminated, truncated, self._named(observation, info)

    def _named(self, observation: ObsType, info: dict[str, Any]) -> dict[str, Any]:
        canonical = self._canonical(observation, info)
        return {**info, "state": readable(canonical), "state_id": state_id(canonical)}


def _seen(observation: object, env: gym.Env[str, str]) -> tuple[str, list[Image]]:
    """Take an observation apart: its text and its pictures. Refuse anything else at the door."""
    if isinstance(observation, str):
        return observation, []
    if isinstance(observation, np.ndarray):
        return "", [observation]
    if isinstance(observation, Mapping) and observation.keys() == {"text", "image"}:
        return observation["text"], [observation["image"]]
    raise TypeError(
        f"Prompted needs an environment that observes text, pictures or both; {env} gave a "
        f"{type(observation).__name__}. Ask for its text observations, or wrap it first."
    )


def _admissible(info: dict[str, Any]) -> tuple[str, ...]:
    """Return the admissible actions; without the key, the prompt has no list."""
    return tuple(info["admissible_actions"]) if "admissible_actions" in info else ()
