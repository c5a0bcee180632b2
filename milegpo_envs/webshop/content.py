"""What stands on a page, in reading order, before it is written as text or as HTML."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from milegpo_envs.webshop.catalogue import Product
from milegpo_envs.webshop.goals import Goal
from milegpo_envs.webshop.shop import Detail, Done, Index, Item, Page, Results, Shop, item_of

Kind = Literal["text", "button", "product", "option"]
Role = Literal[
    "heading",
    "instruction",
    "count",
    "name",
    "price",
    "group",
    "rating",
    "body",
    "notice",
    "score",
    "met",
    "missed",
]

_BLANKS = str.maketrans("", "", " \n\t\f\r")
Choices = list[tuple[str, str]]
"""(group, value) of the options shown as chosen, in the order of the page."""

_PART_BUTTONS = ("Description", "Features", "Reviews", "Buy Now")


class Node(NamedTuple):  # made by the dozen at every step
    """A piece of a page.

    kind: what it is to a player; everything but a text can be clicked, by its lower-cased text.
    marked: a product opened before, or an option chosen. role: what it is to a designer. image:
    address of its picture, empty without one.
    """

    kind: Kind
    text: str
    marked: bool = False
    role: Role = "body"
    image: str = ""


@dataclass(frozen=True, slots=True)
class View:
    """A page as a customer has it before them.

    address: of the page. says_choices: whether every rendering says which options are chosen.
    """

    nodes: tuple[Node, ...]
    address: str
    says_choices: bool


def look(shop: Shop, page: Page, goal: Goal, session: str) -> View:
    """Lay out a page; `session` is the customer's name in addresses."""
    where = address(shop, page, session)
    nodes = [
        node
        for node in _nodes(shop, page, goal, where)
        if node.text and ("\n" not in node.text or _survives(node.text))
    ]
    return View(tuple(nodes), where, shop.rules.options_always_shown)


def address(shop: Shop, page: Page, session: str) -> str:
    """The page's address, as the official engine's text mode writes it, unquoted."""
    base = "http://127.0.0.1:3000"
    if isinstance(page, Index):
        return f"{base}/{session}"
    results = page if isinstance(page, Results) else item_of(page).results
    searched = f"{'+'.join(results.words)}/{results.number}"
    if isinstance(page, Results):
        return f"{base}/search_results/{session}/{searched}"
    item = item_of(page)
    asin = shop.product(item).asin
    chosen = dict(item.chosen)
    if isinstance(page, Item):
        return f"{base}/item_page/{session}/{asin}/{searched}/{json.dumps(chosen)}"
    if isinstance(page, Detail):
        part = page.part.capitalize()
        return f"{base}/item_sub_page/{session}/{asin}/{searched}/{part}/{chosen}"
    return f"{base}/done/{session}/{asin}/{chosen}"


def _survives(text: str) -> bool:
    """Whether a text with line breaks outlives the official engine's HTML parser: not if blank."""
    return bool(text.translate(_BLANKS))


def _nodes(shop: Shop, page: Page, goal: Goal, where: str) -> Iterator[Node]:
    match page:
        case Index():
            yield Node("text", "WebShop", role="heading")
            yield Node("text", "Instruction: ", role="heading")
            yield Node("text", goal.instruction_text, role="instruction")
            yield Node("button", "Search")
        case Results():
            yield from _top(goal)
            yield from _results(shop, page)
        case Item():
            chosen = _shown_as_chosen(shop, page, where)
            yield from _notices(chosen)
            yield from _top(goal)
            yield Node("button", "< Prev")
            yield from _item(shop.product(page), chosen)
        case Detail():
            if shop.rules.options_always_shown:
                yield from _notices(_shown_as_chosen(shop, page.item, where))
            yield from _top(goal)
            yield Node("button", "< Prev")
            yield from _detail(shop.product(page), page.part)
        case Done():
            write = _receipt if shop.rules.options_always_shown else _official_receipt
            yield from write(shop.product(page), page)


