"""The official files as a catalogue: found by offset, memory-mapped, decoded when asked for.

    items_shuffle_1000.json, items_ins_v2_1000.json     the small shop
    items_shuffle.json, items_ins_v2.json               the full one; "100k" is its beginning
    items_human_ins.json                                instructions by people, for either

An index beside the files (or in the user's cache where the folder cannot be written) says where
every product's entries are. It is built once, in one pass that never holds more than a window of a
file, and is named by the content of the files: other files, another index. Processes share the
pages of files and index; a process of its own has a bounded number of decoded products.

Left out, as officially: products whose asin is "nan", longer than ten characters, or was there
before.
"""

import contextlib
import functools
import hashlib
import json
import mmap
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from milegpo_envs.errors import DataMissing, unknown_name
from milegpo_envs.reports import Advance
from milegpo_envs.webshop.product import Product, read_product
from milegpo_envs.webshop.scanning import entries
from milegpo_envs.webshop.storage import Draft, beside, stored

Size = Literal["small", "100k", "full"]

VERSION = "products-1"
DECODED = 2048  # products kept by a process
DROPPED = ("no asin", "asin too long", "repeated asin")

_LEDGER = "contents.json"


@dataclass(frozen=True)
class Files:
    """Names of the files of a size, and how many of their products belong to it."""

    products: str
    attributes: str
    limit: int | None = None
    human: str = "items_human_ins.json"

    @property
    def names(self) -> tuple[str, str, str]:
        """All three."""
        return self.products, self.attributes, self.human


FILES: Mapping[Size, Files] = {
    "small": Files("items_shuffle_1000.json", "items_ins_v2_1000.json"),
    "100k": Files("items_shuffle.json", "items_ins_v2.json", 100_000),
    "full": Files("items_shuffle.json", "items_ins_v2.json"),
}


class OfficialCatalogue:
    """Products of a folder with the official files."""

    def __init__(
        self, root: Path, size: Size, limit: int | None = None, advance: Advance | None = None
    ) -> None:
        """Open a folder, indexing it if that has not been done.

        Args:
            root: the folder.
            size: which files.
            limit: only so many of the products in the file, before any are left out.
            advance: called while the index is built.

        Raises:
            DataMissing: a file is missing or damaged.
        """
        if size not in FILES:
            raise unknown_name("size", size, FILES)
        files = FILES[size]
        paths = _existing(root, size)
        limits = [number for number in (files.limit, limit) if number is not None]
        first = min(limits) if limits else None
        self.name = f"official/{size}" + ("" if limit is None else f"/{limit}")
        cache = beside(root)
        self.cache: Path | None = cache
        hashes = [content_hash(path, cache, advance) for path in paths]
        key = json.dumps([VERSION, first, hashes]).encode()
        self.content_hash = hashlib.blake2b(key, digest_size=16).hexdigest()
        folder = cache / f"{VERSION}-{self.content_hash}"
        index = stored(folder, lambda draft: write_index(draft, paths, first, advance))
        self._places = [(index[f"{n}_start"], index[f"{n}_end"]) for n in _KINDS]
        self._asins, self._order = index["asins"], index["order"]
        self.dropped = dict(zip(DROPPED, (int(n) for n in index["dropped"]), strict=True))
        self._bytes = [_mapped(path) for path in paths]
        self._decoded = functools.lru_cache(maxsize=DECODED)(self._decode)

    def __len__(self) -> int:
        return len(self._order)

    def __getitem__(self, index: int) -> Product:
        if not -len(self) <= index < len(self):
            raise IndexError(f"{self.name} has no product {index}.")
        return self._decoded(int(index) % len(self))

    def by_asin(self, asin: str) -> Product | None:
        """The product with this asin, None if there is none."""
        index = self.index_of(asin)
        return None if index is None else self[index]

    def index_of(self, asin: str) -> int | None:
        """Where the product with this asin is, None if there is none."""
        if not asin.isascii() or not 0 < len(asin) <= 10 or "\0" in asin:
            return None
        wanted = np.bytes_(asin.encode())
        place = int(np.searchsorted(self._asins, wanted))
        if place == len(self._asins) or self._asins[place] != wanted:
            return None
        return int(self._order[place])

    def _decode(self, index: int) -> Product:
        product, attributes, human = (self._entry(kind, index) for kind in range(3))
        return read_product(product, attributes, human)

    def _entry(self, kind: int, index: int) -> Any:
        starts, ends = self._places[kind]
        start, end = int(starts[index]), int(ends[index])
        return json.loads(self._bytes[kind][start:end], strict=False) if end else None


