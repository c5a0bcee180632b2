"""A scripted pool, a byte codec and a parrot: a rollout without environments or models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from milegpo_algo.rollout.collect import Info
from milegpo_algo.rollout.generator import Messages, Sample

END = 0


def user(text: str) -> Messages:
    return [{"role": "user", "content": text}]


def info_of(task_id: str, state: str, **changes: object) -> dict[str, object]:
    """Contract keys of a state, with changes."""
    return {
        "task_id": task_id,
        "state_id": f"{task_id}:{state}",
        "state": state,
        "admissible_actions": ["go"],
        "action_valid": True,
        "invalid_reason": None,
        "success": False,
        "score": 0.0,
        "executed_action": "",
        "format_valid": True,
        "format_problem": None,
        "shorter_prompts": [],
        **changes,
    }


class ByteCodec:
    """One token a byte; 0 ends a reply and vanishes in decoding."""

    def encode(self, messages: Messages) -> list[int]:
        return list("".join(message["content"] for message in messages).encode())

    def decode(self, token_ids: Sequence[int]) -> str:
        return bytes(i for i in token_ids if i != END).decode(errors="replace")


@dataclass
class Parrot:
    """Says the same to everyone and writes down what it was asked."""

    reply: str = "go"
    prompts: list[list[tuple[int, ...]]] = field(default_factory=list)
    keys: list[list[int]] = field(default_factory=list)

    def generate(self, prompts: Sequence[Sequence[int]], keys: Sequence[int]) -> list[Sample]:
        self.prompts.append([tuple(prompt) for prompt in prompts])
        self.keys.append(list(keys))
        ids = (*self.reply.encode(), END)
        return [Sample(ids, tuple(-0.5 for _ in ids), "stop") for _ in prompts]


class CountingPool:
    """Task "wins@3" wins at step 3, "loses@2" ends without success, "runs@5" hits the horizon at 5.

    "breaks@2" raises inside step 2, "never@0" inside reset, "grows@9" adds ten characters a step
    and offers the task alone as its shorter prompt.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.tasks: list[str] = []
        self.clock: list[int] = []
        self.resets: list[list[str]] = []

    def __len__(self) -> int:
        return self.size

    def reset(self, task_ids: Sequence[str]) -> list[tuple[Messages, Info]]:
        assert len(task_ids) <= self.size
        self.tasks, self.clock = list(task_ids), [0] * len(task_ids)
        self.resets.append(list(task_ids))
        return [
            (user(task), info_of(task, "0") | ({"error": "OSError: no"} if "never" in task else {}))
            for task in task_ids
        ]

    def step(
        self, actions: Mapping[int, str]
    ) -> dict[int, tuple[Messages, float, bool, bool, Info]]:
        return {slot: self._step(slot, reply) for slot, reply in actions.items()}

    def _step(self, slot: int, reply: str) -> tuple[Messages, float, bool, bool, Info]:
        self.clock[slot] += 1
        task, now = self.tasks[slot], self.clock[slot]
        kind, _, last = task.partition("@")
        over = now == int(last)
        info = info_of(
            task,
            str(now),
            executed_action=reply,
            format_valid=reply != "nonsense",
            action_valid=reply == "go",
            invalid_reason=None if reply == "go" else "unknown",
            success=over and kind == "wins",
            score=float(over and kind == "wins"),
            shorter_prompts=[user(task)] if kind == "grows" else [],
            task_type=kind,
        )
        text = task + ".........." * now if kind in ("grows", "bursts") else f"{task} {now}"
        if over and kind == "breaks":
            info |= {"error": "RuntimeError: broken", "success": False}
            return user(text), 0.0, False, True, info
        reward = 10.0 if info["success"] else 0.0
        ends = over and kind in ("wins", "loses")
        return user(text), reward, ends, over and not ends, info
