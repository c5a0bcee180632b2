import gymnasium as gym
import pytest

from baselines.react import THOUGHT_CHARACTERS, ReAct, WorkedExample, thought_of, worked_example
from milegpo_envs.spaces import MessagesSpace
from tests.toys import HOUSE_ID, solution, well_formed

TASK = "carry-lamp-to-cellar"
EXAMPLE = WorkedExample("a solved beginning", ())


class Solver:
    """Plays a shortest solution."""

    intention = "get there"

    def reset(self, observation, admissible):
        self.plan = iter(solution(TASK))

    def act(self, observation, admissible):
        return next(self.plan)


class Lost(Solver):
    """Looks around for ever."""

    def act(self, observation, admissible):
        return "look"


def react(**settings):
    env = ReAct(gym.make(HOUSE_ID), **settings)
    messages, info = env.reset(options={"task": TASK})
    return env, messages, info


def text(messages):
    (message,) = messages
    return message["content"]


def test_the_whole_episode_stands_in_the_prompt_thoughts_included():
    env, _, _ = react()
    plan = solution(TASK)
    for number, action in enumerate(plan[:-1]):
        messages, *_ = env.step(well_formed(action, f"thought {number}"))
    for number, action in enumerate(plan[:-1]):
        assert f"<think>thought {number}</think><action>{action}</action>" in text(messages)


def test_examples_come_before_the_task_and_notes_before_its_first_observation():
    _, messages, _ = react(
        examples={"carry": [EXAMPLE], "reach": []}, notes=lambda task: [f"remember {task}"]
    )
    written = text(messages)
    places = [
        written.index(part)
        for part in (EXAMPLE.first_observation, "Now solve", f"remember {TASK}", "hall")
    ]
    assert places == sorted(places)


def test_too_long_a_prompt_loses_old_turns_first_then_examples_and_never_the_latest_observation():
    env, _, _ = react(examples={"carry": [EXAMPLE, EXAMPLE]}, notes=lambda task: ["a note"])
    for _ in range(5):
        messages, _, _, _, info = env.step(well_formed("look", "old thought"))
    now = text(messages)
    shorter = [text(m) for m in info["shorter_prompts"]]
    assert [s.count("old thought") for s in (now, *shorter)] == [5, 4, 3, 1, 0, 0, 0]
    assert [s.count("a solved beginning") for s in (now, *shorter)] == [2, 2, 2, 2, 2, 1, 0]
    for each in shorter:
        assert "You are in the hall." in each.split("[")[-1]
        assert "a note" in each


def test_replies_are_read_by_the_rule_of_all_agents():
    env, _, _ = react()
    _, _, _, _, info = env.step("go to kitchen")
    assert info["format_problem"] == "no_action_tag"
    assert not info["format_valid"]
    assert info["executed_action"] == "go to kitchen"


@pytest.mark.parametrize("reply", ["", "<think>" * 50_000, "a" * 100_000, "\x00<action></action>"])
def test_no_reply_breaks_it_or_fills_the_next_prompt(reply):
    env, _, _ = react()
    messages, *_ = env.step(reply)
    assert len(text(messages)) < 6000
    assert messages in MessagesSpace()


def test_a_thought_is_cut_and_kept_on_one_line():
    assert thought_of("<think> one\n two </think><action>x</action>") == "one two"
    assert len(thought_of("<think>" + "z" * 10**6)) == THOUGHT_CHARACTERS
    assert thought_of("no tags") == ""


def test_a_worked_example_is_an_episode_that_succeeded():
    example = worked_example(gym.make(HOUSE_ID), Solver(), TASK)
    assert example is not None
    assert [turn.action for turn in example.turns] == solution(TASK)
    assert "<think>Next: get there.</think>" in example.written()
    assert worked_example(gym.make(HOUSE_ID), Lost(), TASK) is None


def test_a_new_episode_forgets_the_last_one():
    env, before, _ = react()
    env.step(well_formed("look", "gone"))
    after, info = env.reset(options={"task": TASK})
    assert after == before
    assert "gone" not in info["transcript"]
