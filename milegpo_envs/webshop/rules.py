"""The two rule books: the official engine's, faults included, and ours, without them."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Rules:
    """What the two modes do differently; all else is the same shop (arXiv:2207.01206).

    bounded_paging: `next >` stands only on pages that have a next one; otherwise it leads on to
        empty pages for ever.
    options_always_shown: a chosen option is shown as chosen wherever its product is shown, in
        every rendering. Otherwise only `text_rich` shows it, on the item page, and only if its
        JSON spelling is its plain spelling: not with a quote or a non-ASCII letter.
    ends_at_purchase: nothing can be done after the purchase; otherwise a search opens the shop
        again.
    category_searches: the words `<c> category` and `<q> query` list a category's or a query's
        products instead of searching; otherwise they are plain words.
    colours_on_both_sides: a wanted option's colour is simplified as the chosen one's is; otherwise
        only where the goal was written by a person.
    """

    bounded_paging: bool
    options_always_shown: bool
    ends_at_purchase: bool
    category_searches: bool
    colours_on_both_sides: bool


OFFICIAL = Rules(
    bounded_paging=False,
    options_always_shown=False,
    ends_at_purchase=False,
    category_searches=True,
    colours_on_both_sides=False,
)
FIXED = Rules(
    bounded_paging=True,
    options_always_shown=True,
    ends_at_purchase=True,
    category_searches=False,
    colours_on_both_sides=True,
)

RULES: Mapping[str, Rules] = {"fixed": FIXED, "official": OFFICIAL}
"""Mode -> rules."""
