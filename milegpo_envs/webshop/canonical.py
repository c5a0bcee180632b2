"""Canonical states of WebShop: what a state id hashes.

page          the page, its products and the chosen options (default):
                  index; results: number, total, asins shown; item: asin, sorted (group, value)
                  pairs; description, features, reviews: the item's and the part; done: the item's
                  and success
observation   the observation, as it was rendered: the anchor of GiGPO's code (arXiv:2505.10978)
markov        page, and with results, items and parts the number and asins of all results, which
              decide what `next >` and `< prev` lead to

None holds the task, the session, the instruction's own words (but for `observation`), marks of what
was opened before, the order of choices or the words searched for. All are JSON-able.
"""

from collections.abc import Callable, Mapping

from milegpo_envs.webshop.shop import Detail, Done, Index, Item, Page, Results, Shop, item_of

Canonical = Callable[[Shop, Page, str], dict[str, object]]
"""From the shop, the page and the observation to the canonical state."""


def page(shop: Shop, now: Page, observation: str) -> dict[str, object]:
    """What is on the page and what has been chosen."""
    match now:
        case Index():
            return {"page": "index"}
        case Results():
            shown = [shop.catalogue[i].asin for i in now.shown]
            return {
                "page": "results",
                "number": now.number,
                "total": len(now.found),
                "shown": shown,
            }
        case Item():
            return {"page": "item", **_item(shop, now)}
        case Detail():
            return {"page": now.part, **_item(shop, now.item)}
        case Done():
            return {"page": "done", **_item(shop, now.item), "success": now.score.success}


def _item(shop: Shop, item: Item) -> dict[str, object]:
    options = [[group, value] for group, value in sorted(item.chosen)]
    return {"product": shop.product(item).asin, "options": options}


def observed(shop: Shop, now: Page, observation: str) -> dict[str, object]:
    """The observation and nothing else."""
    return {"observation": observation}


def markov(shop: Shop, now: Page, observation: str) -> dict[str, object]:
    """The page and the results it was reached from."""
    state = page(shop, now, observation)
    if isinstance(now, Index | Done):
        return state
    results = now if isinstance(now, Results) else item_of(now).results
    found = [shop.catalogue[i].asin for i in results.found]
    return {**state, "number": results.number, "found": found}


CANONICAL: Mapping[str, Canonical] = {"page": page, "observation": observed, "markov": markov}
"""Name of a kind of state -> its function."""
