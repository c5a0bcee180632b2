"""The products of a shop, by index and by asin."""

import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from milegpo_envs.reports import Advance
from milegpo_envs.webshop.generated import GeneratedCatalogue
from milegpo_envs.webshop.official import OfficialCatalogue, Size
from milegpo_envs.webshop.product import HumanInstruction, Product
from milegpo_envs.webshop.storage import user_cache

__all__ = ["Catalogue", "HumanInstruction", "Product", "Size", "load_catalogue"]


class Catalogue(Protocol):
    """Products in a fixed order. Indices run from 0; asins are unique."""

    name: str
    content_hash: str
    """32 hex digits; equal for catalogues with the same products in the same order."""
    cache: Path | None
    """Folder for what is derived from the products; None keeps it in memory."""

    def __hash__(self) -> int: ...

    def __len__(self) -> int:
        """Number of products."""
        ...

    def __getitem__(self, index: int) -> Product:
        """The product at an index."""
        ...

    def by_asin(self, asin: str) -> Product | None:
        """The product with this asin, None if there is none."""
        ...

    def index_of(self, asin: str) -> int | None:
        """Where the product with this asin is, None if there is none."""
        ...


class MemoryCatalogue:
    """A catalogue of products that are all in memory."""

    def __init__(self, name: str, products: Sequence[Product], content_hash: str) -> None:
        self.name = name
        self.content_hash = content_hash
        self.cache: Path | None = None
        self._products = tuple(products)
        self._index = {product.asin: i for i, product in enumerate(self._products)}

    def __len__(self) -> int:
        return len(self._products)

    def __getitem__(self, index: int) -> Product:
        return self._products[index]

    def __iter__(self) -> Iterator[Product]:
        return iter(self._products)

    def by_asin(self, asin: str) -> Product | None:
        """The product with this asin, None if there is none."""
        index = self._index.get(asin)
        return None if index is None else self._products[index]

    def index_of(self, asin: str) -> int | None:
        """Where the product with this asin is, None if there is none."""
        return self._index.get(asin)


GENERATED_PRODUCTS = 1000
"""Products of the generated catalogue unless told otherwise."""

_IN_MEMORY = 5000
"""Generated catalogues up to this size are indexed in memory, in less than a second or two."""


@functools.lru_cache(maxsize=4)
def _generated(products: int) -> Catalogue:
    return GeneratedCatalogue(products, None if products <= _IN_MEMORY else user_cache())


def load_catalogue(
    data: str | Path | None,
    *,
    products: int | None = None,
    size: Size = "small",
    advance: Advance | None = None,
) -> Catalogue:
    """Open a catalogue, once a process.

    Args:
        data: folder with the official files, None for the generated catalogue.
        products: only the first so many products.
        size: which of the official files to read.
        advance: called while official files are indexed, which happens once a folder.

    Raises:
        DataMissing: the folder has not the files of that size.
        UnknownName: no such size.
        ValueError: `products` below 1.
    """
    if products is not None and products < 1:
        raise ValueError(f"products={products}: a shop has at least one product.")
    if data is None:
        return _generated(products if products is not None else GENERATED_PRODUCTS)
    root = Path(data).expanduser().resolve()
    if advance is not None:
        OfficialCatalogue(root, size, products, advance)  # leaves the index
    return _official(root, size, products)


@functools.lru_cache(maxsize=4)
def _official(root: Path, size: Size, products: int | None) -> Catalogue:
    return OfficialCatalogue(root, size, products)
