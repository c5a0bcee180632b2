"""Which task a reset plays."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from milegpo_envs.errors import unknown_name


def asked_task(
    options: Mapping[str, Any] | None, generator: np.random.Generator, ids: Sequence[Any]
) -> Any:
    """Return ``options["task"]``, unchecked, or where none is asked for one of ``ids``, drawn.

    Raises:
        UnknownName: for an option other than "task".
    """
    for option in options or {}:
        if option != "task":
            raise unknown_name("option of reset", option, ("task",))
    task = (options or {}).get("task")
    return ids[int(generator.integers(2**62)) % len(ids)] if task is None else task
