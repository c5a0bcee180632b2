import pytest
from hypothesis import given
from hypothesis import strategies as st

from milegpo_envs.alfworld.commands import (
    AMBIGUOUS,
    NOT_ADMISSIBLE,
    NOT_TEXT,
    read_leniently,
    read_strict,
)

ADMISSIBLE = (
    "examine mug 2",
    "go to cabinet 1",
    "go to cabinet 2",
    "go to fridge 1",
    "inventory",
    "look",
    "move mug 2 to countertop 1",
    "use desklamp 1",
)


@pytest.mark.parametrize("read", [read_strict, read_leniently])
@pytest.mark.parametrize("command", ADMISSIBLE)
def test_an_admissible_command_is_itself(read, command):
    assert read(f"  {command}\n", ADMISSIBLE).command == command


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("put mug 2 in/on countertop 1", "move mug 2 to countertop 1"),
        ("Place the mug two on countertop1.", "move mug 2 to countertop 1"),
        ("walk to cabinet one", "go to cabinet 1"),
        ("go to the fridge", "go to fridge 1"),
        ("turn on the desklamp", "use desklamp 1"),
        ("look around", "look"),
        ("inspect mug", "examine mug 2"),
        ("GO TO CABINET 2", "go to cabinet 2"),
    ],
)
def test_other_wordings_are_understood_only_where_asked(said, meant):
    assert read_leniently(said, ADMISSIBLE).command == meant
    assert read_strict(said, ADMISSIBLE).problem == NOT_ADMISSIBLE


def test_what_fits_two_commands_is_ambiguous():
    assert read_leniently("go to cabinet", ADMISSIBLE).problem == AMBIGUOUS


@pytest.mark.parametrize("said", ["", "go to cabinet 3", "take mug 2 from fridge 1", "mug", "the"])
def test_what_fits_none_is_not_admissible(said):
    assert read_leniently(said, ADMISSIBLE).problem == NOT_ADMISSIBLE


@pytest.mark.parametrize("action", [None, 3, b"look", ["look"]])
def test_only_text_is_read(action):
    assert read_leniently(action, ADMISSIBLE).problem == NOT_TEXT


@given(st.text())
def test_any_text_is_answered_with_an_admissible_command_or_a_problem(text):
    read = read_leniently(text, ADMISSIBLE)
    assert (read.command in ADMISSIBLE) != (read.problem is not None)
