import functools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from milegpo_envs.alfworld import games
from milegpo_envs.alfworld.commands import (
    AMBIGUOUS,
    NOT_ADMISSIBLE,
    NOT_TEXT,
    read_leniently,
    read_strict,
)
from milegpo_envs.alfworld.compiled import compiled
from milegpo_envs.alfworld.fast_engine import FastEngine
from milegpo_envs.alfworld.old_wordings import in_old_words
from milegpo_envs.alfworld.parity import walk

ADMISSIBLE = (
    "examine mug 2",
    "go to cabinet 1",
    "go to cabinet 2",
    "go to fridge 1",
    "inventory",
    "look",
    "move mug 2 to countertop 1",
    "use desklamp 1",
)


@pytest.mark.parametrize("read", [read_strict, read_leniently])
@pytest.mark.parametrize("command", ADMISSIBLE)
def test_an_admissible_command_is_itself(read, command):
    assert read(f"  {command}\n", ADMISSIBLE).command == command


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("put mug 2 in/on countertop 1", "move mug 2 to countertop 1"),
        ("Place the mug two on countertop1.", "move mug 2 to countertop 1"),
        ("walk to cabinet one", "go to cabinet 1"),
        ("go to the fridge", "go to fridge 1"),
        ("turn on the desklamp", "use desklamp 1"),
        ("look around", "look"),
        ("inspect mug", "examine mug 2"),
        ("GO TO CABINET 2", "go to cabinet 2"),
        ("move mug to countertop 1", "move mug 2 to countertop 1"),
        ("put mug 2 in to the countertop", "move mug 2 to countertop 1"),
        ("put mug 2 down on countertop 1", "move mug 2 to countertop 1"),
        ("turn desklamp on", "use desklamp 1"),
        ("move to fridge 1", "go to fridge 1"),
        ("go to cabinet 02", "go to cabinet 2"),
        ("check inventory", "inventory"),
    ],
)
def test_other_wordings_are_understood_only_where_asked(said, meant):
    assert read_leniently(said, ADMISSIBLE).command == meant
    assert read_strict(said, ADMISSIBLE).problem == NOT_ADMISSIBLE


def test_what_fits_two_commands_is_ambiguous():
    assert read_leniently("go to cabinet", ADMISSIBLE).problem == AMBIGUOUS
    cupboards = (
        "take mug 1 from cabinet 1",
        "take mug 1 from cabinet 2",
        "take mug 2 from shelf 1",
    )
    assert read_leniently("take mug from cabinet 1", cupboards).command == cupboards[0]
    assert read_leniently("take mug 1 from cabinet", cupboards).problem == AMBIGUOUS


def test_an_exact_match_wins_over_every_reading():
    lamps = ("use desklamp 1", "turn on desklamp 1")
    assert [read_leniently(lamp, lamps).command for lamp in lamps] == list(lamps)
    assert read_leniently("switch on desklamp 1", lamps).problem == AMBIGUOUS


@pytest.mark.parametrize(
    "said",
    [
        *("", "go to cabinet 3", "take mug 2 from fridge 1", "mug", "the", "go", "examine"),
        *("turn off desklamp 1", "close desklamp 1", "go to cabinet 1 2", "go to cabinet twelve"),
        *("move mug 1 to countertop", "not go to fridge 1", "go to fridge 1 and look"),
    ],
)
def test_what_fits_none_is_not_admissible(said):
    assert read_leniently(said, ADMISSIBLE).problem == NOT_ADMISSIBLE


@pytest.mark.parametrize("action", [None, 3, b"look", ["look"]])
def test_only_text_is_read(action):
    assert read_leniently(action, ADMISSIBLE).problem == NOT_TEXT


@given(st.text())
def test_any_text_is_answered_with_an_admissible_command_or_a_problem(text):
    read = read_leniently(text, ADMISSIBLE)
    assert (read.command in ADMISSIBLE) != (read.problem is not None)


