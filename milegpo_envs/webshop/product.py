"""One product of the shop, read from the official file format.

The format: `items_shuffle*.json` holds what was scraped, `items_ins_v2*.json` its attributes and
the synthetic instruction, `items_human_ins.json` instructions written by people. What the official
loader reads is read the same way here; what stops it (a price without a number, an option without
a text, say) loads with a flag.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

DEFAULT_PRICE = 100.0
"""Price of a product that states none."""

NO_ATTRIBUTES = ("DUMMY_ATTR",)
"""Attributes of a product that the attributes file does not know."""


@dataclass(frozen=True)
class HumanInstruction:
    """What a person wrote for a product, and the attributes and options they had been shown."""

    text: str
    attributes: tuple[str, ...]
    options: tuple[str, ...]  # values only: people were not asked for the groups


@dataclass(frozen=True)
class Product:
    """A product as the shop shows it.

    prices: one value, or the two ends of a range as stated (the first may be the larger one).
    price_flag: why the price text is odd, None if it is not (see `read_price`).
    option_flag: likewise of the options (see `read_options`).
    options: group -> values, both lower-cased, in the order of the file.
    option_images: value -> address of a picture.
    instruction: synthetic, without options and price; None where the file has none.
    """

    asin: str
    name: str
    description: str
    bullets: tuple[str, ...]
    options: Mapping[str, tuple[str, ...]]
    option_images: Mapping[str, str | None]
    category: str
    query: str
    product_category: str
    attributes: tuple[str, ...]
    price_text: str
    prices: tuple[float, ...]
    price_flag: str | None
    images: tuple[str, ...]
    instruction: str | None = None
    instruction_attributes: tuple[str, ...] = ()
    human_instructions: tuple[HumanInstruction, ...] = ()
    option_flag: str | None = None
    rating: str = "N.A."  # the official shop ships no ratings

    @property
    def title(self) -> str:
        """What the pages call the name."""
        return self.name

    @property
    def main_image(self) -> str:
        """Address of the first picture, empty if there is none."""
        return self.images[0] if self.images else ""

    @property
    def price_tag(self) -> str:
        """The price as the pages show it: "$9.5" or "$9.5 to $12.0"."""
        return " to ".join(f"${price}" for price in self.prices)


def read_price(text: object) -> tuple[tuple[float, ...], str | None]:
    """Read a price text as the official loader does: split at "$", keep digits and dots.

    Returns:
        The price or the two ends of a range, and a flag: "no number" (priced at 100.0),
        "no dollar sign" (the first number in the text), "not a text" (a number counts, anything
        else is priced at 100.0; the official loader fails on these three), "unit price" (the price
        of an ounce is taken for the end of a range), "many prices" (the first two count), or None.
        Numbers beyond all bounds are none.
    """
    if not text:
        return (DEFAULT_PRICE,), None
    if not isinstance(text, str):
        is_price = isinstance(text, int | float) and 0 <= text < math.inf
        return (float(text) if is_price else DEFAULT_PRICE,), "not a text"  # type: ignore[arg-type]
    numbers = [number for part in text.split("$")[1:] if (number := _number(part)) is not None]
    if not numbers:
        bare = re.search(r"\d[\d,]*(\.\d+)?", text)
        value = None if bare is None else _number(bare.group())
        return ((DEFAULT_PRICE,), "no number") if value is None else ((value,), "no dollar sign")
    if len(numbers) > 2:
        return tuple(numbers[:2]), "many prices"
    return tuple(numbers), "unit price" if "/" in text else None


def _number(text: str) -> float | None:
    """The number in a text, None if there is none or it is beyond all bounds."""
    try:
        number = float(re.sub(r"[^\d.]", "", text))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def read_product(
    raw: Mapping[str, Any],
    attributes: Mapping[str, Any] | None,
    human: list[Mapping[str, Any]] | None,
) -> Product:
    """Build a product from its entries in the three official files.

    Args:
        raw: from `items_shuffle*.json`.
        attributes: from `items_ins_v2*.json`, None if it has no such asin.
        human: from `items_human_ins.json`, None likewise.
    """
    prices, flag = read_price(raw.get("pricing"))
    options, images, option_flag = read_options(raw.get("customization_options"))
    bullets = raw["small_description"]
    more = attributes or {}
    return Product(
        asin=raw["asin"],
        name=raw["name"],
        description=raw["full_description"] or "",
        bullets=tuple(bullets) if isinstance(bullets, list) else (bullets or "",),
        options=options,
        option_images=images,
        category=raw["category"],
        query=raw["query"].lower().strip(),
        product_category=raw["product_category"],
        attributes=tuple(more["attributes"]) if "attributes" in more else NO_ATTRIBUTES,
        price_text=str(raw.get("pricing") or ""),
        prices=prices,
        price_flag=flag,
        option_flag=option_flag,
        images=tuple(image for image in raw["images"] or () if isinstance(image, str)),
        instruction=more.get("instruction"),
        instruction_attributes=tuple(more.get("instruction_attributes") or ()),
        human_instructions=tuple(
            HumanInstruction(
                text=written["instruction"],
                attributes=tuple(written["instruction_attributes"]),
                options=tuple(written["instruction_options"]),
            )
            for written in human or ()
        ),
    )


def read_options(
    raw: object,
) -> tuple[dict[str, tuple[str, ...]], dict[str, str | None], str | None]:
    """Read `customization_options` as the official loader does.

    Returns:
        Options and their pictures (see `Product`), and a flag: "not a table" (no options),
        "not a list" (a group without a list of values is left out), "not a text" (a value that is a
        number counts as its text, one that is nothing of the sort is left out; the official loader
        fails on these three), or None. The last to be found counts.
    """
    options: dict[str, tuple[str, ...]] = {}
    images: dict[str, str | None] = {}
    flag: str | None = None
    if raw and not isinstance(raw, Mapping):
        return options, images, "not a table"
    for group, choices in (raw or {}).items():  # type: ignore[attr-defined]
        if choices is None:
            continue
        if not isinstance(choices, list):
            flag = "not a list"
            continue
        values = []
        for choice in choices:
            text, image, is_odd = _read_choice(choice)
            flag = "not a text" if is_odd else flag
            if text is not None:
                values.append(text)
                images[text] = image
        options[group.lower()] = tuple(values)
    return options, images, flag


def _read_choice(choice: object) -> tuple[str | None, str | None, bool]:
    """The text of an option value, its picture, and whether the entry is odd."""
    entry = choice if isinstance(choice, Mapping) else {"value": choice}
    value, image = entry.get("value"), entry.get("image")
    is_odd = entry is not choice or not isinstance(value, str)
    if not isinstance(value, str | int | float):
        return None, None, True
    text = str(value).strip().replace("/", " | ").lower()
    return text, image if isinstance(image, str) else None, is_odd
