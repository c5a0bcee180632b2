"""The errors of this package; each message says what to do about it.

``UnknownName`` and ``DataMissing`` are the caller's to mend: they are raised before or at
``reset``, and a pool passes them on. What goes wrong inside a running game is not an ``EnvError``
and becomes data (see ``milegpo_envs.pool``).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import islice

_LISTED = 24  # valid names written out in a message; a split can have thousands of tasks


class EnvError(Exception):
    """Base of every error this package raises on purpose."""


class DataMissing(EnvError):
    """Files that an environment needs are not where it was told to look."""


class UnknownName(EnvError, ValueError):
    """A split, task, setting, engine or style that does not exist; the message lists all."""


class SlotError(EnvError, RuntimeError):
    """A pool was asked for a slot that it does not have or that is not playing."""


class WrongThread(EnvError, RuntimeError):
    """What only one thread may use was used from another; a pool passes it on."""


def unknown_name(kind: str, name: object, valid: Iterable[str]) -> UnknownName:
    """Build the error for a name that is not among the valid ones.

    Args:
        kind: what is named, in the singular, e.g. "split".
        name: what was given.
        valid: the names that would have been accepted, in the order to list them; after 24 the
            rest is only counted.

    Returns:
        The error, to be raised by the caller: ``raise unknown_name("split", split, SPLITS)``.
    """
    names = list(valid)
    if not names:
        return UnknownName(f"Unknown {kind} {_short(name)}. There is none to choose from.")
    shown = ", ".join(islice(names, _LISTED))
    listed = f"{shown}, ... ({len(names):,} in all)" if len(names) > _LISTED else shown
    close = difflib.get_close_matches(str(name)[:200], names, n=3)
    hint = f" Did you mean {' or '.join(repr(c) for c in close)}?" if close else ""
    return UnknownName(f"Unknown {kind} {_short(name)}.{hint} Valid: {listed}.")


def _short(name: object) -> str:
    """The name as Python writes it, cut to a readable length."""
    text = repr(name)
    return text if len(text) <= 200 else f"{text[:200]}..."
