from collections import Counter

import pytest

from milegpo_envs.draws import Draws
from milegpo_envs.webshop.catalogue import load_catalogue
from milegpo_envs.webshop.generated import (
    GeneratedCatalogue,
    asin_of,
    generate,
    index_of,
    nouns,
)
from milegpo_envs.webshop.goals import open_market
from milegpo_envs.webshop.reward import best_options, score
from milegpo_envs.webshop.search import open_index

SHOP = load_catalogue(None)
PRODUCTS = list(SHOP)
FIRST = ("B0FLAYYYXD", "Perirow C871 Elegant Summer Dress for Travel, Sweat Repellent")


def share(condition):
    return sum(bool(condition(product)) for product in PRODUCTS) / len(PRODUCTS)


def test_a_product_is_a_function_of_its_index():
    assert [generate(i) for i in range(1000)] == PRODUCTS
    assert GeneratedCatalogue(10, None)[7] == PRODUCTS[7]
    assert SHOP.content_hash != GeneratedCatalogue(10, None).content_hash


def test_this_version_stays_as_it_is():
    # Change VERSION together with this line: panels and results depend on the products.
    assert (PRODUCTS[0].asin, PRODUCTS[0].name) == FIRST


def test_asins_are_unique_and_lead_back():
    places = [*range(2000), 10**6, 10**9]
    assert len({asin_of(i) for i in places}) == len(places)
    assert [index_of(asin_of(i)) for i in places] == places
    for asin in ("", "B0", "B0ABCDEFGI", "A123456789"):
        assert SHOP.index_of(asin) is None
    assert SHOP.index_of(asin_of(1000)) is None
    assert SHOP.by_asin(asin_of(999)) == PRODUCTS[999]


def test_there_are_as_many_kinds_attributes_options_and_prices_as_in_the_real_shop():
    assert len({product.query for product in PRODUCTS}) == 250
    assert 550 <= len({a for product in PRODUCTS for a in product.attributes}) <= 650
    assert share(lambda p: p.options) == pytest.approx(0.42, abs=0.02)
    assert share(lambda p: len(p.options) > 1) == pytest.approx(0.18, abs=0.02)
    assert share(lambda p: len(p.prices) > 1) == pytest.approx(0.09, abs=0.015)
    assert share(lambda p: not p.price_text) == pytest.approx(0.09, abs=0.015)
    assert all(p.price_flag is None for p in PRODUCTS)
    assert max(Counter(p.category for p in PRODUCTS).values()) < 250


def test_every_attribute_stands_somewhere_in_the_texts():
    for product in PRODUCTS[:200]:
        text = " ".join((product.name, product.description, *product.bullets)).lower()
        assert all(attribute in text for attribute in product.attributes), product


def test_near_duplicates_differ_in_their_attributes():
    first, second, third = (set(PRODUCTS[i].attributes) for i in range(3))
    assert first != second != third != first
    assert PRODUCTS[0].query == PRODUCTS[1].query == PRODUCTS[2].query


@pytest.mark.parametrize("human", [False, True])
def test_the_shop_is_hard_enough(human):
    market, index = open_market(SHOP, human=human), open_index(SHOP)
    draws = Draws("test/goals")
    goals = draws.sample(range(len(market.goals)), 300)
    in_ten = also_right = 0
    for goal in (market.goals[i] for i in goals):
        target = SHOP.index_of(goal.asin)
        assert is_right(target, goal, market)
        top = index.top(goal.instruction)
        in_ten += target in top[:10]
        also_right += any(is_right(i, goal, market) for i in top[:5] if i != target)
    assert in_ten / len(goals) == pytest.approx(0.93, abs=0.035)
    assert also_right / len(goals) < 0.15


def is_right(index, goal, market):
    options = best_options(SHOP[index].options, goal, colours_on_both_sides=True)
    result = score(
        SHOP[index], options, market.prices[index], goal, nouns=nouns, colours_on_both_sides=True
    )
    return result.success


def test_nouns_are_what_the_title_names():
    assert nouns("Perirow M158 Elegant Summer Dress for Travel, Faux Leather (Navy Blue)") == (
        *("perirow", "summer", "dress", "travel", "faux", "leather", "navy", "blue"),
    )
