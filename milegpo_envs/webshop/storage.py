"""Arrays on disk, written once and memory-mapped by every process that wants them.

A store is a folder with one `.npy` file an array and a `manifest.json`. It is written under another
name and renamed when it is whole, so a reader sees all of it or nothing, and builders at the same
time do not hurt each other. A store that was damaged is not opened: whoever asks builds it again.

Damage is recognised by size and by CRC-32, of the whole file up to 16 MB, else of its first and
last MB: reading an index of gigabytes at every start would cost more than it is worth.
"""

import json
import os
import secrets
import shutil
import stat
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from milegpo_envs.caching import cache_folder

Arrays = Mapping[str, NDArray[np.generic]]

_MANIFEST = "manifest.json"
_WHOLE = 16 << 20
_END = 1 << 20


def user_cache() -> Path:
    """Where stores go that have no writable data folder: the cache folder."""
    return cache_folder() / "webshop"


def beside(data: Path) -> Path:
    """Where to put what is derived from a data folder: inside it if it can be written.

    Root may write anywhere; a folder without write permission for its owner is left alone.
    """
    writable = os.access(data, os.W_OK) and data.stat().st_mode & stat.S_IWUSR
    return data / ".milegpo" if writable else user_cache()


class Draft:
    """A store being written: `array` allocates a file and returns it, memory-mapped.

    Without a folder the arrays stay in memory.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.arrays: dict[str, NDArray[np.generic]] = {}

    def array(self, name: str, dtype: str, shape: int) -> NDArray[np.generic]:
        """A new array of zeros, to be filled by the caller."""
        self.arrays[name] = self._allocated(name, np.dtype(dtype), shape)
        return self.arrays[name]

    def _allocated(self, name: str, dtype: np.dtype[np.generic], shape: int) -> NDArray[np.generic]:
        if self.folder is None:
            return np.zeros(shape, dtype)
        path = self.folder / f"{name}.npy"
        if shape == 0:  # an empty file cannot be mapped
            np.save(path, np.zeros(0, dtype))
            return np.zeros(0, dtype)
        return np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=(shape,))

    def put(self, name: str, values: NDArray[np.generic]) -> None:
        """A copy of an array."""
        self.array(name, values.dtype.str, len(values))[:] = values


@contextmanager
def drafted(folder: Path) -> Iterator[Draft]:
    """A draft that becomes a store when the block ends without an exception.

    If another process was quicker, its store stays.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = folder.with_name(f"{folder.name}.unfinished-{secrets.token_hex(6)}")
    unfinished.mkdir()
    try:
        draft = Draft(unfinished)
        yield draft
        for values in draft.arrays.values():
            if isinstance(values, np.memmap):
                values.flush()
        files = {name: _fingerprint(unfinished / f"{name}.npy") for name in draft.arrays}
        (unfinished / _MANIFEST).write_text(json.dumps(files), encoding="ascii")
        _install(unfinished, folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _install(unfinished: Path, folder: Path) -> None:
    if folder.exists() and open_store(folder) is None:
        damaged = folder.with_name(f"{folder.name}.damaged-{secrets.token_hex(6)}")
        os.replace(folder, damaged)
        shutil.rmtree(damaged, ignore_errors=True)
    try:
        os.rename(unfinished, folder)
    except OSError:
        if open_store(folder) is None:
            raise


def open_store(folder: Path) -> Arrays | None:
    """The arrays of a store, read-only and memory-mapped; None if it is missing or damaged."""
    try:
        files = json.loads((folder / _MANIFEST).read_text(encoding="ascii"))
        if any(_fingerprint(folder / f"{n}.npy") != tuple(f) for n, f in files.items()):
            return None
        return {name: _mapped(folder / f"{name}.npy") for name in files}
    except (OSError, ValueError, AttributeError, TypeError):
        return None


def _mapped(path: Path) -> NDArray[np.generic]:
    loaded = np.load(path, mmap_mode="r") if path.stat().st_size > 128 else np.load(path)
    # A plain array view: indexing np.memmap itself costs several times as much.
    array: NDArray[np.generic] = loaded.view(np.ndarray)
    return array


def _fingerprint(path: Path) -> tuple[int, int]:
    """Size and CRC-32 of what is looked at."""
    size = path.stat().st_size
    with path.open("rb") as file:
        if size <= _WHOLE:
            return size, zlib.crc32(file.read())
        crc = zlib.crc32(file.read(_END))
        file.seek(size - _END)
        return size, zlib.crc32(file.read(), crc)


def stored(folder: Path | None, build: Callable[[Draft], None]) -> Arrays:
    """Open a store, building it if it is missing or damaged.

    Args:
        folder: of the store; None keeps the arrays in memory.
        build: fills a draft.
    """
    if folder is None:
        draft = Draft(None)
        build(draft)
        return draft.arrays
    found = open_store(folder)
    if found is not None:
        return found
    with drafted(folder) as draft:
        build(draft)
    found = open_store(folder)
    if found is None:
        raise OSError(f"{folder} was written and cannot be read back. Is the disk full?")
    return found
