import pytest

from milegpo_envs.webshop.actions import Click, Search, read_action
from milegpo_envs.webshop.rules import FIXED, OFFICIAL
from milegpo_envs.webshop.shop import Detail, Done, Index, Item, Refused, Results, choosable
from tests.milegpo_envs.webshop.small_shop import DRESS, goal, product, shop


def walk(*actions, rules=FIXED, start=None):
    page = Index() if start is None else start
    for action in actions:
        page = shop(rules).follow(page, read_action(action), goal())
    return page


DRESS_PAGE = walk("search[dress]", "click[b000000001]")


def test_a_purchase_goes_through_results_and_item():
    assert isinstance(walk("search[dress]"), Results)
    assert isinstance(DRESS_PAGE, Item)
    done = walk("click[navy blue]", "click[small]", "click[buy now]", start=DRESS_PAGE)
    assert isinstance(done, Done)
    assert done.score.success


def test_an_option_replaces_the_choice_of_its_group():
    page = walk("click[navy blue]", "click[large]", "click[small]", start=DRESS_PAGE)
    assert dict(page.chosen) == {"color": "navy blue", "size": "small"}


@pytest.mark.parametrize("part", ["description", "features", "reviews"])
def test_back_from_a_part_keeps_the_options_and_back_from_the_item_drops_them(part):
    page = walk("click[large]", f"click[{part}]", start=DRESS_PAGE)
    assert isinstance(page, Detail)
    item = walk("click[< prev]", start=page)
    assert dict(item.chosen) == {"size": "large"}
    assert walk("click[< prev]", "click[b000000001]", start=item).chosen == ()


def test_back_to_search_clears_all():
    assert walk("click[back to search]", start=DRESS_PAGE) == Index()


def test_a_search_works_on_every_page_before_the_purchase():
    assert walk("search[kettle]", start=DRESS_PAGE).words == ("kettle",)
    assert isinstance(walk("search[shirt]", "search[kettle]"), Results)


def test_the_purchase_ends_the_episode_in_fixed_mode_only():
    done = walk("click[buy now]", start=DRESS_PAGE)
    with pytest.raises(Refused, match="purchase is made"):
        walk("search[dress]", start=done)
    assert isinstance(walk("search[dress]", start=done, rules=OFFICIAL), Results)


def test_paging_is_bounded_in_fixed_mode_only():
    second = walk("search[shirt]", "click[next >]")
    assert (second.number, len(second.shown)) == (2, 10)
    assert "next >" not in shop().clickables(second)
    with pytest.raises(Refused):
        walk("click[next >]", start=second)
    third = walk("click[next >]", start=second, rules=OFFICIAL)
    assert (third.number, third.shown) == (3, ())
    assert walk("click[< prev]", "click[< prev]", start=third, rules=OFFICIAL).number == 1


def test_reserved_prefixes_are_plain_words_in_fixed_mode_only():
    assert walk("search[<c> garden]").found == ()
    assert walk("search[<c> garden]", rules=OFFICIAL).found == (2,)
    assert walk("search[<q> kettles]", rules=OFFICIAL).found == (2,)
    assert walk("search[<q> dresses]", rules=OFFICIAL).found == (0, 1, *range(3, 23))
    for words in ("<c>", "<q>", "<r>", "<a> gold", "<r> 5"):
        for rules in (FIXED, OFFICIAL):
            assert isinstance(walk(f"search[{words}]", rules=rules), Results)


@pytest.mark.parametrize("target", ["search", "nothing", "", "buy now"])
def test_only_what_is_on_the_page_can_be_clicked(target):
    for page in (Index(), walk("search[dress]")):
        with pytest.raises(Refused, match="not on the page"):
            shop().follow(page, Click(target), goal())


def test_clickables_are_buttons_then_products_then_options():
    assert shop().clickables(Index()) == ["search"]
    assert shop().clickables(walk("search[dress kettle]")) == [
        "back to search",
        "b000000001",
        "b000000003",
    ]
    assert shop().clickables(DRESS_PAGE)[:6] == [
        *("back to search", "< prev", "description", "features", "reviews", "buy now")
    ]
    assert set(shop().clickables(DRESS_PAGE)[6:]) == {
        value for values in DRESS.options.values() for value in values
    }


def test_pages_are_values():
    move = Search(("dress",))
    assert shop().follow(Index(), move, goal()) == shop().follow(Index(), move, goal())
    assert hash(DRESS_PAGE) == hash(walk("search[dress]", "click[b000000001]"))


def test_what_an_action_chooses_is_in_the_last_group_that_has_it_and_can_be_named():
    values = {"a": ("red", "size [us] 8", "buy now", ""), "b": ("red", "blue"), "c": ("search",)}
    item = product("B000000009", "Odd", options=values)
    assert choosable(item) == {"a": [], "b": ["red", "blue"], "c": []}
    assert choosable(DRESS) == {group: list(values) for group, values in DRESS.options.items()}
