"""Random draws that are the same on every machine, in every process and under every Python version.

Only `random.Random.random()` is promised to keep its sequence between Python versions, so the other
draws are built on it here. The seed is a text, hashed with blake2b: no global generator is read or
seeded, and PYTHONHASHSEED is irrelevant.
"""

import hashlib
import itertools
import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Draws:
    """A private stream of draws named by a text."""

    def __init__(self, name: str) -> None:
        digest = hashlib.blake2b(name.encode(), digest_size=16).digest()
        self._random = random.Random(int.from_bytes(digest, "big")).random

    def integer(self, low: int, high: int) -> int:
        """Uniform in {low, ..., high}, both ends included."""
        return low + int(self._random() * (high - low + 1))

    def uniform(self, low: float, high: float) -> float:
        """Uniform in [low, high)."""
        return low + (high - low) * self._random()

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self._random() < probability

    def choice(self, items: Sequence[T]) -> T:
        """One item, uniformly."""
        return items[int(self._random() * len(items))]

    def sample(self, items: Sequence[T], count: int) -> list[T]:
        """Different items, in random order; all of them if there are fewer than asked for."""
        left = list(items)
        out: list[T] = []
        while left and len(out) < count:
            out.append(left.pop(int(self._random() * len(left))))
        return out

    def weighted(self, items: Sequence[T], weights: Sequence[float]) -> T:
        """One item, with probability proportional to its weight."""
        bounds = list(itertools.accumulate(weights))
        point = self.uniform(0.0, bounds[-1])
        for item, bound in zip(items, bounds, strict=True):
            if point < bound:
                return item
        return items[-1]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """All items in random order (Fisher-Yates)."""
        out = list(items)
        for i in range(len(out) - 1, 0, -1):
            j = self.integer(0, i)
            out[i], out[j] = out[j], out[i]
        return out
