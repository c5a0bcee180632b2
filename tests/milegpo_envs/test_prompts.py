from dataclasses import replace

import gymnasium as gym
import pytest

from milegpo_envs.alfworld.prompt import PROMPTS
from milegpo_envs.errors import UnknownName
from milegpo_envs.prompts import COMPACT, PAPERS, Moment, Turn, template_for
from tests.toys import HOUSE_ID, House

FIRST = (
    "-= Welcome to TextWorld, ALFRED! =-\n\n"
    "You are in the middle of a room. Looking quickly around you, you see a bed 1, a desk 1, and a "
    "drawer 1.\n\nYour task is to: put a clean mug in desk."
)
DESK = "You arrive at desk 1. On the desk 1, you see a pen 1, and a mug 2."
DRAWER = "You arrive at drawer 1. The drawer 1 is closed."
AT_START = Moment(FIRST, (), FIRST, ("go to desk 1", "go to drawer 1", "help", "look"), 1)
LATER = Moment(
    FIRST,
    (Turn(3, FIRST, "go to desk 1"), Turn(4, DESK, "go to drawer 1")),
    DRAWER,
    ("go to desk 1", "help", "open drawer 1"),
    5,
)


def test_the_full_prompt_holds_the_whole_protocol():
    prompt = PROMPTS["papers"].render(LATER)
    in_order = [
        "Your task: put a clean mug in desk.",
        "Steps taken so far: 4.",
        "The latest 2 of them",
        "[step 3] observation: -= Welcome",
        "[step 3] action: go to desk 1",
        f"[step 4] observation: {DESK}",
        "[step 4] action: go to drawer 1",
        f"You are at step 5. Current observation:\n{DRAWER}",
        "go to desk 1\nopen drawer 1",
        "<think></think>",
        "<action></action>",
    ]
    places = [prompt.find(text) for text in in_order]
    assert -1 not in places
    assert places == sorted(places)


def test_the_first_prompt_has_no_past():
    prompt = PROMPTS["papers"].render(AT_START)
    assert "Steps taken" not in prompt
    assert "The latest" not in prompt
    assert "[step" not in prompt
    assert f"You are at step 1. Current observation:\n{FIRST}" in prompt


def test_a_prompt_whose_history_was_dropped_still_counts_the_steps():
    prompt = PROMPTS["papers"].render(replace(LATER, history=()))
    assert "Steps taken so far: 4." in prompt
    assert "The latest" not in prompt
    assert "You are at step 5." in prompt


def test_the_compact_prompt_is_bare():
    assert PROMPTS["compact"].render(LATER) == (
        "task: put a clean mug in desk.\n"
        "3 go to desk 1 -> on the desk 1: pen 1, mug 2.\n"
        "4 go to drawer 1\n"
        "obs: the drawer 1 is closed.\n"
        "actions: go to desk 1 | open drawer 1"
    )
    assert PROMPTS["compact"].render(AT_START) == (
        "task: put a clean mug in desk.\n"
        "obs: bed 1, desk 1, drawer 1.\n"
        "actions: go to desk 1 | go to drawer 1"
    )


def test_alfworld_hides_help_in_both_styles():
    for template in PROMPTS.values():
        assert "help" not in template.render(LATER)


def test_the_neutral_templates_repeat_the_first_observation_as_task_except_at_the_start():
    for template in (PAPERS, COMPACT):
        assert template.render(AT_START).count("put a clean mug") == 1
        assert template.render(replace(LATER, history=())).count("put a clean mug") == 1


def test_a_moment_without_admissible_actions_has_no_list():
    moment = replace(AT_START, admissible_actions=())
    assert "Admissible actions, one a line" not in PAPERS.render(moment)
    assert "actions:" not in COMPACT.render(moment)


def test_braces_in_texts_are_text():
    moment = Moment("{task}", (Turn(1, "{x}", "{0}"),), "{observation}", ("{actions}",), 2)
    for template in (PAPERS, COMPACT):
        prompt = template.render(moment)
        assert "{observation}" in prompt
        assert "{0}" in prompt
        assert "{actions}" in prompt


def test_an_environment_brings_its_own_templates():
    env = gym.make(HOUSE_ID)
    assert template_for(env, "papers") is House.prompt_templates["papers"]


class Bare(gym.Env[str, str]):
    """Brings no templates."""


class OneStyle(Bare):
    """Brings one of two."""

    def __init__(self):
        self.prompt_templates = {"compact": replace(COMPACT, separator=";")}


def test_other_environments_get_the_neutral_ones():
    assert template_for(Bare(), "papers") is PAPERS
    assert template_for(OneStyle(), "papers") is PAPERS
    assert template_for(OneStyle(), "compact").separator == ";"


def test_an_unknown_style_is_named_with_the_valid_ones():
    with pytest.raises(UnknownName, match=r"'paper'.* Valid: papers, compact"):
        template_for(Bare(), "paper")
