import dataclasses

import pytest

from milegpo_envs.webshop.colours import simplify
from milegpo_envs.webshop.reward import best_options, score
from tests.milegpo_envs.webshop.small_shop import DRESS, KETTLE, OTHER_DRESS, goal, nouns

RIGHT = {"color": "navy blue", "size": "small"}


def worth(product=DRESS, chosen=RIGHT, price=20.0, wanted=None, both=True):
    wanted = goal() if wanted is None else wanted
    return score(product, chosen, price, wanted, nouns=nouns, colours_on_both_sides=both)


def test_all_met_is_one_and_a_success():
    assert worth().reward == 1.0
    assert worth().success


def test_each_thing_missed_costs_its_share():
    # one attribute, two options and the price: a quarter each
    assert worth(chosen={"size": "small"}).reward == 0.75
    assert worth(chosen={}).reward == 0.5
    assert worth(price=30.01).reward == 0.75
    assert worth(wanted=goal(attributes=("waterproof",))).reward == 0.75
    assert not worth(chosen={}).success


def test_a_price_at_the_bound_is_met_and_no_bound_is_always_met():
    assert worth(price=30.0).price_met
    assert worth(price=1e9, wanted=goal(price_upper=None)).price_met


def test_attributes_may_stand_in_the_texts_instead_of_the_list():
    for attribute in ("summer", "second bullet", "all about ardo"):
        assert worth(wanted=goal(attributes=(attribute,))).attributes == ((attribute, True),)


@pytest.mark.parametrize(
    ("title", "query", "category", "factor"),
    [
        ("Ardo Summer Dress", "dresses", "x", 1.0),  # the same title and query
        ("Dress", "shirts", "x", 1.0),  # 1 of 3 nouns, above 0.2
        ("Other thing", "dresses", "Clothing \u203a Women", 0.0),  # no noun shared: nothing counts
    ],
)
def test_the_type_factor(title, query, category, factor):
    bought = dataclasses.replace(DRESS, name=title, query=query, product_category=category)
    assert worth(bought).type_factor == factor


def test_few_shared_nouns_halve_the_reward_of_what_is_not_related():
    name = "Ardo " + " ".join("abcdefgh")  # 9 nouns, 1 shared: 0.11
    long_title = goal(name=name, query="shirts", product_category="none")
    assert worth(wanted=long_title).type_factor == 0.5
    longer = goal(name=name + " ij kl mn", query="dresses")  # 1 of 12, below 0.1
    assert worth(wanted=longer).type_factor == 0.1


def test_a_repeated_noun_counts_again_in_the_wanted_title_only():
    assert worth(wanted=goal(name="dress dress dress dress")).title_score == 0.25


def test_colours_are_simplified_on_one_side_officially_and_on_both_in_fixed_mode():
    brown = {"color": 'coffeebrown 3"', "size": "small"}
    wanted = goal(options=brown)
    # officially "brown", the first colour found, is compared with "('color', 'coffeebrown 3\"')"
    assert simplify('coffeebrown 3"') == "brown"
    assert worth(chosen=brown, wanted=wanted, both=False).options[0][1] is False
    assert worth(chosen=brown, wanted=wanted, both=True).success


def test_values_without_comparable_letters_still_equal_themselves_in_fixed_mode():
    odd = goal(options={"color": "é"})
    assert worth(chosen={"color": "é"}, wanted=odd).success


def test_human_goals_name_values_only():
    human = goal(options=("small", "navy blue"), is_human=True)
    for both in (True, False):
        assert worth(wanted=human, both=both).success


def test_the_parts_add_up_to_the_reward():
    found = worth(KETTLE, {}, 95.0)
    parts = worth(OTHER_DRESS, {"size": "small"}, 95.0, goal(name="Belo Dress")).parts()
    shares = ("att", "option", "price")
    total = sum(parts[f"w_{name}"] * parts[f"r_{name}"] for name in shares)
    assert parts["reward"] == pytest.approx(parts["r_type"] * total)
    assert sum(parts[f"w_{name}"] for name in shares) == pytest.approx(1)
    assert found.reward == 0.0
    assert worth(wanted=goal(options={})).parts()["r_option"] is None


def test_the_best_options_are_those_the_goal_names():
    assert best_options(DRESS.options, goal(), colours_on_both_sides=True) == RIGHT
    assert best_options(DRESS.options, goal(options=()), colours_on_both_sides=True) == {}
    assert best_options(KETTLE.options, goal(), colours_on_both_sides=True) == {}
