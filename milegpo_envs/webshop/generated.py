"""The generated shop: products in the official schema, each a pure function of its index.

Eight products in a row belong to five lines of 3, 2, 1, 1 and 1 products. A line has a brand, a
kind of product, attributes and a price level; its products are near duplicates, which differ in one
attribute or two, in options and in price. So the right words lead to a few products that look
alike, and only reading them tells which one is right. Lines take turns over 250 kinds, so 1,000
products have all of them, with several brands a kind.

What a product's attributes are is written in its title, first bullet or description, and sometimes
only in a later bullet, where the search does not look.

Prices: nine in a hundred have a range, nine have none. Options: 42 in a hundred, more than one
group 18. About a third have an instruction as a person might write it.
"""

import functools
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from milegpo_envs.draws import Draws
from milegpo_envs.webshop import vocabulary as words
from milegpo_envs.webshop.product import Product, read_product
from milegpo_envs.webshop.vocabulary import Family

VERSION = 1
"""To be raised with every change to what is generated: it is part of the catalogue's hash."""

BARE = 0.35
"""Share of lines whose texts do not say which kind they are, so that the query misses them."""

QUIET = 0.16
"""Share of products like that whose attributes, too, stand where no search finds them."""

_LINES = (3, 2, 1, 1, 1)
_BLOCK = sum(_LINES)
_OF_BLOCK = tuple((line, n) for line, size in enumerate(_LINES) for n in range(size))
_DIGITS = "0123456789ABCDEFGHJKLMNPQRSTUVWXYZ"  # no I: looks like 1
_SPACE = len(_DIGITS) ** 8
_MULTIPLIER = 1_103_515_245_017  # coprime to 34 ** 8, so that no asin occurs twice
_OFFSET = 732_190_455_071


@functools.lru_cache(maxsize=4096)
def raw_entries(index: int) -> tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]:
    """Entries of a product in the three official files; the last is empty without a human goal."""
    block, place = divmod(index, _BLOCK)
    line_in_block, member = _OF_BLOCK[place]
    return _entries(index, block * len(_LINES) + line_in_block, member)


def generate(index: int) -> Product:
    """The product at an index."""
    product, attributes, human = raw_entries(index)
    return read_product(product, attributes, human)  # type: ignore[arg-type]


def asin_of(index: int) -> str:
    """The asin at an index: "B0" and eight digits in base 34, in no visible order."""
    number = (index * _MULTIPLIER + _OFFSET) % _SPACE
    digits = []
    for _ in range(8):
        number, digit = divmod(number, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return "B0" + "".join(digits)


def index_of(asin: str) -> int | None:
    """The index of an asin, None for what no index gives."""
    if len(asin) != 10 or not asin.startswith("B0") or any(c not in _DIGITS for c in asin[2:]):
        return None
    number = 0
    for digit in reversed(asin[2:]):
        number = number * len(_DIGITS) + _DIGITS.index(digit)
    return (number - _OFFSET) * pow(_MULTIPLIER, -1, _SPACE) % _SPACE


class GeneratedCatalogue:
    """The first so many products of the generated shop, made when they are asked for."""

    def __init__(self, size: int, cache: Path | None) -> None:
        self.name = f"generated/{size}"
        self.content_hash = f"{VERSION:08x}{size:024x}"
        self.cache = cache
        self._size = size
        self._made = functools.lru_cache(maxsize=4096)(generate)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: int) -> Product:
        if not -self._size <= index < self._size:
            raise IndexError(f"{self.name} has no product {index}.")
        return self._made(index % self._size)

    def __iter__(self) -> Iterator[Product]:
        return map(generate, range(self._size))

    def by_asin(self, asin: str) -> Product | None:
        """The product with this asin, None if there is none."""
        index = self.index_of(asin)
        return None if index is None else self[index]

    def index_of(self, asin: str) -> int | None:
        """Where the product with this asin is, None if there is none."""
        index = index_of(asin)
        return index if index is not None and index < self._size else None


