"""The site by Flask's test client: no browser, no network."""

import json
import re
import socket
from html import unescape

import pytest

pytest.importorskip("flask", reason="the site needs Flask (extra webshop)")

from milegpo_envs.webshop.content import look
from milegpo_envs.webshop.opening import OpenShop, open_shop
from milegpo_envs.webshop.rules import RULES
from milegpo_envs.webshop.site import visits
from milegpo_envs.webshop.site.app import create_app, exact
from milegpo_envs.webshop.site.server import acquire, open_server, release
from tests.milegpo_envs.webshop import small_shop
from tests.milegpo_envs.webshop.test_shop import walk

NODE = re.compile(r'<(\w+) class="node [^>]*data-kind="(\w+)"[^>]*>(.*?)</\1>', re.DOTALL)


def opened(mode="fixed"):
    return OpenShop("tiny", small_shop.shop(RULES[mode]), [small_shop.goal(), small_shop.goal()])


class Customer:
    """Clicks through the site, following redirections."""

    def __init__(self, mode="fixed", goal=0, pictures=True, client=None):
        self.client = client or create_app(opened(mode), pictures=pictures).test_client()
        self.answer = self.client.get(f"/task/{goal}", follow_redirects=True)

    def post(self, **fields):
        where = self.answer.request.path
        self.answer = self.client.post(where, data=fields, follow_redirects=True)
        return self

    def click(self, target):
        return self.post(action=f"click[{target}]")

    def search(self, words):
        return self.post(query=words)

    @property
    def text(self):
        return self.answer.text

    @property
    def facts(self):
        found = re.search(r'<script id="facts"[^>]*>(.*?)</script>', self.text, re.DOTALL)
        return json.loads(found[1])

    @property
    def nodes(self):
        return [(kind, unescape(text)) for _, kind, text in NODE.findall(self.text)]


WALKS = {
    "index": [],
    "results": ["search[dress shirt]"],
    "item": ["search[dress]", "click[b000000001]", "click[navy blue]", "click[café]"],
    "description": ["search[dress]", "click[b000000001]", "click[large]", "click[description]"],
    "features": ["search[kettle]", "click[b000000003]", "click[features]"],
    "reviews": ["search[kettle]", "click[b000000003]", "click[reviews]"],
    "done": ["search[dress]", "click[b000000001]", "click[navy blue]", "click[buy now]"],
}


@pytest.mark.parametrize("mode", RULES)
@pytest.mark.parametrize("name", WALKS)
def test_every_page_shows_the_nodes_of_the_text_environment_in_their_order(name, mode):
    customer = Customer(mode)
    for action in WALKS[name]:
        kind, words = action[:-1].split("[", 1)
        (customer.search if kind == "search" else customer.click)(words)
    rules = RULES[mode]
    page = walk(*WALKS[name], rules=rules)
    view = look(small_shop.shop(rules), page, small_shop.goal(), "0")
    assert customer.nodes == [(node.kind, node.text) for node in view.nodes]
    assert customer.facts["address"] == view.address


def test_the_same_page_of_two_visits_states_the_same_state():
    one, two = Customer(goal=0), Customer(goal=1)
    for customer in (one, two):
        customer.search("dress").click("b000000001")
    one.click("large").click("navy blue")
    two.click("navy blue").click("small").click("large")
    assert one.facts["states"] == two.facts["states"]
    assert two.click("small").facts["states"] != one.facts["states"]


def test_visits_do_not_influence_each_other():
    client = create_app(opened()).test_client()
    one, two = Customer(client=client), Customer(client=client)
    one.search("dress").click("b000000001")
    assert two.facts["states"]["page"] == {"page": "index"}
    assert one.answer.request.path.split("/")[2] != two.answer.request.path.split("/")[2]


def test_the_last_page_shows_a_person_how_far_the_goal_is_met():
    for mode in RULES:
        customer = Customer(mode).search("dress").click("b000000001").click("navy blue")
        shown = customer.click("buy now").text
        assert "How far the goal is met" in shown
        assert "75 %" in shown
        assert re.search(r"0\.75 = 1\.0 for the kind of product\s+&times; 3 of 4 met", shown)
        assert "Not everything asked for is met" in shown
        success, score, parts = customer.facts["receipt"]
        assert (success, score, parts["r_price"]) == (False, 0.75, True)


def test_going_back_in_the_browser_and_on_from_there_works():
    customer = Customer().search("dress").click("b000000001").click("large")
    chosen = customer.answer.request.path
    customer.click("small").click("navy blue")
    customer.answer = customer.client.get(chosen)
    customer.click("navy blue")
    options = customer.facts["states"]["page"]["options"]
    assert options == [["color", "navy blue"], ["size", "large"]]


