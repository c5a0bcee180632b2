"""The shop's rules: pages, what can be clicked on a page, and where a move leads.

    index -> results -> item -> description | features | reviews
                          |---> done

Pages are frozen values. `Shop.follow(page, move, goal)` is a pure function, so that a text
environment and a web site that hold a page each walk through one and the same shop. What a page
looks like is in `content` and `render`, what a purchase is worth in `reward`.
"""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from milegpo_envs.webshop.actions import Click, Move, Search, can_be_named
from milegpo_envs.webshop.catalogue import Catalogue, Product
from milegpo_envs.webshop.goals import Goal
from milegpo_envs.webshop.reward import Score, score
from milegpo_envs.webshop.rules import Rules

PER_PAGE = 10  # products on a page of results
LONGEST_QUERY = 4096  # characters searched for; Lucene refuses queries of more than 1,024 words
PARTS = ("description", "features", "reviews")

BACK, PREVIOUS, NEXT, BUY = "back to search", "< prev", "next >", "buy now"
SEARCH_BUTTON = "search"
"""A target that is listed and never does anything: searching is a move of its own."""


@dataclass(frozen=True, slots=True)
class Index:
    """The first page, with the search bar."""


@dataclass(frozen=True, slots=True)
class Results:
    """One page of results.

    found: indices of all products found, best first. number: of the page, from 1. visited: products
    opened since the first page, which only their marks on the page depend on.
    """

    words: tuple[str, ...]
    found: tuple[int, ...]
    number: int = 1
    visited: frozenset[int] = frozenset()

    @property
    def shown(self) -> tuple[int, ...]:
        """The products on this page."""
        return self.found[(self.number - 1) * PER_PAGE : self.number * PER_PAGE]

    @property
    def has_next(self) -> bool:
        """Whether a next page has products."""
        return self.number * PER_PAGE < len(self.found)


@dataclass(frozen=True, slots=True)
class Item:
    """A product, reached from `results`. chosen: (group, value) in the order of first choice."""

    results: Results
    product: int
    chosen: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Detail:
    """Description, features or reviews of an item."""

    item: Item
    part: str


@dataclass(frozen=True, slots=True)
class Done:
    """The item has been bought."""

    item: Item
    score: Score


Page = Index | Results | Item | Detail | Done


class Refused(ValueError):
    """A move that the page does not offer; the text is the reason in a few words."""


