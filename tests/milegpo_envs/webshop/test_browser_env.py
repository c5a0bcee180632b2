"""The browser environment beside the text environment, in a real Chromium."""

import copy
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
from base64 import b64decode
from dataclasses import replace
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import milegpo_envs  # noqa: F401  # registers the environments
from milegpo_envs.errors import DataMissing, UnknownName
from milegpo_envs.webshop import bench_browser, browser
from milegpo_envs.webshop.browser import Browser, BrowserFailed, missing
from milegpo_envs.webshop.catalogue import MemoryCatalogue
from milegpo_envs.webshop.opening import OpenShop
from milegpo_envs.webshop.shop import PARTS
from milegpo_envs.webshop.shortest import shortest_purchase
from tests.milegpo_envs.contract import check_contract, gymnasium_is_content
from tests.milegpo_envs.range_server import serving
from tests.milegpo_envs.webshop import small_shop
from tests.milegpo_envs.webshop.real_shop import FOLDER, needs_real_shop

ROOT = Path(__file__).parents[3]
LACKING = missing()
needs_chromium = pytest.mark.skipif(bool(LACKING), reason=f"no browser: {'; '.join(LACKING)}")

PRODUCTS = 200
ODD = (
    "",
    "buy now",
    "click[nothing]",
    "click[search]",
    "click[\ud800]",
    "click[\x00]",
    "Click[back to search]",
    "search[]",
    "search[ ]",
    "search[\rsmall\tdress \x00 \ud800 <b>&amp;\" 'x' \u2028 中文]",
    "search[<r>]",
    "search[<a> gold]",
    None,
    7,
    b"search[x]",
)


def text(**arguments):
    return gym.make("milegpo/WebShop-v0", **{"products": PRODUCTS, **arguments}).unwrapped


def browsing(**arguments):
    return gym.make("milegpo/WebShopBrowser-v0", **{"products": PRODUCTS, **arguments}).unwrapped


@pytest.fixture(scope="module")
def chromium():
    """One browser environment for all tests that leave it alive."""
    env = browsing()
    yield env
    env.close()


@pytest.fixture(scope="module")
def official():
    env = browsing(mode="official")
    yield env
    env.close()


def compare(one, two, task, actions):
    """Play the same actions in both, which may be a function of the last info; all is equal."""
    answer = one.reset(options={"task": task})
    assert answer == two.reset(options={"task": task})
    for action in actions:
        if callable(action):
            action = action(answer[-1])
        answer = one.step(action)
        assert answer == two.step(action), action
    return answer


def a_tour(env, task):
    """A purchase that looks at everything on its way."""
    search, *rest = shortest_purchase(env.opened, task)
    around = [f"click[{part}]" for part in PARTS]
    looks = [step for part in around for step in (part, "click[< prev]")]
    after = ["click[buy now]", "search[small]", "click[< prev]"]
    return [
        "search[small]",
        "click[next >]",
        "click[< prev]",
        search,
        *rest[:-1],
        *looks,
        *rest[-1:],
        *after,
    ]


def at_random(draws):
    """Clicks and searches at random, of what is offered."""

    def choose(info):
        offered = info["admissible_actions"]
        if not offered or draws.random() < 0.15:
            return draws.choice(["search[dress]", "search[size]", "click[buy]"])
        action = draws.choice(offered)
        return "search[tea color]" if action == "search[<your query>]" else action

    return choose


@needs_chromium
@pytest.mark.parametrize("task", [0, 3])
def test_a_tour_of_the_shop_is_the_same_in_both(chromium, task):
    one = text()
    *_, info = compare(one, chromium, task, a_tour(one, task))
    assert info["success"]
    assert info["invalid_reason"] == "the purchase is made"


@needs_chromium
def test_play_at_random_is_the_same_in_both(chromium):
    for seed in range(2):
        compare(text(), chromium, 10 + seed, [at_random(random.Random(seed))] * 14)


@needs_chromium
def test_the_official_rules_are_the_same_in_both(official):
    one = text(mode="official")
    compare(one, official, 2, [*a_tour(one, 2), "search[<c> fashion]", "click[next >]"])
    compare(one, official, 5, [at_random(random.Random(5))] * 8)


@needs_chromium
def test_any_string_is_an_action_and_none_an_exception(chromium):
    one = text()
    compare(one, chromium, 1, ODD)
    compare(one, chromium, 1, ["search[small]", *ODD])
    observation, *_ = chromium.step("search[" + "x" * 1_500_000 + "]")
    assert observation == one.step("search[" + "x" * 1_500_000 + "]")[0]


