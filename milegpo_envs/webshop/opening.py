"""Opening a shop: catalogue, search, prices and goals, shared by all who ask in this process."""

import functools
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from milegpo_envs.errors import UnknownName
from milegpo_envs.reports import Advance
from milegpo_envs.webshop.catalogue import Catalogue, Size, load_catalogue
from milegpo_envs.webshop.columns import Columns, open_columns
from milegpo_envs.webshop.goals import SPLITS, Goal, Mode, open_market
from milegpo_envs.webshop.nouns import open_nouns
from milegpo_envs.webshop.reward import best_options
from milegpo_envs.webshop.rules import RULES
from milegpo_envs.webshop.search import SearchIndex, open_index
from milegpo_envs.webshop.shop import Shop, choosable

_REMEMBERED = 1024  # queries; rollouts of one task repeat each other's


@dataclass(frozen=True, eq=False)
class OpenShop:
    """A shop and its goals.

    name: of the list of goals; equal where the goals are equal.
    arguments: those of `open_shop`, by which copies and pickles find the shop again.
    """

    name: str
    shop: Shop
    goals: Sequence[Goal]
    arguments: tuple[object, ...] | None = None

    def __reduce__(self) -> tuple[Callable[..., "OpenShop"], tuple[object, ...]]:
        """A shop is opened again where it is needed, once in a process; nothing of it is sent."""
        if self.arguments is None:
            raise TypeError("Only a shop of open_shop can be copied: this one was put together.")
        return open_shop, self.arguments

    def split(self, name: str | None) -> range:
        """Goal indices of a split, all for None.

        Raises:
            UnknownName: the split has no goals.
        """
        first, last = (0, None) if name is None else SPLITS[name]
        indices = range(len(self.goals))[first:last]
        if not indices:
            raise UnknownName(
                f"Split {name!r} begins at goal {first}, and {self.name} has {len(self.goals)} "
                "goals. Use split=None or 'test', or a larger shop."
            )
        return indices

    def task_id(self, index: int) -> str:
        """Name of a goal's task."""
        return f"{self.name}/{index}"

    def index_of(self, task_id: str) -> int | None:
        """The goal's index, None for what is no id of this shop."""
        name, _, number = task_id.rpartition("/")
        if name != self.name or not number.isdecimal() or len(number) > 12:
            return None
        return int(number) if number == str(int(number)) else None

    @functools.lru_cache(maxsize=8)  # noqa: B019  # shops live as long as their process
    def task_ids(self, indices: range) -> tuple[str, ...]:
        """Names of several goals' tasks."""
        return tuple(map(self.task_id, indices))

    @functools.lru_cache(maxsize=1 << 14)  # noqa: B019
    def max_reward(self, index: int) -> float:
        """Reward of buying the goal's own product with the options that meet most.

        In official mode it can be below 1: colours are simplified on one side only.
        """
        goal = self.goals[index]
        return self.shop.evaluate(*self.best_purchase(index), goal).reward

    def best_purchase(self, index: int) -> tuple[int, dict[str, str]]:
        """The goal's own product, and its options that meet most of the goal."""
        goal, shop = self.goals[index], self.shop
        product = shop.catalogue.index_of(goal.asin)
        assert product is not None, goal.asin
        options = choosable(shop.catalogue[product])
        both = shop.rules.colours_on_both_sides
        return product, best_options(options, goal, colours_on_both_sides=both)


def prepare(catalogue: Catalogue, advance: Advance | None = None) -> tuple[Columns, SearchIndex]:
    """Build what a shop of this catalogue keeps on disk, unless it is there; `advance` is told."""
    return open_columns(catalogue, advance), SearchIndex.build(catalogue, advance=advance)


@functools.lru_cache(maxsize=16)
def open_shop(
    data: str | None, mode: Mode, seed: int, human: bool, products: int | None, size: Size
) -> OpenShop:
    """Open a shop once; see `text_env.WebShopEnv` for the arguments.

    Raises:
        DataMissing: if `data` lacks files.
    """
    catalogue = load_catalogue(data, products=products, size=size)
    market = open_market(catalogue, human=human, mode=mode, seed=seed)
    index = open_index(catalogue)
    search = functools.lru_cache(maxsize=_REMEMBERED)(lambda query: tuple(index.top(query)))
    shop = Shop(catalogue, search, market.prices, open_nouns(catalogue), RULES[mode])
    kind = "human" if human else "synthetic"
    drawn = seed if mode == "official" else None
    content = repr((catalogue.content_hash, mode, drawn, human)).encode()
    digest = hashlib.blake2b(content, digest_size=4).hexdigest()
    arguments = (data, mode, seed, human, products, size)
    return OpenShop(f"{mode}-{kind}-{digest}", shop, market.goals, arguments)
