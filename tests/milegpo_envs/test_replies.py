import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from milegpo_envs.replies import PROBLEMS, TAIL_CHARACTERS, Reply, parse_reply

PIECES = ["<action>", "</action>", "<think>", "</think>", "<Action>", "go", " ", "\n", "李", "İ"]
REPLIES = st.one_of(
    st.lists(st.sampled_from([*PIECES, "\ud800", "\x00"]), max_size=12).map("".join),
    st.text(alphabet=st.characters(exclude_categories=[])),
)


def test_a_well_formed_reply_gives_its_action():
    reply = parse_reply("<think>The mug is dirty.</think><action> Go to Sink 1\n</action>")
    assert reply == Reply(action="go to sink 1", problem=None)
    assert reply.format_valid


@pytest.mark.parametrize(
    ("text", "problem", "action"),
    [
        ("", "empty_reply", ""),
        (" \n\t", "empty_reply", ""),
        ("Go north", "no_action_tag", "go north"),
        ("<think>x</think>go north", "no_action_tag", "<think>x</think>go north"),
        ("<think>x</think>north</action>", "no_action_tag", "<think>x</think>north</action>"),
        ("<think>x</think><action>North", "unclosed_action", "<think>x</think><action>north"),
        (
            "</action><think>x</think><action>N",
            "unclosed_action",
            "</action><think>x</think><action>n",
        ),
        ("<think>x</think><action></action>", "empty_action", None),
        ("<think>x</think><action> \n</action>", "empty_action", None),
        ("<action>north</action>", "no_think", "north"),
        ("x</think><action>north</action>", "no_think", "north"),
        ("<think>x<action>north</action>", "unclosed_think", "north"),
    ],
)
def test_every_malformed_reply_has_its_problem_and_sends_something(text, problem, action):
    reply = parse_reply(text)
    assert reply.problem == problem
    assert not reply.format_valid
    if action is not None:
        assert reply.action == action[-TAIL_CHARACTERS:]
    assert reply.action or not text.strip()


@pytest.mark.parametrize(
    "text",
    [
        "<think></think><action>north</action>",  # an empty thought is a thought
        "<action>north</action><think>x</think>",  # the order is free
        "</think><think><action>north</action>",
        "<think>x</think><ACTION>North</Action>",  # the reference lower-cases before it looks
        "</action><think>x</think><action>north</action>",  # a closing tag before is nothing
        "<think>x</think><action>north</action><action>south</action>",  # the first one counts
        "<think>x</think><action>north</action> trailing",
    ],
)
def test_what_the_reference_lets_pass_passes(text):
    assert parse_reply(text) == Reply(action="north", problem=None)


def test_think_tags_count_only_as_written():
    assert parse_reply("<THINK>x</THINK><action>north</action>").problem == "no_think"


def test_an_action_inside_the_thought_is_the_first_one():
    text = "<think>maybe <action>a</action></think><action>b</action>"
    assert parse_reply(text).action == "a"


def test_a_nested_opening_tag_belongs_to_the_action():
    assert parse_reply("<think></think><action>a<action>b</action>").action == "a<action>b"


def test_cjk_counts_only_where_it_is_forbidden():
    text = "<think>走</think><action>north</action>"
    assert parse_reply(text).format_valid
    assert parse_reply(text, forbid_cjk=True) == Reply(action="north", problem="cjk")


@pytest.mark.parametrize("letter", ["é", "あ", "한", "😀", "\u3400"])
def test_only_the_ideographs_of_the_reference_are_cjk(letter):
    text = f"<think>{letter}</think><action>north</action>"
    assert parse_reply(text, forbid_cjk=True).format_valid


def test_a_missing_tag_is_named_before_cjk():
    assert parse_reply("走", forbid_cjk=True).problem == "no_action_tag"


@given(REPLIES, st.booleans())
@example("İ" * 40, False)
def test_no_string_raises_and_all_say_what_is_wrong(text, forbid_cjk):
    reply = parse_reply(text, forbid_cjk=forbid_cjk)
    assert reply.problem is None or reply.problem in PROBLEMS
    assert reply.action == reply.action.strip()
    assert bool(reply.action) == bool(text.strip())
    if reply.problem in ("no_action_tag", "unclosed_action", "empty_action"):
        assert len(reply.action) <= TAIL_CHARACTERS


@given(REPLIES)
def test_the_rule_by_a_slow_reference(text):
    lowered = text.lower()
    start = lowered.find("<action>")
    end = -1 if start < 0 else lowered.find("</action>", start + len("<action>"))
    inside = "" if end < 0 else lowered[start + len("<action>") : end].strip()
    valid = bool(inside) and "<think>" in text and "</think>" in text
    reply = parse_reply(text)
    assert reply.format_valid == valid
    if inside:
        assert reply.action == inside


@pytest.mark.parametrize(
    "piece", ["<action>", "</action>", "<think>", "<", " ", "<action></action>"]
)
def test_long_replies_take_linear_time(piece):
    text = piece * (400_000 // len(piece))
    started = time.perf_counter()
    parse_reply(text, forbid_cjk=True)
    assert time.perf_counter() - started < 1.0  # milliseconds; quadratic time would be minutes
