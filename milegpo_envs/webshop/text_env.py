"""`milegpo/WebShop-v0`: find and buy what an instruction asks for, in text."""

from milegpo_envs.webshop.actions import ANY_SEARCH, Move, can_be_named, click
from milegpo_envs.webshop.base_env import Receipt, ShopEnv
from milegpo_envs.webshop.canonical import CANONICAL
from milegpo_envs.webshop.content import View, look
from milegpo_envs.webshop.shop import SEARCH_BUTTON, Done, Index, Page, Refused, Shop


class WebShopEnv(ShopEnv):
    """Search a shop, look at products, choose options, buy (arXiv:2207.01206).

    ## Observations and actions

    Both are text. The instruction stands on every page. An action is `search[words]`, which works
    on every page, or `click[target]`, the target being among what can be clicked. Anything else
    changes nothing and costs the step. Any words are a valid search, as officially: a hundred
    thousand letters or half of a surrogate pair lead to a page of results, maybe an empty one. Only
    the first 4,096 characters are searched for, and characters of no word find nothing.

    `info["admissible_actions"]` lists the clicks, and `search[<your query>]`, which stands for any
    query, where the page has a search bar.

    ## Rewards and ends

    A purchase terminates: with 10.0 if everything asked for is met, else with 0.0. How much is met
    is the `score`, from 0 to 1. The horizon (15 steps as registered) is Gymnasium's time limit and
    shows as `truncated`.

    ## Info

    The contract's keys (see `milegpo_envs`) and

        goal_index     int     place of the task's goal, as the official engine numbers sessions
        reward_parts   dict    breakdown of the last purchase (see `reward`), empty before it
        max_reward     float   score of the goal's own product with its best options

    `invalid_reason` is "not text", "not an action", "not on the page" or "the purchase is made".

    ## Tasks

    A task is a goal; its id names the shop, its goals and the goal's index. `reset(options={"task":
    x})` takes an id or an index (Python's or NumPy's integers); otherwise the task is a function of
    the seed. `task_ids()` lists the split's.

    Args:
        data: None for the generated shop, or a folder with the official files. mode: "fixed", or
        "official" with the official engine's faults (see `rules`, `goals`). seed: of prices and
        bounds in official mode, where they are drawn. human_goals: goals written by people instead
        of synthetic ones. observation: "text_rich", "text", "html" or "url" (see `render`). state:
        what tells states apart: "page", "observation" or "markov" (see `canonical`). split: "test",
        "validation", "train", or None for all goals. products: only the first so many. size: which
        of the official files: "small", "100k" or "full".

    Raises:
        UnknownName: for a value that is not among those above, or a split without goals.
        DataMissing: if `data` lacks files.

    ## Version history

    * v0: first release
    """

    @property
    def page(self) -> Page:
        """The page the customer is on; after `reset`."""
        return self._page

    @property
    def view(self) -> View:
        """The page as laid out; after `reset`."""
        return look(self.shop, self._page, self.goal, str(self._index))

    def _begin(self, index: int) -> None:
        self._page: Page = Index()

    def _turn(self, move: Move) -> str | None:
        try:
            self._page = self.shop.follow(self._page, move, self.goal)
        except Refused as refused:
            return str(refused)
        return None

    def _state(self, observation: str) -> object:
        return CANONICAL[self.state_kind](self.shop, self._page, observation)

    def _offered(self) -> list[str]:
        return admissible(self.shop, self._page)

    def _receipt(self) -> Receipt | None:
        if not isinstance(self._page, Done):
            return None
        score = self._page.score
        return Receipt(score.success, score.reward, score.parts())


def admissible(shop: Shop, page: Page) -> list[str]:
    """The page's clicks, and the entry for any query where it has a search bar; sorted."""
    targets = (target for target in shop.clickables(page) if can_be_named(target))
    actions = [click(target) for target in targets if target != SEARCH_BUTTON]
    if isinstance(page, Index):
        actions.append(ANY_SEARCH)
    return sorted(actions)
