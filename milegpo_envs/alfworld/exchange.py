"""Other functions in place of a foreign module's, for the duration of a call."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

Exchange = tuple[Any, str, Any]
"""An object, the name of one of its attributes, and what to put there."""


@contextlib.contextmanager
def exchanged(exchanges: Sequence[Exchange]) -> Iterator[None]:
    """Put other attributes in place, and the originals back whatever happens."""
    originals = [getattr(owner, name) for owner, name, _ in exchanges]
    for owner, name, other in exchanges:
        setattr(owner, name, other)
    try:
        yield
    finally:
        for (owner, name, _), original in zip(exchanges, originals, strict=True):
            setattr(owner, name, original)
