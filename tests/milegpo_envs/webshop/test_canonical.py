import json

import pytest

from milegpo_envs.state import state_id
from milegpo_envs.webshop.canonical import CANONICAL
from milegpo_envs.webshop.shop import Index
from tests.milegpo_envs.webshop.small_shop import shop
from tests.milegpo_envs.webshop.test_shop import DRESS_PAGE, walk


def key(page, kind="page"):
    return CANONICAL[kind](shop(), page, "what is seen")


def test_the_keys_say_what_the_pages_hold():
    assert key(Index()) == {"page": "index"}
    assert key(walk("search[dress kettle]")) == {
        "page": "results",
        "number": 1,
        "total": 2,
        "shown": ["B000000001", "B000000003"],
    }
    item = {"product": "B000000001", "options": [["color", "navy blue"], ["size", "large"]]}
    page = walk("click[large]", "click[navy blue]", start=DRESS_PAGE)
    assert key(page) == {"page": "item", **item}
    assert key(walk("click[features]", start=page)) == {"page": "features", **item}
    assert key(walk("click[buy now]", start=page)) == {"page": "done", **item, "success": False}


def test_order_of_choice_words_and_marks_do_not_matter_and_choices_do():
    one = walk("click[large]", "click[navy blue]", start=DRESS_PAGE)
    two = walk("click[navy blue]", "click[small]", "click[large]", start=DRESS_PAGE)
    assert key(one) == key(two)
    assert key(one) != key(DRESS_PAGE)
    assert key(walk("search[ardo]", "click[b000000001]")) == key(DRESS_PAGE)
    assert key(walk("click[< prev]", start=DRESS_PAGE)) == key(walk("search[summer]"))


def test_pages_of_results_differ():
    first, second = walk("search[shirt]"), walk("search[shirt]", "click[next >]")
    assert key(first) != key(second)


def test_markov_holds_the_results_an_item_was_reached_from():
    other = walk("search[ardo kettle]", "click[b000000001]")
    assert key(other) == key(DRESS_PAGE)
    assert key(other, "markov") != key(DRESS_PAGE, "markov")
    assert key(Index(), "markov") == {"page": "index"}


@pytest.mark.parametrize("kind", CANONICAL)
def test_states_are_plain_data(kind):
    for page in (
        Index(),
        walk("search[dress]"),
        DRESS_PAGE,
        walk("click[buy now]", start=DRESS_PAGE),
    ):
        state = key(page, kind)
        assert state_id(json.loads(json.dumps(state))) == state_id(state)


def test_the_observation_is_the_state_where_it_is_asked_for():
    assert key(DRESS_PAGE, "observation") == {"observation": "what is seen"}
