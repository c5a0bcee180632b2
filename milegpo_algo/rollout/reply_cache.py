"""Replies on disk, one file each, named by the content of the question: a second run is free."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import cast

Json = object  # whatever json can write


class ReplyCache:
    """A folder of replies.

    Files appear whole or not at all, so that several threads and runs can share a folder and a
    killed run leaves nothing behind that is wrong. A file that cannot be read counts as missing.

    Args:
        folder: made when first written to.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, name: str) -> dict[str, Json] | None:
        """Return what was put under a name, or None."""
        try:
            value = json.loads(self._path(name).read_text("utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        return cast("dict[str, Json]", value) if isinstance(value, dict) else None

    def put(self, name: str, value: Mapping[str, Json]) -> None:
        """Write a value under a name."""
        path = self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}.tmp")
        temporary.write_text(json.dumps(value), "utf-8")
        temporary.replace(path)

    def _path(self, name: str) -> Path:
        return self.folder / name[:2] / f"{name}.json"


def content_name(question: Mapping[str, Json]) -> str:
    """Name of a question: equal content, equal name, in any process and any order of keys."""
    text = json.dumps(question, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