def write_official(folder: Path, products: int) -> None:
    """Write the generated shop as the official small files, which hold 1,000 products or fewer."""
    entries = [raw_entries(i) for i in range(products)]
    files = {
        "items_shuffle_1000.json": [product for product, _, _ in entries],
        "items_ins_v2_1000.json": {p["asin"]: attributes for p, attributes, _ in entries},
        "items_human_ins.json": {p["asin"]: human for p, _, human in entries if human},
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")


def _entries(
    index: int, line: int, member: int
) -> tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]:
    family, kind = words.KINDS[line % len(words.KINDS)]
    shared = Draws(f"webshop/{VERSION}/line/{line}")
    own = Draws(f"webshop/{VERSION}/product/{index}")
    brand = _brand(shared)
    name = shared.choice(family.names)
    adjective, use = shared.choice(words.ADJECTIVES), shared.choice(words.USES)
    attributes = _attributes(family, shared, own, member)
    level = _skewed(shared, family.low, family.high) * own.uniform(0.85, 1.2)
    options = _options(family, own)
    quiet = own.chance(QUIET)
    bare = shared.chance(BARE)
    noun = name if bare or quiet else f"{kind} {name}"
    spread = _Places(attributes, quiet, own)

    model = f"{own.choice('ABCDEFGHKLMNPRSTVX')}{own.integer(10, 999)}"
    bare = shared.chance(BARE)
    ends = ", ".join(a.title() for a in spread.title)
    title = f"{brand} {model} {adjective.title()} {noun.title()} for {use.title()}"
    title = f"{title}, {ends}" if ends else title
    if not options and own.chance(0.4):
        title += f" ({own.choice(words.COLORS).title()})"
    product: dict[str, Any] = {
        "name": title,
        "full_description": _description(brand, noun, use, spread, own),
        "pricing": _pricing(level, own),
        "images": [],
        "product_category": f"{family.path} \u203a {kind.title()} {family.noun.title()}",
        "average_rating": "",
        "small_description": _bullets(brand, noun, model, spread, own),
        "customization_options": _raw_options(options),
        "asin": asin_of(index),
        "category": family.category,
        "query": f"{kind} {family.noun}",
        "page": 1,
    }
    wanted = own.sample(attributes, own.integer(1, 3))
    instruction = {
        "attributes": attributes,
        "instruction": _synthetic(wanted, f"{kind} {family.noun}"),
        "instruction_attributes": wanted,
    }
    return product, instruction, _human(product["asin"], f"{kind} {name}", attributes, options, own)


def _brand(draws: Draws) -> str:
    parts = (words.BRAND_STARTS, words.BRAND_MIDDLES, words.BRAND_ENDS)
    return "".join(draws.choice(part) for part in parts).title()


def _attributes(family: Family, shared: Draws, own: Draws, member: int) -> list[str]:
    """Those of the line, of which every product but the first has exchanged one or two."""
    pool = [attribute for group in family.details for attribute in words.ATTRIBUTES[group]]
    drawn = shared.sample(pool, shared.integer(3, 6) + 4)
    ours, spare = drawn[:-4], drawn[-4:]
    for place in range(min(member, 2)):
        ours[own.integer(0, len(ours) - 1)] = spare[2 * (member - 1) % 3 + place]
    return list(dict.fromkeys(ours))


def _skewed(draws: Draws, low: float, high: float) -> float:
    """Between the two, cheap ones more often."""
    return float(low + (high - low) * draws.uniform(0.0, 1.0) ** 2)


class _Places:
    """Where a product's texts name its attributes."""

    def __init__(self, attributes: list[str], quiet: bool, draws: Draws) -> None:
        self.title: list[str] = []
        self.first_bullet: list[str] = []
        self.description: list[str] = []
        self.later_bullets: list[str] = []
        for attribute in attributes:
            point = 1.0 if quiet else draws.uniform(0.0, 1.0)
            if point < 0.35 and len(self.title) < 3:
                self.title.append(attribute)
            elif point < 0.6:
                self.first_bullet.append(attribute)
            elif point < 0.75:
                self.description.append(attribute)
            else:
                self.later_bullets.append(attribute)


def _description(brand: str, noun: str, use: str, places: _Places, draws: Draws) -> str:
    if draws.chance(0.12):  # many official products have no description
        places.later_bullets += places.description
        return ""
    sentences = [f"The {noun} that {brand} makes for {use}."]
    sentences += [
        draws.choice(
            (
                f"It comes with {attribute}, which you will notice from the first day.",
                f"We chose {attribute} because our customers asked for it.",
                f"Thanks to {attribute}, it stays a favorite.",
            )
        )
        for attribute in places.description
    ]
    closing = (
        "Please check the measurements before you order.",
        "If anything is wrong, write to us and we will make it right.",
        "Colors may differ a little from screen to screen.",
        "A thoughtful present for friends and family.",
    )
    return " ".join([*sentences, *draws.sample(closing, draws.integer(1, 2))])


