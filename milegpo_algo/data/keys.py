"""Integer keys numbered without gaps."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

IntArray: TypeAlias = NDArray[np.int64]


def compact(keys: IntArray) -> tuple[IntArray, int]:
    """Replace keys >= 0 by 0 ... G-1 in the keys' order; returns the ids [N] and G."""
    order, ordered = _sort(keys)
    ids = np.empty(len(keys), dtype=np.int64)
    ids[order] = np.cumsum(np.concatenate(([0], ordered[1:] != ordered[:-1])))
    return ids, int(ids[order[-1]]) + 1


def _sort(keys: IntArray) -> tuple[IntArray, IntArray]:
    """The order that sorts the keys, and the sorted keys."""
    bits = len(keys).bit_length()
    if int(keys.max()) >> (62 - bits):
        order = np.argsort(keys)
        return order, keys[order]
    packed = np.sort((keys << bits) | np.arange(len(keys)))  # faster than sorting indices
    return packed & ((1 << bits) - 1), packed >> bits