_KINDS = ("products", "attributes", "human")


def _existing(root: Path, size: Size) -> list[Path]:
    paths = [root / name for name in FILES[size].names]
    missing = [path.name for path in paths if not path.is_file()]
    if missing:
        raise DataMissing(
            f"{root} lacks {', '.join(missing)} of the {size} WebShop. "
            f"Run: python -m scripts.download_data webshop --size {size} --to {root}"
        )
    return paths


def _mapped(path: Path) -> mmap.mmap:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def write_index(
    draft: Draft, paths: list[Path], limit: int | None, advance: Advance | None
) -> None:
    """Find every product's entries in the three files."""
    products, attributes, human = paths
    seen: dict[str, int] = {}
    places: list[tuple[int, int]] = []
    dropped = dict.fromkeys(DROPPED, 0)
    for number, entry in enumerate(entries(products, advance)):
        if number == limit:
            break
        asin = entry.value.get("asin")
        reason = _reason(asin, seen)
        if reason is not None:
            dropped[reason] += 1
            continue
        seen[asin] = len(places)
        places.append((entry.start, entry.end))
    _put_places(draft, "products", np.array(places, np.int64).reshape(-1, 2))
    for kind, path in (("attributes", attributes), ("human", human)):
        found = np.zeros((len(places), 2), np.int64)
        for entry in entries(path, advance):
            if entry.name in seen:
                found[seen[entry.name]] = entry.start, entry.end
        _put_places(draft, kind, found)
    asins = np.array([asin.encode() for asin in seen], "S10")
    order = np.argsort(asins, kind="stable")
    draft.put("asins", asins[order])
    draft.put("order", order.astype(np.int32))
    draft.put("dropped", np.array([dropped[reason] for reason in DROPPED], np.int64))


def _reason(asin: object, seen: Mapping[str, int]) -> str | None:
    """Why a product is left out, None if it is not."""
    if not isinstance(asin, str) or asin in ("", "nan"):
        return "no asin"
    if len(asin) > 10:
        return "asin too long"
    return "repeated asin" if asin in seen else None


def _put_places(draft: Draft, kind: str, places: "np.ndarray[Any, np.dtype[np.int64]]") -> None:
    draft.put(f"{kind}_start", places[:, 0])
    draft.put(f"{kind}_end", places[:, 1])


def content_hash(path: Path, cache: Path, advance: Advance | None = None) -> str:
    """blake2b of a file's content, remembered while its size and time of change stay."""
    ledger = cache / _LEDGER
    status = path.stat()
    name = str(path.resolve())
    stamp = [status.st_size, status.st_mtime_ns]
    known = _read_ledger(ledger)
    entry = known.get(name)
    if isinstance(entry, dict) and entry.get("stamp") == stamp:
        return str(entry["hash"])
    found = _hash(path, status.st_size, advance)
    _write_ledger(ledger, {**_read_ledger(ledger), name: {"stamp": stamp, "hash": found}})
    return found


def _hash(path: Path, size: int, advance: Advance | None) -> str:
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while block := file.read(16 << 20):
            digest.update(block)
            if advance is not None:
                advance(file.tell(), size, f"checksum of {path.name}")
    return digest.hexdigest()


def _read_ledger(path: Path) -> dict[str, Any]:
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # a ledger only saves time
        return {}
    return known if isinstance(known, dict) else {}


def _write_ledger(path: Path, known: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.unfinished-{secrets.token_hex(6)}")
    with contextlib.ExitStack() as stack:
        stack.callback(unfinished.unlink, missing_ok=True)
        unfinished.write_text(json.dumps(known, indent=1), encoding="utf-8")
        os.replace(unfinished, path)