# What people and models write for a verb, by the verb of an admissible command.
SAID = {
    "go to": ("go to", "walk to", "go", "move to", "Go to", "head to", "goto", "visit"),
    "take": ("take", "pick up", "get", "grab", "pick", "Take"),
    "move": ("move", "put", "place", "insert", "drop", "put down"),
    "put": ("put", "move", "place", "insert", "drop", "put down"),
    "use": ("use", "turn on", "toggle", "switch on", "activate"),
    "examine": ("examine", "look at", "inspect", "check"),
    "open": ("open", "Open"),
    "close": ("close", "shut"),
    "clean": ("clean", "wash", "rinse"),
    "heat": ("heat", "warm"),
    "cool": ("cool", "chill"),
    "slice": ("slice", "cut"),
}
JOINED = {
    "to": ("to", "in", "on", "in/on", "into", "onto", "inside", "down on"),
    "in/on": ("to", "in", "on", "in/on", "into", "onto", "inside", "down on"),
    "from": ("from", "out of", "off", "up from"),
    "with": ("with", "using"),
}
WRITTEN = (
    *("", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"),
    *("twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
    *("twenty", "twenty-one", "twenty two", "twenty-three"),
)


@functools.cache
def met(size, each):
    """Lists of admissible commands along walks through games, in both wordings."""
    lists = set()
    for task_type in games.TASK_TYPES:
        for id in games.task_ids("train", size, [task_type])[:each]:
            for game in (games.generate(id), in_old_words(games.generate(id))):
                for _, [now] in walk([FastEngine(compiled(game))], f"said/{id}", 30, 0.6):
                    lists.add(now.admissible_commands)
    return sorted(lists)


@pytest.mark.parametrize("size", games.SIZES)
def test_no_two_commands_of_a_game_read_alike(size):
    for admissible in met(size, 2):
        for command in admissible:
            assert read_leniently(f"{command}.", admissible).command == command


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_every_wording_means_its_command(data):
    admissible = data.draw(st.sampled_from(met("full", 1)))
    command = data.draw(st.sampled_from(admissible))
    verb = next((verb for verb in SAID if command.startswith(f"{verb} ")), command)
    said = data.draw(st.sampled_from(SAID.get(verb, (verb, verb.upper()))))
    for word in command.removeprefix(verb).split():
        if word in JOINED:
            said += f" {data.draw(st.sampled_from(JOINED[word]))}"
        elif word.isdigit():
            said += data.draw(st.sampled_from((f" {word}", word, f" {WRITTEN[int(word)]}")))
        else:
            article = data.draw(st.sampled_from(("", "the ", "a ", "The ")))
            said += f" {article}{word}"
    said += data.draw(st.sampled_from(("", ".", "!", " ")))
    assert read_leniently(said, admissible).command == command, said
    if said.strip() != command:
        assert read_strict(said, admissible).command is None


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_a_command_without_numbers_is_read_only_where_one_fits(data):
    admissible = data.draw(st.sampled_from(met("full", 1)))
    command = data.draw(st.sampled_from([c for c in admissible if any(map(str.isdigit, c))]))

    def bare(text):
        return [word for word in text.split() if not word.isdigit()]

    alike = [other for other in admissible if bare(other) == bare(command)]
    read = read_leniently(" ".join(bare(command)), admissible)
    assert read.command == (command if len(alike) == 1 else None)
    assert read.problem == (None if len(alike) == 1 else AMBIGUOUS)


@given(st.data(), st.integers(min_value=1, max_value=60))
@settings(max_examples=200, deadline=None)
def test_another_number_is_another_command_or_none(data, number):
    admissible = data.draw(st.sampled_from(met("full", 1)))
    command = data.draw(st.sampled_from([c for c in admissible if any(map(str.isdigit, c))]))
    words = command.split()
    place = data.draw(st.sampled_from([i for i, word in enumerate(words) if word.isdigit()]))
    words[place] = str(number)
    other = " ".join(words)
    read = read_leniently(other.replace("go to ", "walk to the "), admissible)
    assert read.command == (other if other in admissible else None)
