"""What a run leaves behind for others to read: its progress while it lasts, its result row last."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from platform import python_version

from milegpo_envs.state import canonical_json

LIBRARIES = ("torch", "transformers", "trl", "tokenizers", "textworld", "alfworld", "gymnasium")
"""Whose versions can move a result."""


class Progress:
    """Writes ``progress.json`` at most once a second: {"what", "done", "total"}."""

    def __init__(self, folder: Path, seconds: float = 1.0) -> None:
        self._path = folder / "progress.json"
        self._seconds = seconds
        self._last = 0.0

    def __call__(self, what: str, done: int, total: int) -> None:
        """Say how far a piece of work is."""
        now = time.monotonic()
        if now - self._last >= self._seconds or done == total:
            self._last = now
            write_json(self._path, {"what": what, "done": done, "total": total})


def write_json(path: Path, value: Mapping[str, object]) -> None:
    """Write a file whole or not at all."""
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(value) + "\n")
    os.replace(unfinished, path)


def weights_hash(folder: Path) -> str:
    """Hash a model's weights and tokenizer: 32 hex digits over the files that define them.

    Raises:
        FileNotFoundError: the folder holds no safetensors file.
    """
    files = sorted([*folder.glob("*.safetensors"), *folder.glob("tokenizer*.json")])
    if not any(path.suffix == ".safetensors" for path in files):
        raise FileNotFoundError(f"No *.safetensors in {folder}: save_pretrained writes one.")
    digest = hashlib.blake2b(digest_size=16)
    for path in files:
        digest.update(path.name.encode() + b"\0")
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def settings_hash(settings: Mapping[str, object]) -> str:
    """Hash settings, whatever their order: 16 hex digits."""
    return hashlib.blake2b(canonical_json(settings).encode(), digest_size=8).hexdigest()


def versions() -> dict[str, str]:
    """Return the versions that can move a result."""
    return {"python": python_version(), **{name: version(name) for name in LIBRARIES}}
