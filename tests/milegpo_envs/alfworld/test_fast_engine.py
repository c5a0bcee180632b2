import pickle
from copy import deepcopy
from dataclasses import replace

import pytest

from milegpo_envs.alfworld import games
from milegpo_envs.alfworld.compiled import compiled
from milegpo_envs.alfworld.engine import NOTHING_HAPPENS, UnsupportedGame
from milegpo_envs.alfworld.experts import shortest_plan
from milegpo_envs.alfworld.fast_engine import FastEngine
from milegpo_envs.alfworld.old_wordings import in_old_words, with_plain_help
from milegpo_envs.alfworld.parity import walk

COOL = games.task_ids("train", "small", ["pick_cool_then_place_in_recep"])[0]
LOOK = games.task_ids("train", "small", ["look_at_obj_in_light"])[0]


def play(task_id, *commands):
    engine = FastEngine(compiled(games.generate(task_id)))
    answers = [engine.reset()]
    answers += [engine.step(command) for command in commands]
    return answers


def plan_of(task_id):
    game = games.generate(task_id)
    return shortest_plan(compiled(game), game.task_type, game.params)


def test_a_whole_game_reads_as_officially():
    first, *rest = play(COOL, *plan_of(COOL))
    assert [first.feedback, *(answer.feedback for answer in rest)] == TRANSCRIPT
    assert [answer.won for answer in rest] == [False] * (len(rest) - 1) + [True]


def test_admissible_commands_are_sorted_and_each_does_something():
    for _, [answer] in walk([FastEngine(compiled(games.generate(COOL)))], "sorted", 60):
        commands = answer.admissible_commands
        assert list(commands) == sorted(set(commands))
        assert {"look", "inventory", "help"} <= set(commands)
    engine = FastEngine(compiled(games.generate(COOL)))
    for command in engine.reset().admissible_commands:
        engine.reset()
        assert engine.step(command).feedback != NOTHING_HAPPENS


def test_an_inadmissible_command_changes_nothing():
    engine = FastEngine(compiled(games.generate(COOL)))
    before = engine.reset()
    for command in ("", "go to", "xyzzy", "look ,", "LOOK", "\ud800", "open fridge 1 " * 1000):
        after = engine.step(command)
        assert after == replace(before, feedback=NOTHING_HAPPENS)


def test_blanks_around_a_command_do_not_count():
    assert play(COOL, " look\n")[1] == play(COOL, "look")[1]


def test_look_lists_the_room_only_in_the_first_text():
    first, second = play(COOL, "look")
    assert "you see a" in first.feedback
    assert second.feedback.endswith("you see nothing.")


def test_going_to_where_one_is_is_not_admissible():
    engine = FastEngine(compiled(games.generate(COOL)))
    for command in engine.reset().admissible_commands:
        if command.startswith("go to "):
            engine.reset()
            assert command not in engine.step(command).admissible_commands


def test_two_receptacles_at_one_place_hide_each_others_go_to():
    for task_id in games.task_ids("train")[:40]:
        world = compiled(games.generate(task_id))
        shared = [receptacles for receptacles in world.at.values() if len(receptacles) > 1]
        if shared:
            break
    one, other = (world.names[r] for r in shared[0][:2])
    engine = FastEngine(world)
    engine.reset()
    answer = engine.step(f"go to {one}")
    assert f"go to {other}" not in answer.admissible_commands
    assert {f"examine {one}", f"examine {other}"} <= set(answer.admissible_commands)
    facing = engine.step("look").feedback
    assert f"{one}" in facing
    assert f"{other}" in facing


def test_cooling_needs_no_open_fridge_and_shows_when_examined():
    plan = plan_of(COOL)
    carried = [c for c in plan if not c.startswith("open fridge")]
    engine = FastEngine(compiled(games.generate(COOL)))
    engine.reset()
    cooled = ""
    for command in carried:
        answer = engine.step(command)
        if command.startswith("cool "):
            cooled = " ".join(command.split()[1:3])
            assert not any(fact[0] == "opened" and "fridge" in fact[1] for fact in answer.facts)
            assert engine.step(f"examine {cooled}").feedback == f"This is a cold {cooled}."
            break
    assert cooled


def test_a_lamp_is_always_turned_on():
    *way, use = plan_of(LOOK)
    assert use.startswith("use desklamp")
    answers = play(LOOK, *way, use, use)
    assert answers[-1].feedback == answers[-2].feedback == "You turn on the desklamp 1."
    assert answers[-1].won


