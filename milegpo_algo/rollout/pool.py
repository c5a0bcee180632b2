"""What a rollout loop is handed: environments that take chat prompts out and raw replies in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from milegpo_algo.rollout.generator import Messages

Info = Mapping[str, object]


class Pool(Protocol):
    """Environments that take chat prompts out and raw replies in, side by side.

    An exception inside an environment, a time-out or a lost worker arrives as `truncated=True` with
    the text in `info["error"]`, and all other keys of the contract. Where messages have places for
    images, these come in `info["images"]`, in order.
    """

    def __len__(self) -> int:
        """How many episodes can run at once."""
        ...

    def reset(self, task_ids: Sequence[str]) -> Sequence[tuple[Messages, Info]]:
        """Start slot i on `task_ids[i]`."""
        ...

    def step(
        self, actions: Mapping[int, str]
    ) -> Mapping[int, tuple[Messages, float, bool, bool, Info]]:
        """Send one raw reply to each named slot; answers as Gymnasium's five values."""
        ...
