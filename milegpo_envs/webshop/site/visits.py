"""Customers of the site: each has a goal and the pages seen, and never meets another one.

A page is a value and has a number, so the back button of a browser works: a move from an earlier
page leads to a new one, and what was chosen since is not chosen there.
"""

import secrets
import threading
from collections import OrderedDict
from dataclasses import dataclass, field

from milegpo_envs.webshop.actions import Move
from milegpo_envs.webshop.opening import OpenShop
from milegpo_envs.webshop.shop import Done, Index, Page, Refused

KEPT_PAGES = 64  # of a visit
KEPT_VISITS = 4096  # of a site; the one that was idle longest ends first


@dataclass
class Visit:
    """One customer's way through the shop.

    goal: index. pages: the last few pages by number, from 0.
    """

    goal: int
    pages: "OrderedDict[int, Page]" = field(default_factory=OrderedDict)
    last: int = 0

    @property
    def bought(self) -> int | None:
        """Number of the last page if it is the one after the purchase."""
        return self.last if isinstance(self.pages[self.last], Done) else None


class Visits:
    """The customers of a shop, by tokens that cannot be guessed. Threads may share it."""

    def __init__(self, opened: OpenShop) -> None:
        self._opened = opened
        self._visits: OrderedDict[str, Visit] = OrderedDict()
        self._lock = threading.Lock()
        self._moves = threading.Lock()  # a tagger of titles is no matter for threads

    def begin(self, goal: int) -> str:
        """A new customer's token; the page before them has the number 0."""
        token = secrets.token_urlsafe(12)
        with self._lock:
            self._visits[token] = Visit(goal, OrderedDict({0: Index()}))
            if len(self._visits) > KEPT_VISITS:
                self._visits.popitem(last=False)
        return token

    def find(self, token: str) -> Visit | None:
        """The visit, None if there is none, or none any more."""
        with self._lock:
            if token in self._visits:
                self._visits.move_to_end(token)
            return self._visits.get(token)

    def follow(self, visit: Visit, number: int, move: Move) -> int:
        """Make a move from a page of a visit; the number of the page it leads to.

        Raises:
            Refused: the page does not offer the move, is not kept any more, or the purchase is made
                and the rules end there.
        """
        shop = self._opened.shop
        if visit.bought is not None and shop.rules.ends_at_purchase:
            raise Refused("the purchase is made")
        page = visit.pages.get(number)
        if page is None:
            raise Refused("the page is gone")
        with self._moves:
            then = shop.follow(page, move, self._opened.goals[visit.goal])
        with self._lock:
            visit.last += 1
            visit.pages[visit.last] = then
            if len(visit.pages) > KEPT_PAGES:
                visit.pages.popitem(last=False)
            return visit.last
