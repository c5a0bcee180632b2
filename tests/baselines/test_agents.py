import re

import pytest

from baselines.agents import KINDS, Agent, run_agent, worked_examples
from baselines.environments import Place
from milegpo_algo.rollout.generator import ChatReply, Usage
from milegpo_algo.rollout.policy import ChatPolicy

PLACE = Place("milegpo/ALFWorld-v0", {"size": "small"}, horizon=8)
SPLIT = "valid_unseen"
PANEL = PLACE.panel(SPLIT, 12)


class Hostile:
    """Answers whatever it likes, the same to the same question and key."""

    def __init__(self, *texts):
        self.texts, self.asked = texts, []

    def chat(self, conversations, keys):
        self.asked += [c[0]["content"] for c in conversations]
        return [ChatReply(self.texts[key % len(self.texts)], "stop", Usage(1, 1)) for key in keys]


class First(Hostile):
    """Takes the last admissible action listed; writes notes when asked for them."""

    def chat(self, conversations, keys):
        self.asked += [c[0]["content"] for c in conversations]
        return [ChatReply(self.answer(c[0]["content"]), "stop", Usage(1, 1)) for c in conversations]

    def answer(self, prompt):
        if prompt.startswith("You tried a task"):
            return "Open the drawer first."
        listed = re.findall(r"one a line:\n(.*?)\nFirst think", prompt, re.S)[-1].split("\n")
        return f"<think>last</think><action>{listed[-1]}</action>"


def play(kind, model=None, **settings):
    chosen = {"seeds": (1, 2), "slots": 5, **settings}
    policy = None if model is None else ChatPolicy(model)
    return run_agent(
        Agent(kind, trials=2), PLACE, SPLIT, PANEL, policy=policy, chat=model, **chosen
    )


@pytest.mark.parametrize("kind", KINDS)
def test_every_agent_plays_every_task_once_a_seed_whatever_the_batch(kind):
    once, again = play(kind, First()), play(kind, First(), slots=64)
    assert once == again
    assert [(e.seed, e.task_id) for e in once.played] == [
        (seed, task) for seed in (1, 2) for task in PANEL.task_ids
    ]


@pytest.mark.parametrize("kind", ["direct", "react", "reflexion"])
def test_empty_endless_and_hostile_output_is_data(kind):
    model = Hostile("", "word " * 20_000, "<action></action>", "\x00\ud800</think>", "{task} %s")
    outcome = play(kind, model)
    assert len(outcome.played) == 24
    assert all(e.stop == "horizon" and e.format_valid == 0 for e in outcome.played)
    assert max(map(len, model.asked)) < 40_000


def test_the_expert_is_better_than_random():
    expert, random = play("expert"), play("random")
    assert sum(e.success for e in expert.played) > sum(e.success for e in random.played)


def test_reflexion_keeps_count_of_its_trials_and_passes_its_notes_on():
    model = First()
    outcome = play("reflexion", model)
    first, second = outcome.success_by_trial
    assert first <= second
    assert any("What you noted after an earlier failure: Open the drawer" in a for a in model.asked)
    assert not any("What you noted" in a for a in model.asked[: len(PANEL.task_ids)])


def test_react_shows_a_solved_task_of_the_same_kind_from_another_split():
    examples = worked_examples(PLACE, "train", 1)
    assert set(examples) == {e.task_type for e in play("random").played}
    model = First()
    play("react", model)
    assert all("An example of a solved task" in asked for asked in model.asked)
    with pytest.raises(ValueError, match="give it away"):
        run_agent(
            Agent("react", example_split=SPLIT),
            PLACE,
            SPLIT,
            PANEL,
            policy=ChatPolicy(model),
            seeds=[1],
            slots=4,
        )


def test_wrong_agents_are_refused():
    with pytest.raises(ValueError, match=r"Valid: direct, react"):
        Agent("telepath")
    with pytest.raises(ValueError, match="trials from 1"):
        Agent("reflexion", trials=0)
    with pytest.raises(ValueError, match="needs a model"):
        play("react")
