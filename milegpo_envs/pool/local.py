"""A pool whose environments live in this process."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import gymnasium as gym

from milegpo_envs.errors import DataMissing, UnknownName, WrongThread
from milegpo_envs.pool.interface import (
    Info,
    Make,
    Start,
    Step,
    broken_off,
    check_replies,
    check_size,
    check_tasks,
    never_started,
)
from milegpo_envs.spaces import Message

_logger = logging.getLogger(__name__)


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

    def __init__(self, make: Make, size: int) -> None:
        check_size(size)
        self._make = make
        self._slots = [_Slot() for _ in range(size)]

    def __len__(self) -> int:
        """Count the slots."""
        return len(self._slots)

    def reset(self, task_ids: Sequence[str]) -> list[Start]:
        """See ``Pool.reset``."""
        check_tasks(task_ids, len(self))
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
        check_replies(actions, [slot.playing for slot in self._slots])
        return {index: self._step(self._slots[index], reply) for index, reply in actions.items()}

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
        except (UnknownName, DataMissing, WrongThread):
            raise
        except Exception as error:  # a broken game is data, see `interface`
            _discard(slot)
            return never_started(task_id, error)
        return slot.messages, slot.info

    def _step(self, slot: _Slot, reply: str) -> Step:
        assert slot.env is not None  # it is playing
        try:
            messages, reward, terminated, truncated, info = slot.env.step(reply)
        except WrongThread:
            raise
        except Exception as error:  # a broken game is data, see `interface`
            _discard(slot)
            return broken_off(slot.messages, slot.info, reply, error)
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