@dataclass(frozen=True)
class Shop:
    """A catalogue with its search, prices and rules.

    search: from words, joined by blanks, to the indices of products, best first.
    prices: aligned with the catalogue. nouns: of a title, in order, lower-cased, repeats included.
    """

    catalogue: Catalogue
    search: Callable[[str], Sequence[int]]
    prices: Sequence[float]  # [products]
    nouns: Callable[[str], Sequence[str]]
    rules: Rules

    def clickables(self, page: Page) -> list[str]:
        """Targets on a page, lower-cased, each once: buttons, then products, then options."""
        match page:
            case Index():
                return [SEARCH_BUTTON]
            case Results():
                targets = [BACK]
                if page.number > 1:
                    targets.append(PREVIOUS)
                if page.has_next or not self.rules.bounded_paging:
                    targets.append(NEXT)
                return targets + [self.catalogue[i].asin.lower() for i in page.shown]
            case Item():
                targets = [BACK, PREVIOUS, *PARTS, BUY]
                for values in self.product(page).options.values():
                    targets.extend(values)
                return list(dict.fromkeys(targets))
            case Detail():
                return [BACK, PREVIOUS]
            case Done():
                return []

    def follow(self, page: Page, move: Move, goal: Goal) -> Page:
        """The page that a move leads to.

        A search works on every page, except after the purchase where the rules end there.

        Raises:
            Refused: the page does not offer the move.
        """
        if isinstance(page, Done) and self.rules.ends_at_purchase:
            raise Refused("the purchase is made")
        if isinstance(move, Search):
            return Results(move.words, self._find(move.words), visited=_visited(page))
        if move.target == SEARCH_BUTTON or move.target not in self.clickables(page):
            raise Refused("not on the page")
        return self._click(page, move, goal)

    def product(self, page: Item | Detail | Done) -> Product:
        """The product a page is about."""
        return self.catalogue[item_of(page).product]

    def price(self, asin: str) -> float:
        """What a product costs; a range has one price, too."""
        index = self.catalogue.index_of(asin)
        assert index is not None, asin
        return float(self.prices[index])

    def evaluate(self, product: int, chosen: Mapping[str, str], goal: Goal) -> Score:
        """What buying a product with these options is worth."""
        return score(
            self.catalogue[product],
            chosen,
            float(self.prices[product]),
            goal,
            nouns=self.nouns,
            colours_on_both_sides=self.rules.colours_on_both_sides,
        )

    def _click(self, page: Page, move: Click, goal: Goal) -> Page:
        target = move.target
        if target == BACK:
            return Index()
        match page:
            case Results():
                if target in (NEXT, PREVIOUS):
                    return replace(page, number=page.number + (1 if target == NEXT else -1))
                opened = next(i for i in page.shown if self.catalogue[i].asin.lower() == target)
                return Item(replace(page, visited=page.visited | {opened}), opened)
            case Item():
                if target == PREVIOUS:
                    return page.results
                if target in PARTS:
                    return Detail(page, target)
                if target == BUY:
                    return Done(page, self.evaluate(page.product, dict(page.chosen), goal))
                return self._choose(page, target)
            case Detail():
                return page.item
            case _:
                raise AssertionError((page, move))  # nothing else can be clicked there

    def _choose(self, page: Item, value: str) -> Item:
        """Choose an option, in its group's place; of groups that share a value the last has it."""
        groups = [g for g, values in self.product(page).options.items() if value in values]
        return replace(page, chosen=tuple({**dict(page.chosen), groups[-1]: value}.items()))

    def _find(self, words: tuple[str, ...]) -> tuple[int, ...]:
        first, *rest = words
        if self.rules.category_searches and first == "<c>":
            return _by_category(self.catalogue).get(rest[0].strip() if rest else "", ())
        if self.rules.category_searches and first == "<q>":
            return _by_query(self.catalogue).get(" ".join(rest).strip(), ())
        return tuple(self.search(" ".join(words)[:LONGEST_QUERY]))


@functools.lru_cache(maxsize=4)
def _by_category(catalogue: Catalogue) -> Mapping[str, tuple[int, ...]]:
    """Category -> indices of its products; kept, as it takes a look at every product."""
    return _grouped(catalogue[i].category for i in range(len(catalogue)))


@functools.lru_cache(maxsize=4)
def _by_query(catalogue: Catalogue) -> Mapping[str, tuple[int, ...]]:
    """Query -> indices of its products."""
    return _grouped(catalogue[i].query for i in range(len(catalogue)))


def _grouped(names: Iterable[str]) -> Mapping[str, tuple[int, ...]]:
    found: dict[str, list[int]] = {}
    for index, name in enumerate(names):
        found.setdefault(name, []).append(index)
    return {name: tuple(indices) for name, indices in found.items()}


def choosable(product: Product) -> dict[str, list[str]]:
    """Group -> values that an action chooses in that group.

    Left out: values that no action can name, that a button of the page has for its text, or that a
    later group has, too.
    """
    taken = {BACK, PREVIOUS, *PARTS, BUY, SEARCH_BUTTON}
    found: dict[str, list[str]] = {}
    for group, values in reversed(tuple(product.options.items())):
        found[group] = [v for v in values if v not in taken and can_be_named(v)]
        taken.update(values)
    return dict(reversed(tuple(found.items())))


def item_of(page: Item | Detail | Done) -> Item:
    """The item that a page is about."""
    return page if isinstance(page, Item) else page.item


def _visited(page: Page) -> frozenset[int]:
    match page:
        case Index():
            return frozenset()
        case Results():
            return page.visited
        case _:
            return item_of(page).results.visited