@needs_chromium
def test_every_observation_and_every_state_is_the_same_in_both(chromium):
    """The renderings and states are set on one environment: another browser tells nothing new."""
    known = chromium.observation_mode, chromium._render, chromium.state_kind
    try:
        for mode, kind in (("html", "markov"), ("url", "observation"), ("text", "page")):
            one = text(observation=mode, state=kind)
            chromium._render, chromium.state_kind = one._render, kind
            compare(one, chromium, 4, a_tour(one, 4)[3:7])
    finally:
        chromium.observation_mode, chromium._render, chromium.state_kind = known


@needs_chromium
@needs_real_shop
def test_the_official_products_are_the_same_in_both_and_no_picture_is_fetched():
    arguments = {"data": FOLDER, "products": 40}
    one, two = text(**arguments), browsing(**arguments)
    compare(one, two, 7, a_tour(one, 7)[:-3])
    assert two._browser.ask("return document.images.length") == 0
    two.close()


@needs_chromium
def test_it_keeps_the_contract(chromium):
    env = gym.wrappers.TimeLimit(chromium, 15)
    check_contract(env, env.unwrapped.task_ids()[3], shortest_purchase(chromium.opened, 3))


@needs_chromium
def test_it_is_pickled_until_its_browser_runs(chromium):
    chromium.close()
    assert pickle.loads(pickle.dumps(chromium)).task_ids() == chromium.task_ids()
    chromium.reset(seed=0)
    for copied in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match="milegpo/WebShop-v0"):
            copied(chromium)


@needs_chromium
def test_gymnasium_finds_nothing_to_say(chromium):
    """Infos of two steps share nothing, for one."""
    with gymnasium_is_content():
        check_env(chromium, skip_close_check=True)
        env = gym.wrappers.PassiveEnvChecker(chromium)
        env.reset(options={"task": 3})
        for action in ("foo", *shortest_purchase(chromium.opened, 3), "foo", "foo"):
            env.step(action)


@needs_chromium
def test_two_browsers_of_one_shop_never_influence_each_other(chromium):
    other = browsing()
    walks = {
        chromium: shortest_purchase(other.opened, 4),
        other: shortest_purchase(other.opened, 9),
    }
    alone = {}
    for (env, walk), task in zip(walks.items(), (4, 9), strict=True):
        one = text()
        alone[env] = [one.reset(options={"task": task}), *map(one.step, walk)]
        assert env.reset(options={"task": task}) == alone[env][0]
    for step in range(max(map(len, walks.values()))):
        for env, walk in walks.items():
            if step < len(walk):
                assert env.step(walk[step]) == alone[env][step + 1]
    other.close()
    assert chromium.reset(options={"task": 4}) == alone[chromium][0]  # the shared site is there


@needs_chromium
def test_what_is_clicked_is_seen_and_within_reach(chromium):
    """Every button can be clicked with a pointer: nothing lies over it."""
    chromium.reset(options={"task": 0})
    reach = """
    return [...document.querySelectorAll("button.node")].filter((button) => {
      button.scrollIntoView({block: "center"});
      const box = button.getBoundingClientRect();
      const top = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
      return box.width < 8 || box.height < 8 || top !== button;
    }).map((button) => button.textContent)"""
    for action in [None, *shortest_purchase(chromium.opened, 0)[:-1], "click[features]"]:
        if action is not None:
            chromium.step(action)
        for width in (1280, 420):
            chromium._browser.driver.set_window_size(width, 900)
            assert chromium._browser.ask(reach) == []
            overflow = "return document.documentElement.scrollWidth - innerWidth"
            assert chromium._browser.ask(overflow) <= 0


@needs_chromium
def test_chromium_reaches_nothing_but_the_loopback(chromium):
    chromium.reset(options={"task": 0})
    for address in ("http://example.org/", "http://192.0.2.1/", "http://localhost/"):
        with pytest.raises(BrowserFailed, match="NAME_NOT_RESOLVED"):
            chromium._browser.visit(address)


@needs_chromium
def test_a_browser_that_breaks_off_is_replaced_at_the_next_reset():
    env = browsing()
    first = env.reset(options={"task": 1})
    os.kill(env._browser.process.pid, signal.SIGKILL)
    with pytest.raises(BrowserFailed):
        env.step("search[small]")
    assert env.reset(options={"task": 1}) == first
    env.close()
    env.close()


@needs_chromium
def test_nothing_is_left_after_closing():
    one = Browser("127.0.0.1")
    assert browser._of_session(one.process.pid)
    one.close()
    assert browser._of_session(one.process.pid) == []
    assert not Path(one.profile).exists()


