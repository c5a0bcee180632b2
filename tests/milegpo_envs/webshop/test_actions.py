import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from milegpo_envs.webshop.actions import Click, Search, can_be_named, click, read_action


@pytest.mark.parametrize(
    ("action", "move"),
    [
        ("search[Red Dress]", Search(("red", "dress"))),
        ("search[ two  blanks]", Search(("", "two", "", "blanks"))),
        ("search[red dress] and then", Search(("red", "dress"))),
        ("click[Buy Now]", Click("buy now")),
        ("click[< Prev]", Click("< prev")),
        ("SEARCH[red]", None),
        ("Action: search[red]", None),
        ("search[a][b]", None),  # the name is "search[a]"
        ("search[]", None),
        ("click", None),
        ("", None),
    ],
)
def test_actions_are_read_as_the_official_engine_reads_them(action, move):
    assert read_action(action) == move


@given(st.tuples(st.sampled_from(["", "search", "click", "x"]), st.text("ab[]\n ", max_size=9)))
def test_reading_is_the_pattern_of_the_official_engine(parts):
    action = "".join(parts)
    match = re.match(r"(.+)\[(.+)\]", action)
    name, argument = match.groups() if match else (None, "")
    expected = {
        "search": Search(tuple(argument.split(" "))),
        "click": Click(argument),
    }.get(name)
    assert read_action(action) == expected


def test_brackets_without_end_are_read_in_linear_time():
    assert read_action("[" * 1_000_000) is None


def test_a_target_can_be_named_if_its_click_is_read_back():
    for target in ("navy blue", "a]b", "x", "", "size [us] 8", "two\nlines", "[x"):
        assert can_be_named(target) is (read_action(click(target)) == Click(target)), target
