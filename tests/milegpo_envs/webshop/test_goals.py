import gzip
import json
import random

import pytest

from milegpo_envs.webshop.catalogue import load_catalogue
from milegpo_envs.webshop.goals import SPLITS, open_market, price_bound
from tests.milegpo_envs.webshop.real_shop import FOLDER, needs_real_shop

SHOP = load_catalogue(None)


@needs_real_shop
@pytest.mark.parametrize(("kind", "human"), [("synthetic_1k", False), ("human_1k", True)])
def test_official_mode_is_the_official_engine(kind, human):
    with gzip.open(FOLDER / "official_server.json.gz") as file:
        recorded = json.load(file)[kind]
    catalogue = load_catalogue(FOLDER)
    market = open_market(catalogue, human=human, mode="official", seed=0)
    prices = {catalogue[i].asin: price for i, price in enumerate(market.prices)}
    assert prices == recorded["prices"]
    assert len(market.goals) == (13 if human else 6910)
    for index, official in recorded["goals"].items():
        assert as_official(market.goals[int(index)]) == official


def as_official(goal):
    return {
        "asin": goal.asin,
        "category": goal.category,
        "query": goal.query,
        "name": goal.name,
        "product_category": goal.product_category,
        "instruction_text": goal.instruction_text,
        "attributes": list(goal.attributes),
        "price_upper": 1000000 if goal.price_upper is None else goal.price_upper,
        "goal_options": list(goal.options) if goal.is_human else dict(goal.options),
        "weight": goal.weight,
    }


@pytest.mark.parametrize("human", [False, True])
def test_fixed_mode_knows_no_seed(human):
    one, other = (open_market(SHOP, human=human, seed=seed) for seed in (0, 7))
    assert list(one.prices) == list(other.prices)
    assert list(one.goals) == list(other.goals)


def test_official_mode_follows_its_seed_alone():
    random.seed(3)
    before = random.getstate()
    first, second = (open_market(SHOP, mode="official", seed=seed) for seed in (1, 2))
    assert random.getstate() == before
    assert list(first.prices) != list(second.prices)
    open_market.cache_clear()
    assert list(open_market(SHOP, mode="official", seed=1).goals) == list(first.goals)


@pytest.mark.parametrize("mode", ["fixed", "official"])
def test_bounds_leave_room_for_the_price_and_prices_are_in_their_range(mode):
    market = open_market(SHOP, mode=mode)
    for goal in market.goals[:500]:
        price = market.prices[SHOP.index_of(goal.asin)]
        low, high = min(SHOP.by_asin(goal.asin).prices), max(SHOP.by_asin(goal.asin).prices)
        assert low <= price <= high
        if goal.price_upper is not None:
            assert price < goal.price_upper <= price + 40


@pytest.mark.parametrize(("price", "bounded"), [(5.0, True), (969.9, True), (980.0, False)])
def test_a_bound_needs_two_multiples_of_ten_below_a_thousand(price, bounded):
    assert (price_bound(price, None, "x") is not None) == bounded
    assert (price_bound(price, random.Random(0), "") is not None) == bounded


def test_every_combination_of_options_is_a_goal_of_its_product():
    market = open_market(SHOP)
    product = next(p for p in SHOP if len(p.options) == 2)
    goals = [g for g in market.goals if g.asin == product.asin]
    first, second = sorted(product.options)
    wanted = {(a, b) for a in product.options[first] for b in product.options[second]}
    assert {tuple(goal.options.values()) for goal in goals} == wanted
    assert len(goals) == len(wanted)
    assert len({goal.price_upper for goal in goals}) == 1


def test_goals_are_the_shuffled_order_of_the_catalogue():
    market = open_market(SHOP)
    order = list(range(len(market.goals)))
    random.Random(233).shuffle(order)
    in_order = [market.goals[order.index(place)].asin for place in range(20)]
    sellers = [p.asin for p in list(SHOP)[:20]]
    assert in_order == sorted(in_order, key=sellers.index)


def test_goals_behave_as_a_list():
    goals = open_market(SHOP).goals
    assert goals[-1] == goals[len(goals) - 1]
    assert goals[3:5] == [goals[3], goals[4]]
    assert [SHOP[i].asin for i in goals.products[:9]] == [goal.asin for goal in goals[:9]]
    assert goals.weights[:9].tolist() == [goal.weight for goal in goals[:9]]
    with pytest.raises(IndexError):
        goals[len(goals)]


def test_splits_share_no_goal_and_leave_none_out():
    ranges = [range(10_000)[first:last] for first, last in SPLITS.values()]
    assert sorted(i for indices in ranges for i in indices) == list(range(10_000))
    assert len(SPLITS) == 3
