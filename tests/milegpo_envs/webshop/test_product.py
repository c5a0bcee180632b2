import pytest

from milegpo_envs.webshop.generated import raw_entries
from milegpo_envs.webshop.product import read_options, read_price, read_product


@pytest.mark.parametrize(
    ("text", "prices", "flag"),
    [
        ("$12.99", (12.99,), None),
        ("$1,299.00", (1299.0,), None),
        ("$10.00 - $20.00", (10.0, 20.0), None),
        ("$19.99$27.99", (19.99, 27.99), None),
        ("", (100.0,), None),
        (None, (100.0,), None),
        ("$5.99 ($0.37 / Ounce)", (5.99, 0.37), "unit price"),
        ("Currently unavailable", (100.0,), "no number"),
        ("19.99", (19.99,), "no dollar sign"),
        ("€9.99", (9.99,), "no dollar sign"),
        ("$1$2$3", (1.0, 2.0), "many prices"),
        ("$.", (100.0,), "no number"),
        ("$1.2.3", (1.2,), "no dollar sign"),
        ("$" + "9" * 400, (100.0,), "no number"),
        (12.5, (12.5,), "not a text"),
        (1e-05, (1e-05,), "not a text"),
        (-3, (100.0,), "not a text"),
        (float("nan"), (100.0,), "not a text"),
        (["$5"], (100.0,), "not a text"),
    ],
)
def test_prices_are_read_as_officially_or_flagged(text, prices, flag):
    assert read_price(text) == (prices, flag)


def test_a_product_shows_its_price_as_the_official_pages_do():
    raw, attributes, human = raw_entries(0)
    tags = {
        price: read_product({**raw, "pricing": price}, attributes, human).price_tag
        for price in ("", "$9.50", "$9.50$12.00")
    }
    assert tags == {"": "$100.0", "$9.50": "$9.5", "$9.50$12.00": "$9.5 to $12.0"}


def test_options_are_lower_case_and_slashes_are_set_apart():
    raw, attributes, human = raw_entries(0)
    values = [{"value": " Black/White ", "image": "a"}, {"value": "RED", "image": None}]
    raw = {**raw, "customization_options": {"Color": values, "Size": None}}
    product = read_product(raw, attributes, human)
    assert product.options == {"color": ("black | white", "red")}
    assert product.option_images == {"black | white": "a", "red": None}


@pytest.mark.parametrize(
    ("raw", "options", "flag"),
    [
        ("", {}, None),
        (None, {}, None),
        ({"Size": None}, {}, None),
        ({"Size": []}, {"size": ()}, None),
        ({"Size": [{"value": "S"}, {"value": ""}]}, {"size": ("s", "")}, None),
        ({"Size": [{"value": 7}, {"value": 7.5}]}, {"size": ("7", "7.5")}, "not a text"),
        ({"Size": [{"value": None}, {}, None, {"value": "L"}]}, {"size": ("l",)}, "not a text"),
        ({"Size": ["S/M"]}, {"size": ("s | m",)}, "not a text"),
        ({"Size": {"value": "S"}, "Color": [{"value": "Red"}]}, {"color": ("red",)}, "not a list"),
        ({"Size": "S"}, {}, "not a list"),
        (["Size"], {}, "not a table"),
        (3, {}, "not a table"),
    ],
)
def test_odd_options_are_read_with_a_flag(raw, options, flag):
    assert (read_options(raw)[0], read_options(raw)[2]) == (options, flag)
    entry, attributes, human = raw_entries(0)
    product = read_product({**entry, "customization_options": raw}, attributes, human)
    assert (product.options, product.option_flag) == (options, flag)


def test_pictures_of_options_are_addresses_or_none():
    values = [{"value": "a", "image": "https://x/a.jpg"}, {"value": "b", "image": 3}, "c"]
    assert read_options({"Color": values})[1] == {"a": "https://x/a.jpg", "b": None, "c": None}


def test_what_other_files_do_not_know_is_left_empty():
    raw, _, _ = raw_entries(0)
    product = read_product({**raw, "small_description": "one", "images": None}, None, None)
    assert (product.attributes, product.instruction) == (("DUMMY_ATTR",), None)
    assert (product.bullets, product.main_image) == (("one",), "")
