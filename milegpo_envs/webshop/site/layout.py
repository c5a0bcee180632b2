"""How the nodes of a page are set: in blocks, which stay in reading order.

A template shows block after block; a style sheet may place them elsewhere. Every node is in exactly
one block, and blocks are runs of nodes, so a reader of the document meets the nodes as `content`
orders them.
"""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from milegpo_envs.webshop.content import Node
from milegpo_envs.webshop.product import Product
from milegpo_envs.webshop.shop import Detail, Done, Index, Item, Page, Results, Shop

BlockName = Literal[
    "notices",
    "welcome",
    "task",
    "navigation",
    "card",
    "group",
    "about",
    "purchase",
    "body",
    "receipt",
]


@dataclass(frozen=True)
class Block:
    """A run of nodes. product: whose picture belongs to it."""

    name: BlockName
    nodes: tuple[Node, ...]
    product: Product | None = None


@dataclass(frozen=True)
class Picture:
    """What to show of a product: an address if it has one, and what to draw where it has none.

    hue: of the drawing, in degrees. emblem: its subject, a department of the shop.
    """

    address: str
    hue: int
    emblem: str


def blocks(shop: Shop, page: Page, nodes: Sequence[Node]) -> list[Block]:
    """Set the nodes of a page."""
    found: list[Block] = []
    for name, run in _runs(page, nodes):
        product = None
        if name == "card" and isinstance(page, Results):
            product = shop.catalogue.by_asin(run[0].text)
        found.append(Block(name, tuple(run), product))
    return found


def _runs(page: Page, nodes: Sequence[Node]) -> Iterator[tuple[BlockName, list[Node]]]:
    name: BlockName | None = None
    run: list[Node] = []
    for node in nodes:
        now = _block_of(page, node, name)
        if run and (now != name or node.kind == "product" or node.role == "group"):
            assert name is not None
            yield name, run
            run = []
        name = now
        run.append(node)
    if run and name is not None:
        yield name, run


def _block_of(page: Page, node: Node, before: BlockName | None) -> BlockName:
    """The block of a node, which may depend on the one before it."""
    if node.role == "notice":
        return "notices"
    if isinstance(page, Index):
        return "welcome"
    if isinstance(page, Done):
        return "receipt"
    if node.role in ("heading", "instruction"):
        return "task"
    if isinstance(page, Results):
        return "card" if node.kind == "product" or before == "card" else "navigation"
    if node.kind == "option" or node.role == "group":
        return "group"
    if node.kind == "button":
        return "purchase" if before in ("about", "purchase") else "navigation"
    return "body" if isinstance(page, Detail) else "about"


def picture(product: Product, chosen: Sequence[tuple[str, str]] = ()) -> Picture:
    """The picture of a product, of a chosen option if that has one."""
    address = product.main_image
    for _, value in chosen:
        address = product.option_images.get(value) or address
    # Only what a browser may fetch.
    if not address.startswith(("https://", "http://")):
        address = ""
    return Picture(address, zlib.crc32(product.asin.encode()) % 360, product.category)


def chosen_on(page: Page) -> Sequence[tuple[str, str]]:
    """Options chosen on a page."""
    match page:
        case Item():
            return page.chosen
        case Detail() | Done():
            return page.item.chosen
        case _:
            return ()
