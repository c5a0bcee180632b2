"""What to buy: goals from a catalogue, and the prices that decide their bounds.

`open_market` is what an environment needs: prices and the shuffled goals. Two modes.

official: the ranges' prices and then the goals' bounds are drawn from one `random.Random(seed)`, in
the order in which the official engine draws them from the global generator; the goals are then
shuffled by `random.Random(233)`. Equal to an official engine whose host called `random.seed(seed)`.

fixed: prices and bounds have the same distributions, but each is a pure function of the product, so
that the goals of a catalogue are the same for every seed, process and machine. Same shuffle.

In both modes goals 0 to 499 are for the test, 500 to 1,499 for validation, the rest for training.
"""

import functools
import itertools
import math
import random
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from milegpo_envs.webshop.catalogue import Catalogue
from milegpo_envs.webshop.columns import Columns, open_columns
from milegpo_envs.webshop.product import Product

Mode = Literal["fixed", "official"]

SHUFFLE_SEED = 233
BOUNDS = tuple(10.0 * i for i in range(1, 100))

SPLITS: Mapping[str, tuple[int, int | None]] = {
    "test": (0, 500),
    "validation": (500, 1500),
    "train": (1500, None),
}
"""Split -> first goal and the one after the last, on the shuffled goals."""


@dataclass(frozen=True)
class Goal:
    """A product to find and what the shopper was told of it.

    options: group -> value of a synthetic goal; a human goal has values only.
    price_upper: what the price must not exceed, None if there is no bound.
    weight: how rare the attributes are, 1.0 for human goals. The official engine draws goals in
        proportion to it where none is asked for.
    """

    asin: str
    instruction: str
    name: str
    category: str
    query: str
    product_category: str
    attributes: tuple[str, ...]
    options: Mapping[str, str] | tuple[str, ...]
    price_upper: float | None
    weight: float
    is_human: bool

    @property
    def instruction_text(self) -> str:
        """The instruction with the bound, as the shop shows it."""
        if self.price_upper is None:
            return self.instruction
        return f"{self.instruction}, and price lower than {self.price_upper:.2f} dollars"

    @property
    def option_values(self) -> tuple[str, ...]:
        """The values to choose, in order, of either kind of goal."""
        return tuple(self.options.values()) if isinstance(self.options, Mapping) else self.options


@dataclass(frozen=True)
class Market:
    """Prices and goals of a catalogue; goal indices are places in `goals`."""

    prices: Sequence[float]  # [products], aligned with the catalogue
    goals: "Goals"  # shuffled


@functools.lru_cache(maxsize=16)
def open_market(
    catalogue: Catalogue, *, human: bool = False, mode: Mode = "fixed", seed: int = 0
) -> Market:
    """Prices and shuffled goals of a catalogue, shared by all who ask in this process.

    Args:
        catalogue: what is sold.
        human: goals from instructions that people wrote; else synthetic ones.
        mode: see above.
        seed: of prices and bounds in official mode; without effect in fixed mode.
    """
    rng = random.Random(seed) if mode == "official" else None
    columns = open_columns(catalogue)
    prices = draw_prices(catalogue, columns, rng)
    sellers = np.repeat(np.arange(len(prices)), _goals_per_product(columns, human))  # [goals]
    bounds = _draw_bounds(catalogue, columns, prices, human, rng)
    order = list(range(len(sellers)))
    random.Random(SHUFFLE_SEED).shuffle(order)
    in_order = Goals(catalogue, columns, bounds, human, sellers, np.array(order, np.int64))
    return Market(array("d", prices.tobytes()), in_order)


def _goals_per_product(columns: Columns, human: bool) -> NDArray[np.integer[Any]]:
    return columns.human if human else columns.combinations


def draw_prices(
    catalogue: Catalogue, columns: Columns, rng: random.Random | None
) -> NDArray[np.float64]:
    """Price of every product; ranges are drawn from `rng`, or are pure functions of the asin."""
    prices = np.array(columns.low)
    for i in np.flatnonzero(~np.isnan(columns.high)).tolist():
        if rng is None:
            prices[i] = fixed_price(catalogue[i])
        else:
            prices[i] = rng.uniform(float(columns.low[i]), float(columns.high[i]))
    return prices


def fixed_price(product: Product) -> float:
    """The price of fixed mode: as stated, or in the range by the hash of the asin."""
    low, high = product.prices[0], product.prices[-1]
    return low + (high - low) * _fraction(f"price/{product.asin}")


