import threading

import pytest

from milegpo_algo import Rollouts
from milegpo_algo.rollout.collect import (
    Episode,
    RolloutFailed,
    StepRecord,
    assign,
    collect,
    play,
    to_records,
)
from milegpo_algo.rollout.generator import Sample, sampling_key
from tests.milegpo_algo.rollout.fakes import END, ByteCodec, CountingPool, Parrot


def run(*tasks: str, size=16, group_size=1, budget=100, generator=None, **more) -> list[Episode]:
    return collect(
        CountingPool(size),
        generator or Parrot(),
        ByteCodec(),
        tasks,
        group_size=group_size,
        max_prompt_tokens=budget,
        seed=0,
        **more,
    )


@pytest.mark.parametrize(
    ("task", "stop", "steps", "success"),
    [
        ("wins@3", "success", 3, True),
        ("loses@2", "failure", 2, False),
        ("runs@5", "horizon", 5, False),
        ("breaks@2", "error", 2, False),
        ("never@0", "error", 0, False),
    ],
)
def test_an_episode_says_why_it_stopped(task, stop, steps, success):
    episode, _ = run(task, "wins@1")
    assert (episode.stop, len(episode.steps), episode.success) == (stop, steps, success)


def test_the_text_of_an_error_is_kept():
    episode, _ = run("breaks@2", "wins@1")
    assert episode.extras["error"] == "RuntimeError: broken"


def test_a_batch_of_nothing_but_errors_is_refused_with_the_first_one():
    with pytest.raises(RolloutFailed, match=r"All 3 .* task never@0: OSError: no"):
        run("never@0", "breaks@1", "breaks@3")
    assert [e.stop for e in run("never@0", "breaks@1", "runs@2")] == ["error", "error", "horizon"]


@pytest.mark.parametrize("size", [16, 3, 1])
def test_halves_that_take_turns_change_nothing(size):
    tasks = ("wins@3", "runs@5", "loses@2", "breaks@2", "never@0", "grows@9", "bursts@9")
    settings = {"size": size, "group_size": 2, "budget": 20}
    assert run(*tasks, halves=2, **settings) == run(*tasks, **settings)


def test_one_half_steps_while_the_other_is_answered():
    met = threading.Barrier(2, timeout=10)  # stepping and answering both have to be here at once

    class Meeting(Parrot):
        def generate(self, prompts, keys):
            if self.keys:  # the first half has stepped no one yet
                met.wait()
            return super().generate(prompts, keys)

    class MeetingPool(CountingPool):
        def step(self, actions):
            if not final.is_set():
                met.wait()
            final.set()
            return super().step(actions)

    final = threading.Event()
    pool = MeetingPool(2)
    play(
        pool,
        Meeting(),
        ByteCodec(),
        [("wins@1", 0), ("wins@1", 1)],
        max_prompt_tokens=100,
        seed=0,
        halves=2,
    )
    assert final.is_set()


def test_a_failure_of_the_generator_or_of_the_pool_itself_ends_the_rollout():
    class Broken(Parrot):
        def generate(self, prompts, keys):
            raise OSError("engine gone")

    class BrokenPool(CountingPool):
        def step(self, actions):
            raise OSError("pool gone")

    for halves in (1, 2):
        with pytest.raises(OSError, match="engine gone"):
            run("wins@2", "wins@3", generator=Broken(), halves=halves)
        with pytest.raises(OSError, match="pool gone"):
            play(
                BrokenPool(2),
                Parrot(),
                ByteCodec(),
                assign(["wins@2"], 2),
                max_prompt_tokens=9,
                seed=0,
                halves=halves,
            )


def test_there_are_one_or_two_halves():
    with pytest.raises(ValueError, match="halves=3"):
        run("wins@1", halves=3)


def test_finished_episodes_leave_the_batch():
    parrot = Parrot()
    run("wins@1", "runs@3", "loses@2", generator=parrot)
    assert [len(prompts) for prompts in parrot.prompts] == [3, 2, 1]


def test_episodes_come_in_the_order_of_the_tasks():
    episodes = run("runs@3", "wins@1", group_size=2)
    assert [(e.task_id, e.trajectory_id) for e in episodes] == [
        ("runs@3", 0),
        ("runs@3", 1),
        ("wins@1", 0),
        ("wins@1", 1),
    ]


def test_a_task_listed_twice_is_one_larger_group():
    assert assign(["q", "r", "q"], 2) == [
        ("q", 0),
        ("q", 1),
        ("r", 0),
        ("r", 1),
        ("q", 2),
        ("q", 3),
    ]


