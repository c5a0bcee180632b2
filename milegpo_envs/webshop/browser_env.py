"""`milegpo/WebShopBrowser-v0`: the shop of `milegpo/WebShop-v0` in a real browser."""

import copy
import json
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from milegpo_envs.errors import UnknownName
from milegpo_envs.webshop.actions import ANY_SEARCH, Click, Move, Search, click, read_action
from milegpo_envs.webshop.base_env import LONGEST, Receipt, ShopEnv
from milegpo_envs.webshop.browser import TIMEOUT, Browser, BrowserFailed, require
from milegpo_envs.webshop.content import Node, View

if TYPE_CHECKING:
    from milegpo_envs.webshop.site.server import SharedSite

_PATIENCE = 0.005  # seconds between two looks at a page that is on its way

_READ = """
const facts = document.getElementById("facts");
if (document.readyState === "loading") return [location.href, null];
if (facts === null) return [location.href, ""];
const nodes = [...document.querySelectorAll(".node")].map((node) => [
  node.dataset.kind, node.textContent, node.dataset.marked === "true", node.dataset.role,
  node.dataset.image || ""]);
const actions = [...document.querySelectorAll("button[name=action]")].map((one) => one.value);
const bar = document.getElementById("query");
return [location.href, facts.textContent, nodes, actions, bar !== null];
"""
_CLICK = """
const button = [...document.querySelectorAll("button[name=action]")]
  .find((one) => one.value === arguments[0]);
if (button === undefined) return false;
button.click();
return true;
"""
_SEARCH = """
const [words, exact] = arguments;
const bar = document.getElementById("query");
const form = bar === null ? document.getElementById("anywhere") : bar.form;
if (form === null) return false;
form.elements.query.value = words;
if (exact !== null) {
  const field = document.createElement("input");
  field.type = "hidden"; field.name = "exact"; field.value = exact;
  form.append(field);
}
if (bar === null) form.submit();
else form.querySelector("button[type=submit]").click();
return true;
"""


