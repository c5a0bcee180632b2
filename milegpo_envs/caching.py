"""The folder for what is made once on a machine and can be made again."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """``$MILEGPO_CACHE``, else ``$XDG_CACHE_HOME/milegpo``, else ``~/.cache/milegpo``.

    An ``$XDG_CACHE_HOME`` that is not absolute is ignored, as its specification wants.
    """
    if own := os.environ.get("MILEGPO_CACHE"):
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "milegpo"
