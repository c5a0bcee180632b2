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
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

from milegpo_envs.webshop.catalogue import Catalogue, Product

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
    goals: Sequence[Goal]  # shuffled


@functools.lru_cache(maxsize=16)
def open_market(
    catalogue: Catalogue, *, human: bool = False, mode: Mode = "fixed", seed: int = 0
) -> Market:
    """Prices and shuffled goals of a catalogue, shared by all who ask in this process."""
    rng = random.Random(seed) if mode == "official" else None
    prices = draw_prices(catalogue, rng)
    in_order = list(goals(catalogue, prices, human=human, rng=rng))
    random.Random(SHUFFLE_SEED).shuffle(in_order)
    return Market(prices, in_order)


def draw_prices(catalogue: Catalogue, rng: random.Random | None) -> Sequence[float]:
    """Price of every product; ranges are drawn from `rng`, or are pure functions of the asin."""
    return [_price(catalogue[i], rng) for i in range(len(catalogue))]


def _price(product: Product, rng: random.Random | None) -> float:
    if len(product.prices) == 1:
        return product.prices[0]
    low, high = product.prices
    if rng is None:
        return low + (high - low) * _fraction(f"price/{product.asin}")
    return rng.uniform(low, high)


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


def goals(
    catalogue: Catalogue,
    prices: Sequence[float],
    *,
    human: bool,
    rng: random.Random | None,
) -> Iterator[Goal]:
    """Goals in the order of the catalogue, not shuffled.

    Human goals: one an instruction that names attributes. Synthetic: one a combination of option
    values, groups in alphabetical order; all goals of a product share one bound.
    """
    make = _human_goals if human else _synthetic_goals
    return make(catalogue, prices, rng)


def _human_goals(
    catalogue: Catalogue, prices: Sequence[float], rng: random.Random | None
) -> Iterator[Goal]:
    for i in range(len(catalogue)):
        product = catalogue[i]
        for number, written in enumerate(product.human_instructions):
            if not written.attributes:
                continue
            bound = price_bound(prices[i], rng, f"bound/{product.asin}/{number}")
            yield Goal(
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


def _synthetic_goals(
    catalogue: Catalogue, prices: Sequence[float], rng: random.Random | None
) -> Iterator[Goal]:
    frequency: Counter[str] = Counter()
    for i in range(len(catalogue)):
        product = catalogue[i]
        if product.instruction is not None:
            combinations = math.prod(len(values) for values in product.options.values())
            for attribute in product.instruction_attributes:
                frequency[attribute] += combinations
    for i in range(len(catalogue)):
        product = catalogue[i]
        if product.instruction is None:
            continue
        bound = price_bound(prices[i], rng, f"bound/{product.asin}")
        wanted = product.instruction_attributes
        weight = sum(1.0 / frequency[attribute] for attribute in wanted) / len(wanted)
        groups = sorted(product.options)
        for values in itertools.product(*(product.options[group] for group in groups)):
            options = dict(zip(groups, values, strict=True))
            named = ", and ".join(f"{group}: {value}" for group, value in options.items())
            yield Goal(
                asin=product.asin,
                instruction=product.instruction + (f" with {named}" if named else ""),
                name=product.name,
                category=product.category,
                query=product.query,
                product_category=product.product_category,
                attributes=wanted,
                options=options,
                price_upper=bound,
                weight=weight,
                is_human=False,
            )
