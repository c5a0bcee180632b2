"""What goals and prices need to know of every product, without decoding all of them again.

One pass over a catalogue, kept beside it: a shop of a million products opens at once.
"""

import functools
import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from milegpo_envs.reports import Advance
from milegpo_envs.webshop.catalogue import Catalogue
from milegpo_envs.webshop.product import Product
from milegpo_envs.webshop.storage import Draft, stored

VERSION = "columns-2"


@dataclass(frozen=True)
class Columns:
    """Aligned with the catalogue; P products.

    low, high: the price or the ends of its range; high is not a number where there is no range.
    odd_price, odd_options: whether the product was read with such a flag. human: instructions that
    make a human goal. combinations: of option values, 0 for a product without a synthetic
    instruction. weight: of each of its synthetic goals, the mean of 1 / (goals that want the
    attribute) over its attributes.
    """

    low: NDArray[np.float64]  # [P]
    high: NDArray[np.float64]  # [P]
    odd_price: NDArray[np.bool_]  # [P]
    odd_options: NDArray[np.bool_]  # [P]
    human: NDArray[np.int32]  # [P]
    combinations: NDArray[np.int64]  # [P]
    weight: NDArray[np.float64]  # [P]


@functools.lru_cache(maxsize=8)
def open_columns(catalogue: Catalogue, advance: Advance | None = None) -> Columns:
    """The columns of a catalogue, made if need be."""
    cache = catalogue.cache
    folder = None if cache is None else cache / f"{VERSION}-{catalogue.content_hash}"
    return Columns(**stored(folder, lambda draft: write_columns(catalogue, draft, advance)))  # type: ignore[arg-type]


def write_columns(catalogue: Catalogue, draft: Draft, advance: Advance | None = None) -> None:
    """Fill a draft of a store."""
    size = len(catalogue)
    low, high = draft.array("low", "<f8", size), draft.array("high", "<f8", size)
    odd_price = draft.array("odd_price", "|b1", size)
    odd_options = draft.array("odd_options", "|b1", size)
    human = draft.array("human", "<i4", size)
    combinations = draft.array("combinations", "<i8", size)
    weight = draft.array("weight", "<f8", size)
    wanted: list[tuple[str, ...]] = []
    frequency: Counter[str] = Counter()
    for i in range(size):
        product = catalogue[i]
        low[i] = product.prices[0]
        high[i] = product.prices[1] if len(product.prices) > 1 else np.nan
        odd_price[i] = product.price_flag is not None
        odd_options[i] = product.option_flag is not None
        human[i] = sum(bool(written.attributes) for written in product.human_instructions)
        combinations[i] = count = _combinations(product)
        wanted.append(product.instruction_attributes if count else ())
        for attribute in wanted[-1]:
            frequency[attribute] += count
        if advance is not None and (i % 1000 == 999 or i + 1 == size):
            advance(i + 1, size, "prices and goals")
    for i, attributes in enumerate(wanted):
        if attributes:
            weight[i] = sum(1.0 / frequency[a] for a in attributes) / len(attributes)


def _combinations(product: Product) -> int:
    if product.instruction is None or not product.instruction_attributes:
        return 0
    return math.prod(len(values) for values in product.options.values())