def test_taking_and_putting_back_restores_every_fact():
    take = next(c for c in plan_of(COOL) if c.startswith("take "))
    thing, place = take.removeprefix("take ").split(" from ")
    way = [f"go to {place}"]
    answers = play(COOL, *way)
    if f"open {place}" in answers[-1].admissible_commands:
        way.append(f"open {place}")
    put = f"move {thing} to {place}"
    *_, back, look = play(COOL, *way, take, put, "look")
    assert back.facts == play(COOL, *way)[-1].facts
    assert look.feedback == f"You are facing the {place}. Next to it, you see nothing."


def test_engines_of_one_game_share_what_is_compiled_but_not_their_state():
    game = games.generate(COOL)
    one, other = FastEngine(compiled(game)), FastEngine(compiled(game))
    assert one.game is other.game
    first = other.reset()
    one.reset()
    for command in plan_of(COOL):
        one.step(command)
    assert other.step("look").facts == first.facts
    assert one.reset() == first


@pytest.mark.parametrize("copied", [deepcopy, lambda engine: pickle.loads(pickle.dumps(engine))])
@pytest.mark.parametrize("task_type", games.TASK_TYPES)
def test_a_copy_answers_every_command_alike_and_leaves_the_original_alone(copied, task_type):
    task_id = games.task_ids("train", "small", [task_type])[0]
    engine = FastEngine(compiled(games.generate(task_id)))
    now, played = engine.reset(), []
    for chosen in plan_of(task_id):
        for command in now.admissible_commands:
            assert copied(engine).step(command) == play(task_id, *played, command)[-1]
        assert engine.step("") == replace(now, feedback=NOTHING_HAPPENS)
        now = engine.step(chosen)
        played.append(chosen)
    assert now == play(task_id, *played)[-1]


def test_a_deep_copy_shares_what_is_compiled():
    engine = FastEngine(compiled(games.generate(COOL)))
    engine.reset()
    assert deepcopy(engine).game is engine.game


def test_the_older_wording_is_detected_per_game():
    game = games.generate(COOL)
    old = in_old_words(game)
    engine = FastEngine(compiled(old))
    assert "help" not in engine.reset().admissible_commands
    plan = shortest_plan(compiled(old), old.task_type, old.params)
    assert plan[-1].startswith("put ")
    assert " in/on " in plan[-1]
    answers = [engine.step(command) for command in plan]
    assert answers[-1].won
    assert (
        answers[-1].feedback
        == f"You put the {plan[-1].removeprefix('put ').replace(' in/on ', ' in/on the ')}."
    )
    assert answers[0].feedback.startswith("You arrive at loc ")


def test_a_plain_help_text_is_read_too():
    engine = FastEngine(compiled(with_plain_help(games.generate(COOL))))
    engine.reset()
    assert engine.step("help").feedback == "Available commands:\n  look\n"


@pytest.mark.parametrize(
    ("field", "old", "new"),
    [
        ("grammar", "You open the", "You unlock the"),
        ("grammar", "You move the {o.name} to", "You put the {o.name} in/on"),
        ("grammar", "Your task is to: ", "Do: "),
        ("pddl_domain", "(isHot ?o)\n                (not (isCool ?o))", "(isHot ?o)"),
        ("pddl_problem", "(:goal\n            (and", "(:goal\n            (or"),
        ("pddl_problem", "(atLocation agent1", "(wasLocation agent1"),
        ("pddl_problem", "(:init", "(:unit"),
    ],
)
def test_a_game_of_an_unknown_version_is_refused(field, old, new):
    game = games.generate(COOL)
    text = getattr(game, field)
    assert old in text
    with pytest.raises(UnsupportedGame):
        compiled(replace(game, **{field: text.replace(old, new)}))


TRANSCRIPT = [
    "-= Welcome to TextWorld, ALFRED! =-\n\n"
    "You are in the middle of a room. Looking quickly around you, you see a fridge 1, "
    "a garbagecan 1, a microwave 1, and a sinkbasin 1.\n\n"
    "Your task is to: cool some potato and put it in microwave.",
    "You arrive at sinkbasin 1. On the sinkbasin 1, you see a lettuce 1, and a potato 1.",
    "You pick up the potato 1 from the sinkbasin 1.",
    "You arrive at fridge 1. The fridge 1 is closed.",
    "You cool the potato 1 using the fridge 1.",
    "You arrive at microwave 1. The microwave 1 is closed.",
    "You open the microwave 1. The microwave 1 is open. In it, you see a apple 1.",
    "You move the potato 1 to the microwave 1.",
]