def _draw_bounds(
    catalogue: Catalogue,
    columns: Columns,
    prices: NDArray[np.float64],
    human: bool,
    rng: random.Random | None,
) -> NDArray[np.float64]:
    """Bounds in the order in which the official engine draws them; not a number: no bound.

    [goals] for human goals. [products] for synthetic ones, which share their product's.
    """
    if rng is None:
        return np.zeros(0)
    bounds = np.full(columns.human.sum() if human else len(prices), np.nan)
    sellers = np.flatnonzero(_goals_per_product(columns, human)).tolist()
    draws = ((i, n) for i in sellers for n in range(int(columns.human[i]) if human else 1))
    for place, (i, _) in enumerate(draws):
        bound = price_bound(float(prices[i]), rng, "")
        bounds[place if human else i] = np.nan if bound is None else bound
    return bounds


def price_bound(price: float, rng: random.Random | None, name: str) -> float | None:
    """Larger of two among the first four multiples of 10 above the price (up to 990).

    None if fewer than two are left. Without `rng` a pure function of `name`.
    """
    above = [bound for bound in BOUNDS if bound > price][:4]
    if len(above) < 2:
        return None
    if rng is not None:
        return max(rng.sample(above, 2))
    pairs = list(itertools.combinations(above, 2))
    return max(pairs[int(_fraction(name) * len(pairs))])


def _fraction(name: str) -> float:
    """A number in [0, 1) that is a pure function of the name."""
    digest = blake2b(f"webshop/{name}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / 2**53


class Goals(Sequence[Goal]):
    """Goals of a catalogue, made when they are asked for.

    In the catalogue's order, before they are shuffled: a human goal for each instruction that names
    attributes; a synthetic goal for each combination of a product's option values, groups in
    alphabetical order, the last one changing fastest.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        columns: Columns,
        bounds: NDArray[np.float64],
        human: bool,
        sellers: NDArray[np.intp],
        order: NDArray[np.int64],
    ) -> None:
        self._catalogue = catalogue
        self._columns = columns
        self._bounds = bounds
        self._human = human
        self._sellers = sellers  # [goals], before shuffling
        self._order = order  # [goals]
        self._made = functools.lru_cache(maxsize=1 << 14)(self._make)

    def __len__(self) -> int:
        return len(self._order)

    @overload
    def __getitem__(self, index: int) -> Goal: ...

    @overload
    def __getitem__(self, index: slice) -> list[Goal]: ...

    def __getitem__(self, index: int | slice) -> Goal | list[Goal]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"Goal {index} of {len(self)}.")
        return self._made(int(index) % len(self))

    @property
    def products(self) -> NDArray[np.intp]:
        """Catalogue index of the product of every goal. [goals]."""
        return self._sellers[self._order]

    @property
    def weights(self) -> NDArray[np.float64]:
        """Weight of every goal. [goals]."""
        return np.ones(len(self)) if self._human else self._columns.weight[self.products]

    def _make(self, index: int) -> Goal:
        place = int(self._order[index])
        seller = int(self._sellers[place])
        number = place - int(np.searchsorted(self._sellers, seller))
        product = self._catalogue[seller]
        if self._human:
            return _human_goal(product, number, self._bound(seller, place, number))
        weight = float(self._columns.weight[seller])
        return _synthetic_goal(product, number, self._bound(seller, seller, 0), weight)

    def _bound(self, seller: int, place: int, number: int) -> float | None:
        if len(self._bounds):
            bound = float(self._bounds[place])
            return None if math.isnan(bound) else bound
        product = self._catalogue[seller]
        return price_bound(fixed_price(product), None, f"bound/{product.asin}/{number}")


def _human_goal(product: Product, number: int, bound: float | None) -> Goal:
    written = [w for w in product.human_instructions if w.attributes][number]
    return Goal(
        asin=product.asin,
        instruction=written.text.strip("."),
        name=product.name,
        category=product.category,
        query=product.query,
        product_category=product.product_category,
        attributes=written.attributes,
        options=written.options,
        price_upper=bound,
        weight=1.0,
        is_human=True,
    )


def _synthetic_goal(product: Product, number: int, bound: float | None, weight: float) -> Goal:
    options: dict[str, str] = {}
    for group in sorted(product.options, reverse=True):
        values = product.options[group]
        number, place = divmod(number, len(values))
        options[group] = values[place]
    options = dict(sorted(options.items()))
    named = ", and ".join(f"{group}: {value}" for group, value in options.items())
    return Goal(
        asin=product.asin,
        instruction=f"{product.instruction}" + (f" with {named}" if named else ""),
        name=product.name,
        category=product.category,
        query=product.query,
        product_category=product.product_category,
        attributes=product.instruction_attributes,
        options=options,
        price_upper=bound,
        weight=weight,
        is_human=False,
    )
