import gymnasium as gym
import pytest

from baselines.react import ReAct
from baselines.reflexion import (
    MEMORY,
    NOTE_CHARACTERS,
    Memory,
    note_of,
    reflection_prompt,
    reflexion,
)
from milegpo_algo.rollout.collect import Episode, play
from milegpo_algo.rollout.generator import Sample
from milegpo_envs.pool import EnvPool
from tests.milegpo_algo.rollout.fakes import END, ByteCodec
from tests.toys import HOUSE_ID, solution, well_formed

EASY, HARD = "reach-kitchen", "carry-lamp-to-cellar"


class Scripted:
    """Solves the easy task; the hard one only with a note that says how."""

    def __init__(self):
        self.codec = ByteCodec()

    def generate(self, prompts, keys):
        return [self.sample(bytes(prompt).decode()) for prompt in prompts]

    def sample(self, prompt):
        task = EASY if "reach the kitchen" in prompt else HARD
        taken = prompt.partition("Now solve this task.")[2].count("<action>") - 1
        knows = task == EASY or "fetch the lamp first" in prompt
        plan = solution(task) if knows else []
        action = plan[taken] if taken < len(plan) else "look"
        ids = (*well_formed(action).encode(), END)
        return Sample(ids, None, "stop")


def run(trials, reflect):
    memory = Memory()
    pool = EnvPool(lambda: ReAct(gym.make(HOUSE_ID), notes=memory), 2)
    model = Scripted()

    def once(pool, tasks, trial):
        return play(
            pool,
            model,
            model.codec,
            [(task, trial) for task in tasks],
            max_prompt_tokens=10**6,
            seed=0,
        )

    return reflexion(pool, [EASY, HARD], memory, once, reflect, trials=trials)


def test_reflexion_improves_over_react_across_trials():
    asked = []

    def reflect(prompts, tasks, trial):
        asked.append((tasks, trial))
        assert all("You tried a task" in prompt[0]["content"] for prompt in prompts)
        return ["<think>hm</think>fetch the lamp first" if trial else "try harder" for _ in tasks]

    react, full = run(1, reflect), run(3, reflect)
    assert react.success_after(1) == 0.5
    assert [full.success_after(k) for k in (1, 2, 3)] == [0.5, 0.5, 1.0]
    assert full.solved_at == (1, 3)
    assert asked == [([HARD], 0), ([HARD], 1)]  # what succeeded is not tried, nor thought about


def test_success_is_the_environments_own():
    """Notes that claim success change nothing."""
    trials = run(2, lambda prompts, tasks, trial: ["Success! Task solved."] * len(tasks))
    assert trials.success_after(2) == 0.5


def test_the_newest_notes_are_kept_and_cut():
    memory = Memory()
    for number in range(5):
        memory.add("t", f"note {number}")
    memory.add("t", "  ")
    assert memory("t") == ("note 2", "note 3", "note 4")
    assert len(memory("t")) == MEMORY
    memory.add("u", "x" * 10**6)
    assert len(memory("u")[0]) == NOTE_CHARACTERS
    assert memory("nothing yet") == ()


def test_a_note_is_what_follows_the_thinking():
    assert note_of("<think>well</think> Open the fridge.") == "Open the fridge."
    assert note_of("<think>cut off in thought") == "cut off in thought"
    assert note_of("") == ""


def test_an_endless_transcript_loses_its_middle():
    episode = Episode("t", 0, (), False, 0.0, "horizon", {"transcript": "a" * 10**6 + "the end"})
    asked = reflection_prompt(episode, ["earlier"])[0]["content"]
    assert len(asked) < 15_000
    assert "the end" in asked
    assert "earlier" in asked


def test_wrong_numbers_are_refused():
    with pytest.raises(ValueError, match="at least one"):
        run(0, None)
    with pytest.raises(ValueError, match="twice"):
        reflexion(None, ["a", "a"], Memory(), None, None)
