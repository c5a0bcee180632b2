"""What replies of a paid model cost, and a budget that is never exceeded."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from milegpo_algo.rollout.generator import Usage


@dataclass(frozen=True)
class Prices:
    """Price of a million tokens; no prices are known here, they belong into the settings.

    Attributes:
        prompt: of tokens read.
        completion: of tokens written.
    """

    prompt: float = 0.0
    completion: float = 0.0

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Price of a reply."""
        return (self.prompt * prompt_tokens + self.completion * completion_tokens) / 1e6


@dataclass(frozen=True)
class Budget:
    """The most that may be spent; None is no limit.

    Attributes:
        cost: in the currency of the prices.
        tokens: read and written.
    """

    cost: float | None = None
    tokens: int | None = None


@dataclass(frozen=True)
class Spent:
    """Sums over replies; those from the cache count in `cached` only."""

    requests: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0


class BudgetSpent(RuntimeError):
    """The next request might exceed the budget."""


class Ledger:
    """Counts what is spent, by several threads.

    A request first sets aside the most it can cost and gives the rest back once its cost is known,
    so requests in flight cannot exceed the budget together. The last fraction of a budget may stay
    unspent for that.

    Args:
        prices: of tokens.
        budget: of the ledger's life.
    """

    def __init__(self, prices: Prices, budget: Budget) -> None:
        if budget.cost is not None and prices == Prices():
            raise ValueError("A budget in money needs prices: set what a million tokens cost.")
        self.prices, self.budget = prices, budget
        self._lock = threading.Lock()
        self._spent = Spent()
        self._aside = (0.0, 0)  # cost, tokens

    @property
    def spent(self) -> Spent:
        """What was spent so far."""
        with self._lock:
            return self._spent

    @contextmanager
    def setting_aside(self, most_prompt: int, most_completion: int) -> Iterator[None]:
        """Set aside the most a request can take; tell `book` what it took before leaving.

        Raises:
            BudgetSpent: it might exceed the budget.
        """
        cost = self.prices.of(most_prompt, most_completion)
        tokens = most_prompt + most_completion
        with self._lock:
            self._check(cost, tokens)
            self._aside = (self._aside[0] + cost, self._aside[1] + tokens)
        try:
            yield
        finally:
            with self._lock:
                self._aside = (self._aside[0] - cost, self._aside[1] - tokens)

    def book(self, prompt_tokens: int, completion_tokens: int) -> Usage:
        """Add a reply that was paid for."""
        cost = self.prices.of(prompt_tokens, completion_tokens)
        with self._lock:
            was = self._spent
            self._spent = replace(
                was,
                requests=was.requests + 1,
                prompt_tokens=was.prompt_tokens + prompt_tokens,
                completion_tokens=was.completion_tokens + completion_tokens,
                cost=was.cost + cost,
            )
        return Usage(prompt_tokens, completion_tokens, cost)

    def book_cached(self) -> None:
        """Add a reply from the cache."""
        with self._lock:
            self._spent = replace(self._spent, cached=self._spent.cached + 1)

    def _check(self, cost: float, tokens: int) -> None:
        was = self._spent
        planned = was.cost + self._aside[0] + cost
        if self.budget.cost is not None and planned > self.budget.cost:
            raise BudgetSpent(
                f"Spent {was.cost:.4f} of {self.budget.cost}; the next request could exceed it. "
                "Raise the budget and run again: replies so far come from the cache."
            )
        count = was.prompt_tokens + was.completion_tokens + self._aside[1] + tokens
        if self.budget.tokens is not None and count > self.budget.tokens:
            used = was.prompt_tokens + was.completion_tokens
            raise BudgetSpent(
                f"Used {used} of {self.budget.tokens} tokens; the next request could exceed it. "
                "Raise the budget and run again: replies so far come from the cache."
            )