def test_a_small_pool_plays_in_waves_and_changes_nothing():
    tasks = ("wins@3", "runs@5", "loses@2", "breaks@2", "wins@1")
    assert run(*tasks, size=2) == run(*tasks, size=5)


def test_a_step_holds_what_was_asked_said_and_done():
    [episode] = run("wins@2")
    first, second = episode.steps
    assert bytes(first.prompt_ids).decode() == "wins@2"
    assert bytes(second.prompt_ids).decode() == "wins@2 1"
    assert first.completion_ids == (*b"go", END)
    assert first.logprobs == (-0.5, -0.5, -0.5)
    assert (first.reply, first.action) == ("go", "go")
    assert (first.state_id, first.next_state_id) == ("wins@2:0", "wins@2:1")
    assert (first.reward, second.reward) == (0.0, 10.0)


def test_extras_are_the_plain_values_outside_the_contract():
    [episode] = run("wins@2")
    assert episode.extras == {"task_type": "wins"}


def test_a_long_prompt_is_replaced_by_the_first_shorter_one_that_fits():
    [episode] = run("grows@3", budget=12)
    assert [bytes(s.prompt_ids).decode() for s in episode.steps] == ["grows@3"] * 3


def test_an_episode_stops_when_no_prompt_fits():
    [episode] = run("bursts@9", budget=20)
    assert (episode.stop, len(episode.steps)) == ("context", 2)  # 8, 18 characters; then 28


def test_an_episode_whose_first_prompt_does_not_fit_has_no_steps_and_no_rows():
    bad, good = run("runs@5-and-a-long-name@5", "wins@2", budget=10)
    assert (bad.stop, bad.steps) == ("context", ())
    records = to_records([bad, good], "format")
    assert {r["task_id"] for r in records} == {"wins@2"}
    assert len(Rollouts.from_steps(records)) == 2


def test_a_row_s_key_depends_on_its_name_alone():
    alone, together = Parrot(), Parrot()
    run("runs@2", generator=alone, iteration=4)
    run("wins@1", "runs@2", generator=together, iteration=4)
    assert [keys[-1:] for keys in together.keys] == alone.keys
    assert alone.keys[1] == [sampling_key(0, 4, "runs@2", 0, 1)]


@pytest.mark.parametrize("reply", ["", "nonsense", "\0\0", "\ud7ff" * 300, "<action>"])
def test_replies_of_any_kind_are_data(reply):
    [episode] = run("runs@2", generator=Parrot(reply))
    assert len(episode.steps) == 2


def test_an_empty_sample_is_data():
    class Mute:
        def generate(self, prompts, keys):
            return [Sample((), (), "stop") for _ in prompts]

    [episode] = run("runs@2", generator=Mute())
    assert [step.completion_ids for step in episode.steps] == [(), ()]


def test_an_empty_pool_is_refused_with_the_remedy():
    with pytest.raises(ValueError, match="size of at least 1"):
        run("wins@1", size=0)


def test_progress_counts_finished_episodes_to_the_end():
    seen = []
    run("wins@1", "runs@3", "wins@2", size=2, on_progress=lambda done, of: seen.append((done, of)))
    assert seen[-1] == (3, 3)
    assert seen == sorted(seen)


def faulty(format_valid: bool, action_valid: bool) -> list[Episode]:
    valid = (format_valid, action_valid)
    step = StepRecord((1,), (2,), None, "", "a", "s", "t", 0.0, *valid, None, "stop")
    return [Episode("q", 0, (step,), False, 0.0, "horizon")]


@pytest.mark.parametrize(
    ("penalise", "malformed", "inadmissible"),
    [("format", False, True), ("admissible", True, False), ("both", False, False)],
)
def test_penalise_says_which_fault_makes_a_row_invalid(penalise, malformed, inadmissible):
    assert to_records(faulty(False, True), penalise)[0]["valid"] is malformed
    assert to_records(faulty(True, False), penalise)[0]["valid"] is inadmissible
    assert to_records(faulty(True, True), penalise)[0]["valid"] is True


def test_an_unknown_penalise_lists_the_valid_ones():
    with pytest.raises(ValueError, match="format, admissible, both"):
        to_records([], "all")


def test_records_make_rollouts_with_the_trajectory_s_success_on_every_row():
    records = to_records(run("wins@3", "loses@2", group_size=2), "format")
    rollouts = Rollouts.from_steps(records)
    assert len(rollouts) == 10
    assert [r["success"] for r in records] == [True] * 6 + [False] * 4
