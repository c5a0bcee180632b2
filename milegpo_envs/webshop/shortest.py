"""Purchases by someone who knows the goal: how few steps a task takes, and what it pays at most."""

from milegpo_envs.webshop.actions import click
from milegpo_envs.webshop.opening import OpenShop
from milegpo_envs.webshop.shop import BUY, NEXT, PER_PAGE


def shortest_purchase(shop: OpenShop, index: int) -> list[str]:
    """Actions that buy the goal's own product with its best options.

    The shortest there are if one of the queries tried (title, instruction, all texts) lists the
    product on the first page, which needs one step each for search, product, option and purchase.
    """
    product, options = shop.best_purchase(index)
    about = shop.shop.catalogue[product]
    texts = (about.title, *about.bullets[:1], about.description)
    queries = [about.title, shop.goals[index].instruction, " ".join(texts), about.asin]
    ranks = {query: _rank(shop, query, product) for query in map(_one_line, queries)}
    query = min(ranks, key=lambda tried: ranks[tried])
    pages = ranks[query] // PER_PAGE
    turns = [click(NEXT)] * pages
    choices = [click(value) for value in options.values()]
    return [f"search[{query}]", *turns, click(about.asin.lower()), *choices, click(BUY)]


def _rank(shop: OpenShop, query: str, product: int) -> int:
    found = list(shop.shop.search(query.lower()))
    return found.index(product) if product in found else len(shop.shop.catalogue)


def _one_line(text: str) -> str:
    return " ".join(text.split()) or "-"
