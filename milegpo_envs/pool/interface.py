"""What every pool promises, and the answers of a slot whose environment is gone.

A rollout must survive a broken game. Whatever an environment raises in ``step``, and in ``reset``
except for the caller's own mistakes, is data: the slot answers with ``truncated=True`` and
``info["error"]``, is logged with its traceback, and gets a new environment at the next ``reset``.
Passed on instead are ``UnknownName`` and ``DataMissing`` from ``reset`` (a wrong task id or a
missing file would only fail again), ``WrongThread``, whatever ``make`` raises, misuse of the pool,
and ``KeyboardInterrupt`` with its kin.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any, Protocol, TypeAlias

import gymnasium as gym

from milegpo_envs.errors import EnvError, SlotError
from milegpo_envs.replies import parse_reply
from milegpo_envs.spaces import Message
from milegpo_envs.state import Json, state_id

Info: TypeAlias = dict[str, Any]
"""Gymnasium's info, with the keys of the environment contract and of ``wrappers.Prompted``."""

Start: TypeAlias = tuple[list[Message], Info]
"""Messages and info after a reset."""

Step: TypeAlias = tuple[list[Message], float, bool, bool, Info]
"""Messages, reward, terminated, truncated and info after a step."""

Make: TypeAlias = Callable[[], gym.Env[list[Message], str]]
"""Makes one environment, as ``wrappers.Prompted`` makes them."""


class PoolFailed(EnvError, RuntimeError):
    """The workers of a pool cannot be started, or fail again and again."""


class Pool(Protocol):
    """Slots that play one task each, stepped together.

    A slot plays from a ``reset`` that gave it a task without an error until a step that terminates
    or truncates. Only playing slots can be stepped; slots not named in ``step`` wait.
    """

    def __len__(self) -> int:
        """Count the slots."""
        ...

    def reset(self, task_ids: Sequence[str]) -> list[Start]:
        """Let slot i play ``task_ids[i]``; further slots stay idle. Ids may repeat.

        A slot whose info has the key ``error`` did not start and cannot be stepped.

        Raises:
            UnknownName: there is no such task. No slot plays.
            DataMissing: a game's files are gone. No slot plays.
            SlotError: more tasks than slots.
            PoolFailed: workers cannot be started, or failed too often in a row. No slot plays.
        """
        ...

    def step(self, actions: Mapping[int, str]) -> dict[int, Step]:
        """Send each named slot its raw reply; the answers keep the order of ``actions``.

        Raises:
            SlotError: a slot that does not exist or is not playing. No slot was stepped.
            TypeError: a reply that is not text. No slot was stepped.
        """
        ...

    def close(self) -> None:
        """Free every environment. May be called twice; a later ``reset`` builds new ones."""
        ...


def check_size(size: int) -> None:
    """Refuse a pool without slots."""
    if size < 1:
        raise ValueError(f"A pool has 1 slot or more, not {size}.")


def check_tasks(task_ids: Sequence[str], size: int) -> None:
    """Refuse more tasks than slots."""
    if len(task_ids) > size:
        raise SlotError(
            f"{len(task_ids)} tasks for {size} slots. "
            "Make the pool larger or reset it with fewer tasks."
        )


def check_replies(actions: Mapping[int, object], playing: Sequence[bool]) -> None:
    """Refuse misuse before any slot is stepped, so that it is not taken for a broken game."""
    for index, reply in actions.items():
        if not 0 <= index < len(playing):
            raise SlotError(f"No slot {index}: this pool has slots 0 to {len(playing) - 1}.")
        if not playing[index]:
            raise SlotError(f"Slot {index} is not playing: reset the pool to start a task.")
        if not isinstance(reply, str):
            raise TypeError(f"Slot {index} takes a reply as text, not {type(reply).__name__}.")


def never_started(task_id: str, error: Exception) -> Start:
    """Answer for a task that could not be started."""
    state: dict[str, Json] = {"task": task_id, "broken": True}
    start = {"task_id": task_id, "state": state, "state_id": state_id(state)}
    return [{"role": "user", "content": ""}], _broken_off(start, "", error)


def broken_off(messages: list[Message], info: Info, reply: str, error: Exception) -> Step:
    """Answer for a step that raised, from the slot's last messages and info.

    The state is the last one known, so the step reads as one that changed nothing. The agent is
    not to blame: its action counts as valid, and its reply, which nobody judged, as well-formed.
    """
    return deepcopy(messages), 0.0, False, True, _broken_off(info, reply, error)


def _broken_off(last: Info, reply: str, error: Exception) -> Info:
    return {
        **deepcopy(last),
        "admissible_actions": [],
        "action_valid": True,
        "invalid_reason": None,
        "success": False,
        "score": 0.0,
        "executed_action": parse_reply(reply).action,
        "format_valid": True,
        "format_problem": None,
        "shorter_prompts": [],
        "error": f"{type(error).__name__}: {error}",
    }
