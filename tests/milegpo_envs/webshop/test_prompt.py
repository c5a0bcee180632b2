from milegpo_envs.prompts import Moment
from milegpo_envs.webshop import render
from milegpo_envs.webshop.content import look
from milegpo_envs.webshop.prompt import PROMPTS, instruction, short_page, without_instruction
from milegpo_envs.webshop.shop import Index
from tests.milegpo_envs.webshop.small_shop import goal, shop
from tests.milegpo_envs.webshop.test_shop import DRESS_PAGE, walk

TASK = goal().instruction_text


def shown(page, rendering=render.text_rich):
    return rendering(look(shop(), page, goal(), "0"))


def test_the_instruction_is_found_on_every_page_of_either_rendering():
    chosen = walk("click[large]", start=DRESS_PAGE)
    for page in (Index(), walk("search[dress]"), DRESS_PAGE, chosen):
        for rendering in (render.text_rich, render.text):
            assert instruction(shown(page, rendering)) == TASK
            assert TASK not in without_instruction(shown(page, rendering))


def test_a_text_without_instruction_stays():
    assert instruction("A lamp.") == "A lamp."
    assert without_instruction("A lamp.") == "A lamp."
    assert short_page("a\nlamp") == "a lamp"


def test_a_short_page_names_products_and_choices_and_no_buttons():
    opened = walk("click[< prev]", start=DRESS_PAGE)
    assert short_page(shown(opened)) == (
        "Page 1 (Total results: 1); B000000001*; Ardo Summer Dress; $18.0 to $22.5"
    )
    assert "large*" in short_page(shown(walk("click[large]", start=DRESS_PAGE)))


def test_the_task_of_a_compact_prompt_is_not_cut():
    moment = Moment(shown(Index()), (), shown(walk("search[dress]")), ("click[x]",), 2)
    prompt = PROMPTS["text_rich"]["compact"].render(moment)
    assert f"task: {TASK}\n" in prompt
    assert prompt.endswith("actions: click[x]")