def _bullets(brand: str, noun: str, model: str, places: _Places, draws: Draws) -> list[str]:
    first = ", ".join(places.first_bullet)
    bullets = [
        f"{first.upper()}: what sets this {noun} apart from the others on your list. "
        if first
        else f"WHAT YOU GET: one {noun} by {brand}, model {model}, ready to use. "
    ]
    for attribute in places.later_bullets:
        claim = draws.choice(("tested in daily use", "made to last", "at no extra cost"))
        bullets.append(f"{attribute.capitalize()}, {claim}. ")
    extra = (
        "Easy to return within 30 days. ",
        f"Questions about your {noun}? We answer within a day. ",
        "Packed with care in a recycled box. ",
        "Note: props in the pictures are not included. ",
    )
    return bullets + draws.sample(extra, draws.integer(1, 3))


def _pricing(level: float, draws: Draws) -> str:
    point = draws.uniform(0.0, 1.0)
    low = int(level) + draws.choice((0.99, 0.95, 0.49, 0.0))
    if point < 0.09:
        return ""
    if point < 0.18:
        return f"${low:.2f}${low * draws.uniform(1.05, 1.7):.2f}"
    return f"${low:,.2f}"


def _options(family: Family, draws: Draws) -> dict[str, list[str]]:
    """Group -> values. 42 in a hundred have some, 18 more than one group."""
    point = draws.uniform(0.0, 1.0)
    if point >= 0.42:
        return {}
    count = 2 if point < 0.18 else 1
    groups = family.options if count == 2 or draws.chance(0.7) else family.options[1:]
    return {
        group.title(): draws.sample(_values(family, group), draws.integer(2, 7))
        for group in groups[:count]
    }


def _values(family: Family, group: str) -> tuple[str, ...]:
    if group != "size":
        return _VALUES[group]
    if family.noun in ("sandals", "loafers"):
        return words.SHOE_SIZES
    return _SIZES[family.category]


_VALUES: Mapping[str, tuple[str, ...]] = {
    "color": words.COLORS,
    "flavor name": words.FLAVORS,
    "scent": words.SCENTS,
    "style": words.STYLES,
}
_SIZES: Mapping[str, tuple[str, ...]] = {
    "fashion": words.CLOTHES_SIZES,
    "beauty": words.BOTTLES,
    "grocery": words.PACKS,
    "electronics": words.LENGTHS,
    "garden": words.FURNISHING_SIZES,
}


def _raw_options(options: Mapping[str, list[str]]) -> dict[str, list[dict[str, Any]]] | str:
    """As the official files write options: no options are an empty text."""
    empty = {"is_selected": False, "url": None, "price_string": "", "price": 0, "image": None}
    return {
        group: [{**empty, "value": value.title()} for value in values]
        for group, values in options.items()
    } or ""


def _synthetic(wanted: list[str], query: str) -> str:
    """As the official files do: the last attribute follows the query."""
    *before, last = wanted
    return (
        f"Find me {', '.join(before)} {query} with {last}"
        if before
        else (f"Find me {query} with {last}")
    )


_OPENINGS = (
    "i am looking for a",
    "i need a",
    "i would like to buy a",
    "can you find me a",
    "show me a",
    "i'm after a",
)


def _human(
    asin: str,
    noun: str,
    attributes: list[str],
    options: Mapping[str, list[str]],
    draws: Draws,
) -> list[dict[str, Any]]:
    """About one product in three has an instruction as a person might write it."""
    if not draws.chance(0.35):
        return []
    wanted = draws.sample(attributes, draws.integer(2, 3))
    chosen = {group: draws.choice(values) for group, values in options.items() if draws.chance(0.8)}
    text = f"{draws.choice(_OPENINGS)} {noun} {draws.choice(('that has', 'with'))} "
    text += ", ".join(wanted[:-1]) + f" and {wanted[-1]}"
    for group, value in chosen.items():
        text += draws.choice((f", in {value}", f", and the {group.lower()} should be {value}"))
    values = [value.replace("/", " | ") for value in chosen.values()]
    return [
        {
            "asin": asin,
            "instruction": text + ".",
            "attributes": attributes,
            "options": [f"{group.lower()}: {value}" for group, value in chosen.items()],
            "instruction_attributes": wanted,
            "instruction_options": values,
            "assignment_id": "generated",
            "worker_id": "generated",
        }
    ]


def nouns(title: str) -> tuple[str, ...]:
    """The nouns of a generated title, in order and lower-cased, known from how it was composed."""
    found = re.findall(r"[^\s,()/-]+", title.lower())
    return tuple(w for w in found if w.isalpha() and w not in words.NOT_NOUNS)