class WebShopBrowserEnv(ShopEnv):
    """Search a shop, look at products, choose options, buy: on web pages, in Chromium.

    Tasks, actions, observations, states, rewards and info are those of `milegpo/WebShop-v0`, to the
    letter; see there. The text of a page is read from the document that Chromium shows, an action
    clicks a button or sends the search form of that document. A step takes about a tenth of a
    second; every environment has a Chromium of its own, from the first `reset` to `close`.

    Without `url` the environment starts its own site on the loopback, which all environments of a
    shop share in a process, and Chromium can reach nothing else. Pictures are not loaded.

    Args:
        data, mode, seed, human_goals, observation, state, split, products, size: see
        `milegpo/WebShop-v0`. url: of a running `scripts.serve_webshop` with the same data, mode,
        seed and goals. headless: without a window on a screen.

    Raises:
        DataMissing: flask, selenium, Chromium or chromedriver is missing; says how to get it.
        UnknownName: as `milegpo/WebShop-v0`, or the site at `url` has another shop.
        BrowserFailed: from `reset` or `step`; Chromium broke off. The next `reset` starts another.

    ## Version history

    * v0: first release
    """

    wants_processes = True
    """Pages take their time, so several environments should not wait in a row (see `pool`)."""

    # Any: the shop's settings are declared in one place, there.
    def __init__(self, *, url: str | None = None, headless: bool = True, **settings: Any) -> None:
        require()
        super().__init__(**settings)
        if url is not None and urlsplit(url).scheme not in ("http", "https"):
            raise UnknownName(f"url={url!r} is no address of a site, such as http://127.0.0.1:3000")
        self._url = url
        self._headless = headless
        self._browser: Browser | None = None
        self._site: SharedSite | None = None

    @property
    def view(self) -> View:
        """The page as Chromium has it; after `reset`."""
        return self._view

    def close(self) -> None:
        """End Chromium, and the site if nobody else uses it. A `reset` starts them again."""
        if self._browser is not None:
            self._browser.close()
            self._browser = None
        if self._site is not None:
            from milegpo_envs.webshop.site.server import release

            release(self.opened, self._site)
            self._site = None
        self._begun = False

    def _begin(self, index: int) -> None:
        try:
            if self._browser is None:
                self._start()
            assert self._browser is not None
            self._number: int | None = None
            self._browser.visit(f"{self._address}/task/{index}")
            self._read()
        except BrowserFailed:
            self.close()
            raise
        found, wanted = self._facts["task_id"], self.opened.task_id(index)
        if found != wanted:
            self.close()
            raise UnknownName(
                f"The site at {self._url} has task {found!r} where {wanted!r} is wanted: it serves "
                "another shop. Serve and make it with the same data, mode, seed and goals."
            )

    def _start(self) -> None:
        from milegpo_envs.webshop.site.server import acquire

        if self._url is None and self._site is None:
            self._site = acquire(self.opened)
        address = self._url if self._site is None else self._site.url
        assert address is not None
        self._address = address.rstrip("/")
        self._browser = Browser(urlsplit(self._address).hostname or "", self._headless)

    def _turn(self, move: Move) -> str | None:
        assert self._browser is not None
        try:
            if isinstance(move, Click):
                sent = self._click(move.target)
            else:
                sent = self._browser.ask(_SEARCH, *_query(move))
            if sent:
                self._read()
        except BrowserFailed:
            self.close()
            raise
        if sent:
            return None
        return "not on the page" if self._open_for_searches else "the purchase is made"

    def _click(self, target: str) -> bool:
        """Click a button; whether there is one. No page holds halves of surrogate pairs."""
        assert self._browser is not None
        sendable = _sendable(target) == target
        return sendable and bool(self._browser.ask(_CLICK, click(target)))

    def _read(self) -> None:
        """Read the page that is on its way: the first one, or one with another number.

        Raises:
            BrowserFailed: it does not come.
        """
        assert self._browser is not None
        until = time.monotonic() + TIMEOUT
        while time.monotonic() < until:
            where, facts, *page = self._browser.ask(_READ)
            if facts == "":
                raise BrowserFailed(
                    f"{where} is no page of the shop. Is it served by scripts.serve_webshop with "
                    "the same data, mode, seed and goals, and has it not been started again?"
                )
            if facts is not None:
                self._facts = json.loads(facts)
                if self._facts["number"] != self._number:
                    return self._keep(*page)
            time.sleep(_PATIENCE)
        raise BrowserFailed(f"No page of the shop came from {where}.")

    # Any: what a script returns.
    def _keep(self, nodes: list[list[Any]], actions: list[str], has_bar: bool) -> None:
        """Take over what has been read."""
        self._number = self._facts["number"]
        self._view = View(
            tuple(Node(*node) for node in nodes),
            self._facts["address"],
            self.shop.rules.options_always_shown,
        )
        named = {action for action in actions if read_action(action) == Click(action[6:-1])}
        self._actions = sorted(named | ({ANY_SEARCH} if has_bar else set()))

    @property
    def _open_for_searches(self) -> bool:
        return self._facts["receipt"] is None or not self.shop.rules.ends_at_purchase

    def _state(self, observation: str) -> object:
        if self.state_kind == "observation":
            return {"observation": observation}
        return copy.deepcopy(self._facts["states"][self.state_kind])

    def _offered(self) -> list[str]:
        return list(self._actions)

    def _receipt(self) -> Receipt | None:
        receipt = self._facts["receipt"]
        return None if receipt is None else Receipt(*copy.deepcopy(receipt))


def _sendable(text: str) -> str:
    """A text that can be sent, with "?" for halves of surrogate pairs."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _query(move: Search) -> tuple[str, str | None]:
    """The words to type, and the same in JSON where a form would change them."""
    words = " ".join(move.words)[:LONGEST]
    return _sendable(words), None if words.isprintable() else json.dumps(words)
