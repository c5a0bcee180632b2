"""Many environments in lockstep: what a rollout loop is handed.

``Pool`` is the interface; ``EnvPool`` holds its environments in this process. Pools of worker
processes can follow behind the same interface.

A rollout must survive a broken game. Whatever an environment raises in ``step``, and in ``reset``
except for the caller's own mistakes, is data: the slot answers with ``truncated=True`` and
``info["error"]``, is logged with its traceback, and gets a new environment at the next ``reset``.
Passed on instead are ``UnknownName`` and ``DataMissing`` from ``reset`` (a wrong task id or a
missing file would only fail again), whatever ``make`` raises, misuse of the pool, and
``KeyboardInterrupt`` with its kin.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import gymnasium as gym

from milegpo_envs.errors import DataMissing, SlotError, UnknownName
from milegpo_envs.replies import parse_reply
from milegpo_envs.spaces import Message
from milegpo_envs.state import Json, state_id

Info: TypeAlias = dict[str, Any]
"""Gymnasium's info, with the keys of the environment contract and of ``wrappers.Prompted``."""

Start: TypeAlias = tuple[list[Message], Info]
"""Messages and info after a reset."""

Step: TypeAlias = tuple[list[Message], float, bool, bool, Info]
"""Messages, reward, terminated, truncated and info after a step."""

_logger = logging.getLogger(__name__)


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


@dataclass
class _Slot:
    """An environment, once it is needed, and what it last answered."""

    env: gym.Env[list[Message], str] | None = None
    playing: bool = False
    messages: list[Message] = field(default_factory=list)
    info: Info = field(default_factory=dict)


class EnvPool:
    """A pool in this process. Environments are made when first needed and kept.

    Args:
        make: makes one environment, as ``wrappers.Prompted`` makes them: chat messages out, raw
            replies in, and ``reset(options={"task": id})``.
        size: number of slots.
    """

    def __init__(self, make: Callable[[], gym.Env[list[Message], str]], size: int) -> None:
        if size < 1:
            raise ValueError(f"A pool has 1 slot or more, not {size}.")
        self._make = make
        self._slots = [_Slot() for _ in range(size)]

    def __len__(self) -> int:
        """Count the slots."""
        return len(self._slots)

    def reset(self, task_ids: Sequence[str]) -> list[Start]:
        """See ``Pool.reset``."""
        if len(task_ids) > len(self._slots):
            raise SlotError(
                f"{len(task_ids)} tasks for {len(self._slots)} slots. "
                "Make the pool larger or reset it with fewer tasks."
            )
        for slot in self._slots:
            slot.playing = False
        starts = [
            self._reset(slot, task_id)
            for slot, task_id in zip(self._slots[: len(task_ids)], task_ids, strict=True)
        ]
        for slot, (_, info) in zip(self._slots[: len(task_ids)], starts, strict=True):
            slot.playing = "error" not in info
        return starts

    def step(self, actions: Mapping[int, str]) -> dict[int, Step]:
        """See ``Pool.step``."""
        self._check(actions)
        return {index: self._step(self._slots[index], reply) for index, reply in actions.items()}

    def _check(self, actions: Mapping[int, object]) -> None:
        """Refuse misuse before any slot is stepped, so that it is not taken for a broken game."""
        for index, reply in actions.items():
            if not 0 <= index < len(self._slots):
                raise SlotError(f"No slot {index}: this pool has slots 0 to {len(self) - 1}.")
            if not self._slots[index].playing:
                raise SlotError(f"Slot {index} is not playing: reset the pool to start a task.")
            if not isinstance(reply, str):
                raise TypeError(f"Slot {index} takes a reply as text, not {type(reply).__name__}.")

    def close(self) -> None:
        """See ``Pool.close``. All are closed even if closing one raises."""
        with ExitStack() as stack:
            for slot in self._slots:
                if slot.env is not None:
                    stack.callback(slot.env.close)
                slot.env = None
                slot.playing = False

    def _reset(self, slot: _Slot, task_id: str) -> Start:
        if slot.env is None:
            slot.env = self._make()
        try:
            slot.messages, slot.info = slot.env.reset(options={"task": task_id})
        except (UnknownName, DataMissing):
            raise
        except Exception as error:  # a broken game is data, see the module's docstring
            _discard(slot)
            return [{"role": "user", "content": ""}], _never_started(task_id, error)
        return slot.messages, slot.info

    def _step(self, slot: _Slot, reply: str) -> Step:
        assert slot.env is not None  # it is playing
        try:
            messages, reward, terminated, truncated, info = slot.env.step(reply)
        except Exception as error:  # a broken game is data, see the module's docstring
            _discard(slot)
            return deepcopy(slot.messages), 0.0, False, True, _broken_off(slot.info, reply, error)
        slot.messages, slot.info = messages, info
        slot.playing = not (terminated or truncated)
        return messages, float(reward), terminated, truncated, info


def _discard(slot: _Slot) -> None:
    """Log the exception being handled and let go of the environment that raised it."""
    _logger.warning("An environment failed and will be replaced.", exc_info=True)
    slot.playing = False
    env, slot.env = slot.env, None
    assert env is not None
    try:
        env.close()
    except Exception:  # it is broken already; its first error is the one to report
        _logger.warning("Closing it failed too.", exc_info=True)


def _never_started(task_id: str, error: Exception) -> Info:
    """Return the contract's keys for a task that could not be started."""
    state: dict[str, Json] = {"task": task_id, "broken": True}
    start = {"task_id": task_id, "state": state, "state_id": state_id(state)}
    return _broken_off(start, "", error)


def _broken_off(last: Info, reply: str, error: Exception) -> Info:
    """Return the contract's keys for a step that raised.

    The state is the last one known, so the step reads as one that changed nothing. The agent is
    not to blame: its action counts as valid, and its reply, which nobody judged, as well-formed.
    """
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