def _top(goal: Goal) -> Iterator[Node]:
    yield Node("text", "Instruction:", role="heading")
    yield Node("text", goal.instruction_text, role="instruction")
    yield Node("button", "Back to Search")


def _results(shop: Shop, page: Results) -> Iterator[Node]:
    count = f"Page {page.number} (Total results: {len(page.found)})"
    yield Node("text", count, role="count")
    offered = shop.clickables(page)
    for label in ("< Prev", "Next >"):
        if label.lower() in offered:
            yield Node("button", label)
    for index in page.shown:
        product = shop.catalogue[index]
        yield Node("product", product.asin, marked=index in page.visited, image=product.main_image)
        yield Node("text", product.title, role="name")
        yield Node("text", product.price_tag, role="price")


def _item(product: Product, chosen: Choices) -> Iterator[Node]:
    for group, values in product.options.items():
        yield Node("text", group, role="group")
        for value in values:
            marked = (group, value) in chosen
            image = product.option_images.get(value) or ""
            yield Node("option", value, marked=marked, image=image)
    yield Node("text", product.title, role="name", image=product.main_image)
    yield Node("text", f"Price: {product.price_tag}", role="price")
    yield Node("text", f"Rating: {product.rating}", role="rating")
    for label in _PART_BUTTONS:
        yield Node("button", label)


def _detail(product: Product, part: str) -> Iterator[Node]:
    if part == "description":
        yield Node("text", product.description)
    if part == "features":
        for bullet in product.bullets:
            yield Node("text", f" {bullet}")


def _notices(chosen: Choices) -> Iterator[Node]:
    """What has been chosen, in the reverse order of the page, as the official engine says it."""
    for _, value in reversed(chosen):
        yield Node("text", f"You have clicked {value}.", role="notice")


def _receipt(product: Product, page: Done) -> Iterator[Node]:
    """The last page, with what was met and what was not."""
    score = page.score
    yield Node("text", "Thank you for shopping with us!", role="heading")
    yield Node("text", product.title, role="name", image=product.main_image)
    for group, value in sorted(page.item.chosen):
        yield Node("text", f"{group}: {value}")
    yield Node("text", "Your score (min 0.0, max 1.0)", role="heading")
    yield Node("text", str(score.reward), role="score")
    yield Node("text", f"right kind of product: {score.type_factor}")
    checks = [("attribute", *check) for check in score.attributes]
    checks += [("option", *check) for check in score.options]
    for what, wanted, met in [*checks, ("price", "within the bound", score.price_met)]:
        yield Node(
            "text", f"{what} {wanted}: {'yes' if met else 'no'}", role="met" if met else "missed"
        )


def _official_receipt(product: Product, page: Done) -> Iterator[Node]:
    """The last page as the official text mode has it, with what it leaves empty."""
    chosen = json.dumps(dict(page.item.chosen), sort_keys=True)
    for letter in "<>&'":  # escaped for HTML inside of JSON
        chosen = chosen.replace(letter, f"\\u{ord(letter):04x}")
    lines = ["Thank you for shopping with us!", "Your code: ", "None"]
    lines += [" (Paste it in your MTurk interface.)", "Purchased", "asin", product.asin]
    lines += ["options", chosen, "attrs", "None", "category", "None", "query", "None"]
    lines += ["product category", "None", "Target", "asin", "options", "attrs", "price upper"]
    lines += ["instuction text", "category", "product category", "query", "Goal ", "None"]
    lines += ["Reward", "Your score (min 0.0, max 1.0)", str(page.score.reward)]
    for line in [*lines, "Reward Details ", "None"]:
        yield Node("text", line)


def _shown_as_chosen(shop: Shop, item: Item, where: str) -> Choices:
    """Which options of an item are shown as chosen on the page at an address.

    The official engine takes an option for chosen if its value stands in quotes anywhere in the
    address: in the JSON of the choices, whichever the group, or among the words searched for.
    """
    options = shop.product(item).options
    listed = [(group, value) for group, values in options.items() for value in values]
    if shop.rules.options_always_shown:
        return [pair for pair in listed if pair in item.chosen]
    return [(group, value) for group, value in listed if f'"{value}"' in where]
