import random
import subprocess
import sys
from copy import deepcopy

import pytest

from milegpo_envs.alfworld import games
from milegpo_envs.alfworld.compiled import compiled
from milegpo_envs.alfworld.experts import (
    SearchingExpert,
    UnreadableTask,
    likely_places,
    read_task,
    shortest_plan,
)
from milegpo_envs.alfworld.fast_engine import FastEngine
from milegpo_envs.alfworld.handcoded import HandCodedExpert
from milegpo_envs.alfworld.old_wordings import in_old_words


def some(size, each, split="train"):
    ids = [games.task_ids(split, size, [t])[:each] for t in games.TASK_TYPES]
    return [games.generate(id) for per_type in ids for id in per_type]


def search(game, horizon, plausible=None):
    """Play with the searching expert; returns (won, steps)."""
    engine, expert = FastEngine(compiled(game)), SearchingExpert(plausible)
    now = engine.reset()
    expert.reset(now.feedback, now.admissible_commands)
    for step in range(1, horizon + 1):
        command = expert.act(now.feedback, now.admissible_commands)
        assert command in now.admissible_commands
        now = engine.step(command)
        if now.won:
            return True, step
    return False, horizon


def test_the_searching_expert_wins_every_small_game_within_twenty_steps():
    assert all(search(game, 20)[0] for game in some("small", 15))


def test_the_searching_expert_wins_most_full_games_within_fifty():
    won = [search(game, 50)[0] for game in some("full", 6, "valid_unseen")]
    assert sum(won) / len(won) > 0.85


def test_knowing_likely_places_saves_steps():
    chosen = some("full", 3)
    wide = sum(search(game, 50)[1] for game in chosen)
    assert sum(search(game, 50, likely_places())[1] for game in chosen) < wide


def test_the_searching_expert_plays_the_older_wording():
    assert all(search(in_old_words(game), 20)[0] for game in some("small", 2))


def test_the_search_can_be_narrowed():
    game = games.generate(games.task_ids("train", "full", ["pick_heat_then_place_in_recep"])[0])
    engine = FastEngine(compiled(game))
    now = engine.reset()
    expert = SearchingExpert({game.params.object_target.lower(): frozenset(("fridge",))})
    expert.reset(now.feedback, now.admissible_commands)
    assert expert.act(now.feedback, now.admissible_commands) == "go to fridge 1"


@pytest.mark.parametrize("task_type", games.TASK_TYPES)
def test_every_goal_sentence_of_the_library_is_read(task_type):
    for id in games.task_ids("train", "small", [task_type])[:12]:
        game = games.generate(id)
        sentence = read_task(f"You see nothing.\n\nYour task is to: {game.goal}")
        assert sentence.object == game.params.object_target.lower()
        assert sentence.target in (
            game.params.parent_target.lower(),
            game.params.toggle_target.lower(),
        )


def test_other_sentences_are_refused():
    with pytest.raises(UnreadableTask):
        read_task("Your task is to: make me a sandwich.")


def fork(engine):
    """The same moment again, to be played on by itself."""
    other = FastEngine(engine.game)
    for name, value in vars(engine).items():
        if name != "game":
            setattr(other, name, deepcopy(value) if isinstance(value, dict | set) else value)
    return other


def fewest_steps(game, limit):
    """Breadth-first search over all commands, on exact facts; None if it takes more than limit."""
    engine = FastEngine(compiled(game))
    seen, layer = {engine.reset().facts}, [engine]
    for depth in range(1, limit + 1):
        reached = []
        for before in layer:
            for command in before.step("").admissible_commands:
                after = fork(before)
                now = after.step(command)
                if now.won:
                    return depth
                if now.facts not in seen:
                    seen.add(now.facts)
                    reached.append(after)
        layer = reached
    return None


def test_a_fork_plays_on_by_itself():
    game = some("small", 1)[4]
    engine = FastEngine(compiled(game))
    engine.reset()
    for command in shortest_plan(compiled(game), game.task_type, game.params):
        before, other = engine.step(""), fork(engine)
        assert other.step(command) == engine.step(command)
        assert before.facts != engine.step("").facts


@pytest.mark.parametrize("task_type", games.TASK_TYPES)
def test_no_list_of_commands_is_shorter_than_the_shortest_plan(task_type):
    for id in games.task_ids("train", "small", [task_type])[:6]:
        game = games.generate(id)
        plan = shortest_plan(compiled(game), task_type, game.params)
        assert fewest_steps(game, len(plan)) == len(plan), id


def test_environments_bring_no_expert_along():
    """Playing does not so much as import one."""
    play = (
        "import sys, gymnasium as gym, milegpo_envs\n"
        "env = gym.make('milegpo/ALFWorld-v0', size='small')\n"
        "_, info = env.reset(seed=1)\n"
        "*_, after = env.step('look')\n"
        "assert not [k for k in (*info, *after) if 'expert' in k or 'plan' in k]\n"
        "print([name for name in sys.modules if 'expert' in name or 'handcoded' in name])"
    )
    done = subprocess.run([sys.executable, "-c", play], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_shortest_plan_wins_with_its_last_command():
    for game in some("full", 3):
        engine = FastEngine(compiled(game))
        engine.reset()
        answers = [
            engine.step(c) for c in shortest_plan(compiled(game), game.task_type, game.params)
        ]
        assert [a.won for a in answers] == [False] * (len(answers) - 1) + [True]


def ask(game, horizon=50):
    engine, expert = FastEngine(compiled(game)), HandCodedExpert(game, compiled(game))
    now = engine.reset()
    expert.reset(now)
    given = []
    while not now.won and len(given) < horizon:
        given.append(expert.act(now))
        now = engine.step(given[-1].command)
    return now.won, given


@pytest.mark.parametrize("rewrite", [lambda game: game, in_old_words])
def test_the_mended_expert_solves_tasks_with_two_objects(rewrite):
    ids = games.task_ids("train", "small", ["pick_two_obj_and_place"])[:10]
    assert sum(ask(rewrite(games.generate(id)))[0] for id in ids) >= 9


def test_the_hand_coded_expert_repeats_itself_and_leaves_no_trace():
    from alfworld.agents.expert import handcoded_expert

    before = random.getstate()
    tracking = handcoded_expert.BasePolicy.update_state_tracking
    game = some("full", 1)[4]
    assert ask(game) == ask(game)
    assert random.getstate() == before
    assert handcoded_expert.random is random
    assert handcoded_expert.BasePolicy.update_state_tracking is tracking


def test_an_experts_failure_is_data():
    game = some("small", 1)[0]
    engine = FastEngine(compiled(game))
    expert = HandCodedExpert(game, compiled(game), max_steps=1)
    now = engine.reset()
    expert.reset(now)
    expert.act(now)
    expert.act(now)
    advice = expert.act(now)
    assert advice.command == "look"
    assert advice.problem.startswith("HandCodedAgentTimeout")
