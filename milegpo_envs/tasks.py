"""Which task a reset plays."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from milegpo_envs.errors import unknown_name


def asked_task(
    options: Mapping[str, Any] | None, generator: np.random.Generator, ids: Sequence[Any]
) -> Any:
    """Return ``options["task"]``, only known to be hashable, or one of ``ids``, drawn.

    Raises:
        UnknownName: for an option other than "task".
    """
    for option in options or {}:
        if option != "task":
            raise unknown_name("option of reset", option, ("task",))
    task = (options or {}).get("task")
    if task is None:
        return ids[int(generator.integers(2**62)) % len(ids)]
    return task if isinstance(task, Hashable) else repr(task)  # the name of no task