def test_after_the_purchase_no_earlier_page_sells_again():
    customer = Customer().search("dress").click("b000000001")
    item = customer.answer.request.path
    customer.click("buy now")
    bought = customer.answer.request.path
    customer.answer = customer.client.get(item)
    customer.click("navy blue")
    assert customer.answer.request.path == bought
    assert 'id="anywhere"' not in customer.text


def test_the_official_mode_searches_on_after_the_purchase():
    customer = Customer("official").search("dress").click("b000000001").click("buy now")
    assert 'id="anywhere"' in customer.text
    assert customer.search("dress").facts["states"]["page"]["page"] == "results"


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"query": ""},
        {"action": "buy"},
        {"action": "click[no]"},
        {"exact": "nonsense"},
        {"exact": "5"},
    ],
)
def test_what_the_page_does_not_offer_leads_nowhere(fields):
    customer = Customer()
    customer.post(**fields)
    assert (customer.answer.status_code, customer.facts["number"]) == (200, 0)


def test_texts_are_shown_and_never_become_markup():
    customer = Customer().search('<script>alert("x")</script> kettle').click("b000000003")
    assert ("text", "Kettle <b>&") in customer.nodes
    assert "<script>alert" not in customer.text
    assert "<b>" not in customer.text
    assert exact("a\r<&\"'") == "a&#13;&lt;&amp;&#34;&#39;"


def test_pictures_are_asked_for_only_where_they_may_be():
    for pictures in (True, False):
        customer = Customer(pictures=pictures).search("dress").click("b000000001")
        fetched = 'src="https://example.org/dress.jpg"' in customer.text
        policy = customer.answer.headers["Content-Security-Policy"]
        assert fetched is pictures
        assert ("https:" in policy) is pictures
        assert "<svg viewBox" in customer.text  # the drawing, behind it or alone
        customer.click("navy blue")
        assert ('src="https://example.org/navy.jpg"' in customer.text) is pictures


def test_nothing_but_pictures_is_asked_for_elsewhere():
    for name in WALKS:
        customer = Customer(pictures=False)
        for action in WALKS[name]:
            kind, words = action[:-1].split("[", 1)
            (customer.search if kind == "search" else customer.click)(words)
        addresses = re.findall(r'(?:src|href)="([^"]+)"', customer.text)
        assert addresses
        assert all(where.startswith(("/", "data:")) for where in addresses), addresses


def test_scripts_and_styles_are_served_with_the_package():
    client = create_app(opened()).test_client()
    for address in re.findall(r'(?:src|href)="(/static/[^"]+)"', client.get("/").text):
        assert client.get(address).status_code == 200


def test_the_first_page_offers_tasks_by_number_and_any():
    client = create_app(opened()).test_client()
    assert small_shop.goal().instruction_text in client.get("/").text
    assert client.get("/task/?goal=1").headers["Location"] == "/task/1"
    assert client.get("/task/?goal=").headers["Location"] in ("/task/0", "/task/1")
    for address in ("/task/2", "/task/?goal=2", "/task/?goal=x", "/task/?goal=-1", "/nothing"):
        answer = client.get(address)
        assert (answer.status_code, "Tasks are numbered 0 to 1" in answer.text) == (404, True)


@pytest.mark.parametrize("method", ["get", "post"])
def test_unknown_visits_are_refused(method):
    client = create_app(opened()).test_client()
    assert getattr(client, method)("/visit/abc/0").status_code == 404


def test_old_pages_and_idle_visits_end(monkeypatch):
    monkeypatch.setattr(visits, "KEPT_PAGES", 3)
    monkeypatch.setattr(visits, "KEPT_VISITS", 2)
    client = create_app(opened()).test_client()
    first = Customer(client=client)
    old = first.answer.request.path
    for words in ("dress", "kettle", "shirt"):
        first.search(words)
    assert client.get(old).headers["Location"].endswith("/3")
    Customer(client=client)
    Customer(client=client)
    assert client.get(old).status_code == 404


def test_a_port_in_use_is_an_error_of_its_own():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(OSError, match="in use"):
            open_server(opened(), port=taken.getsockname()[1])


def test_a_shared_site_ends_with_its_last_user():
    shop = open_shop(None, "fixed", 0, False, 20, "small")
    one, two = acquire(shop), acquire(shop)
    assert one is two
    release(shop, one)
    with socket.create_connection(("127.0.0.1", one.server.port), timeout=10):
        pass
    release(shop, two)
    assert not two.thread.is_alive()
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", two.server.port), timeout=10)
