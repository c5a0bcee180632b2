import pytest

from milegpo_envs.alfworld.prompt import short_observation, task_sentence

FIRST = (
    "-= Welcome to TextWorld, ALFRED! =-\n\n"
    "You are in the middle of a room. Looking quickly around you, you see a bed 1, and a desk 1."
    "\n\n"
    "Your task is to: put a clean mug in desk."
)


def test_the_compact_first_observation_is_the_room():
    assert short_observation(FIRST) == "bed 1, desk 1."


@pytest.mark.parametrize(
    ("long", "short"),
    [
        ("You open the fridge 1. The fridge 1 is open. In it, you see nothing.",
         "the fridge 1 is open. in it: nothing."),
        ("You arrive at loc 21. On the bed 1, you see a egg 2.", "on the bed 1: egg 2."),
        ("You close the fridge 1.", "you close the fridge 1."),
        ("You are carrying: a mug 2.", "you are carrying: mug 2."),
        ("You are facing the desk 1. Next to it, you see nothing.",
         "you are facing the desk 1. next to it: nothing."),
        ("Nothing happens.", "nothing happens."),
        ("This is a clean mug 2.", "this is a clean mug 2."),
        ("", ""),
    ],
)  # fmt: skip
def test_compact_observations_drop_what_adds_nothing(long, short):
    assert short_observation(long) == short


def test_the_task_is_found_in_the_first_observation():
    assert task_sentence(FIRST) == "put a clean mug in desk."
    assert task_sentence("A text of another kind.") == "A text of another kind."
