from html.parser import HTMLParser

import pytest

from milegpo_envs.webshop import render
from milegpo_envs.webshop.content import look
from milegpo_envs.webshop.rules import FIXED, OFFICIAL
from milegpo_envs.webshop.shop import Index
from tests.milegpo_envs.webshop.small_shop import goal, shop
from tests.milegpo_envs.webshop.test_shop import DRESS_PAGE, walk

TASK = goal().instruction_text
PAGES = {
    "index": Index(),
    "results": walk("search[dress shirt]"),
    "item": walk("click[navy blue]", "click[café]", "click[large]", start=DRESS_PAGE),
    "description": walk("click[large]", "click[description]", start=DRESS_PAGE),
    "features": walk("search[kettle]", "click[b000000003]", "click[features]"),
    "done": walk("click[navy blue]", "click[buy now]", start=DRESS_PAGE),
}


def view(page, rules=FIXED):
    return look(shop(rules), page, goal(), "7")


def test_text_rich_is_one_node_a_line_with_marked_buttons():
    assert render.text_rich(view(Index())) == (
        f"WebShop\nInstruction: \n{TASK}\n[button] Search [button_]\n"
    )
    opened = walk("click[< prev]", start=DRESS_PAGE)
    assert render.text_rich(view(opened)) == (
        f"Instruction:\n{TASK}\n[button] Back to Search [button_]\nPage 1 (Total results: 1)\n"
        "\n[clicked button] B000000001 [clicked button_]\nArdo Summer Dress\n$18.0 to $22.5\n"
    )


def test_chosen_options_are_said_first_in_whatever_order_they_were_chosen():
    one, two = (
        walk(*clicks, start=DRESS_PAGE)
        for clicks in (("click[café]", "click[large]"), ("click[large]", "click[café]"))
    )
    for rendering in (render.text_rich, render.text):
        assert rendering(view(one)) == rendering(view(two))
    assert render.text_rich(view(one)).startswith("You have clicked café.\nYou have clicked large.")


def test_odd_options_and_the_plain_text_hide_choices_officially():
    page = PAGES["item"]  # café and large are chosen
    official = render.text_rich(view(page, OFFICIAL))
    assert official.startswith("You have clicked large.\nInstruction:")
    assert "[clicked button] café" not in official
    assert "[clicked button] café" in render.text_rich(view(page))
    assert "You have clicked" not in render.text(view(page, OFFICIAL))
    assert render.text(view(page)).startswith("You have clicked café. [SEP] You have clicked large")


def test_words_in_quotes_pass_for_choices_officially():
    page = walk('search["small" dress]', "click[b000000001]")
    assert "[clicked button] small" in render.text_rich(view(page, OFFICIAL))
    assert "[clicked button]" not in render.text_rich(view(page))


def test_choices_are_said_on_an_items_parts_in_fixed_mode():
    page = PAGES["description"]
    assert "You have clicked large." in render.text_rich(view(page))
    assert "You have clicked" not in render.text_rich(view(page, OFFICIAL))


def test_the_last_page_says_what_was_met():
    shown = render.text_rich(view(PAGES["done"]))
    assert "attribute machine wash: yes\n" in shown
    assert "option small: no\n" in shown
    assert "price within the bound: yes\n" in shown
    assert "\n0.75\n" in shown


def test_addresses_name_session_words_page_and_choices():
    assert render.url(view(Index())) == "http://127.0.0.1:3000/7"
    assert render.url(view(PAGES["item"])) == (
        "http://127.0.0.1:3000/item_page/7/B000000001/dress/1/"
        '{"color": "caf\\u00e9", "size": "large"}'
    )


class Reader(HTMLParser):
    """Collects the elements of class node, and what can be sent."""

    def __init__(self):
        super().__init__()
        self.nodes, self.actions, self.inputs = [], [], []
        self._open = False

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self._open = values.get("class", "").startswith("node ")
        if self._open:
            self.nodes.append([values["data-kind"], "data-marked" in values, ""])
        if "value" in values:
            self.actions.append(values["value"])
        if tag == "input":
            self.inputs.append(values["name"])

    def handle_data(self, data):
        if self._open:
            self.nodes[-1][2] += data

    def handle_endtag(self, tag):
        self._open = False


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("rules", [FIXED, OFFICIAL])
def test_the_html_holds_every_node_and_every_click(name, rules):
    page = PAGES[name]
    shown = view(page, rules)
    reader = Reader()
    reader.feed(render.html(shown))
    assert [tuple(node) for node in reader.nodes] == [
        (node.kind, node.marked, node.text) for node in shown.nodes
    ]
    clickables = [target for target in shop(rules).clickables(page) if target != "search"]
    assert sorted(reader.actions) == sorted(f"click[{target}]" for target in clickables)
    assert reader.inputs == (["query"] if name == "index" else [])


@pytest.mark.parametrize("name", PAGES)
def test_what_can_be_clicked_is_what_is_shown_as_clickable(name):
    page = PAGES[name]
    shown = {node.text.lower() for node in view(page).nodes if node.kind != "text"}
    assert shown == set(shop().clickables(page))
