"""A pool whose episodes end, win and lose by the hash of the replies: ragged rows, real credit."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from milegpo_algo.rollout.collect import Info
from milegpo_algo.rollout.generator import Messages
from tests.milegpo_algo.rollout.fakes import info_of, user

HORIZON = 5


def drawn(text: str) -> int:
    return hashlib.blake2b(text.encode(), digest_size=2).digest()[0]


class LotteryPool:
    """Each reply moves to one of three states, and ends the episode with probability 0.3.

    Half of those that end win. Prompts get longer with every step.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.tasks: list[str] = []
        self.clock: list[int] = []

    def __len__(self) -> int:
        return self.size

    def reset(self, task_ids: Sequence[str]) -> list[tuple[Messages, Info]]:
        self.tasks, self.clock = list(task_ids), [0] * len(task_ids)
        return [(user(f"task {task}"), info_of(task, "0")) for task in task_ids]

    def step(
        self, actions: Mapping[int, str]
    ) -> dict[int, tuple[Messages, float, bool, bool, Info]]:
        return {slot: self._step(slot, reply) for slot, reply in actions.items()}

    def _step(self, slot: int, reply: str) -> tuple[Messages, float, bool, bool, Info]:
        self.clock[slot] += 1
        task, now = self.tasks[slot], self.clock[slot]
        draw = drawn(f"{task} {now} {reply}")
        ended = draw % 10 < 3
        won = ended and draw % 2 == 0
        info = info_of(
            task, str(draw % 3), executed_action=reply, success=won, score=float(won), task_type="x"
        )
        messages = user(f"task {task}" + f" state {draw % 3}" * now)
        return messages, 10.0 * won, ended, not ended and now == HORIZON, info