@needs_chromium
@pytest.mark.parametrize("how", ["ends", "is killed"])
def test_nothing_is_left_after_a_process_that_never_closed(how):
    code = (
        "import os, signal, sys\n"
        "from milegpo_envs.webshop.browser import Browser\n"
        "one = Browser('127.0.0.1')\n"
        "print(one.process.pid, one.profile, flush=True)\n"
        + ("os.kill(os.getpid(), signal.SIGKILL)\n" if how == "is killed" else "")
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    leader, profile = done.stdout.split()
    until = time.monotonic() + 30
    while time.monotonic() < until and (browser._of_session(int(leader)) or Path(profile).exists()):
        time.sleep(0.1)
    assert browser._of_session(int(leader)) == []
    assert not Path(profile).exists()


@needs_chromium
def test_a_site_that_is_there_already_is_used_and_another_shop_is_refused(chromium):
    from milegpo_envs.webshop.site.server import open_server

    server = open_server(chromium.opened)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.port}/"
    env, other = browsing(url=url), browsing(url=url, products=PRODUCTS + 1)
    try:
        compare(text(), env, 3, ["search[small]"])
        with pytest.raises(UnknownName, match="another shop"):
            other.reset(options={"task": 3})
    finally:
        env.close()
        other.close()
        server.shutdown()
        server.server_close()
    with pytest.raises(BrowserFailed, match="CONNECTION_REFUSED"):
        env.reset(options={"task": 3})


@needs_chromium
def test_tasks_are_named_as_in_the_text_environment(chromium):
    assert chromium.task_ids() == text().task_ids()
    _, info = chromium.reset(options={"task": np.int64(7)})
    assert info["goal_index"] == 7
    with pytest.raises(UnknownName, match="goal indices 0 to"):
        chromium.reset(options={"task": -1})
    with pytest.raises(UnknownName, match="address of a site"):
        browsing(url="127.0.0.1:3000")


@needs_chromium
def test_its_settings_are_those_of_the_text_environment_and_no_others():
    env = browsing(mode="official", seed=3, human_goals=True, state="markov", split="test")
    one = text(mode="official", seed=3, human_goals=True, state="markov", split="test")
    assert (env.opened, env.task_ids(), env.state_kind) == (one.opened, one.task_ids(), "markov")
    with pytest.raises(TypeError, match="colour"):
        browsing(colour="red")
    with pytest.raises(UnknownName, match="fixed, official"):
        browsing(mode="x")


def test_what_is_missing_is_named_with_its_remedy(monkeypatch):
    monkeypatch.setattr(browser.shutil, "which", lambda name: None)
    monkeypatch.setattr(browser, "find_spec", lambda name: None)
    with pytest.raises(DataMissing) as refused:
        browsing()
    for word in (
        "flask",
        "selenium",
        "milegpo[webshop]",
        "apt-get install chromium chromium-driver",
    ):
        assert word in str(refused.value)


@needs_chromium
def test_a_window_needs_a_screen(monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    env = browsing(headless=False)
    with pytest.raises(DataMissing, match="headless=True"):
        env.reset()
    env.close()


@needs_chromium
def test_the_bench_measures_steps_and_memory(monkeypatch):
    monkeypatch.setattr(bench_browser, "TASKS", 1)
    rows = dict(bench_browser.browser_rows(20))
    assert len(rows) == 5
    assert all(value > 0 for value in rows.values())


@needs_chromium
@pytest.mark.parametrize("pictures", [True, False])
def test_pictures_lie_over_drawings_and_broken_ones_give_way(chromium, pictures):
    """Pictures come from another server of this machine, which counts what it is asked for."""
    chromium.reset(options={"task": 0})
    dot = b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
    from milegpo_envs.webshop.site.server import open_server  # needs Flask

    with serving({"dot.gif": dot}) as pictured:
        shop = small_shop.shop()
        products = [
            small_shop.product(f"B00000000{i}", f"Tea {name}", images=(f"{pictured.url}/{name}",))
            for i, name in enumerate(("dot.gif", "none.gif"))
        ]
        catalogue = MemoryCatalogue("pictured", products, "1" * 32)
        shop = replace(shop, catalogue=catalogue, search=lambda query: [0, 1], prices=(1.0, 1.0))
        server = open_server(OpenShop("pictured", shop, [small_shop.goal()]), pictures=pictures)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            chromium._browser.visit(f"http://127.0.0.1:{server.port}/task/0")
            form = "const form = document.getElementById('anywhere');"
            chromium._browser.ask(f"{form} form.elements.query.value = 'tea'; form.submit()")
            shown = """
            return [...document.querySelectorAll(".card")].map((card) => {
              const pictures = [...card.querySelectorAll("img")];
              const loaded = pictures.filter((one) => one.naturalWidth > 0);
              return [card.querySelectorAll("svg").length, loaded.length, pictures.length];
            })"""
            wanted = [[1, 1, 1], [1, 0, 0]] if pictures else [[1, 0, 0], [1, 0, 0]]
            until = time.monotonic() + 30
            while (found := chromium._browser.ask(shown)) != wanted and time.monotonic() < until:
                time.sleep(0.05)
            assert found == wanted
            assert bool(pictured.seen) is pictures
        finally:
            server.shutdown()
            server.server_close()
