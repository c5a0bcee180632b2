import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from milegpo_envs.errors import EnvError, UnknownName
from milegpo_envs.sokoban import generator
from milegpo_envs.sokoban.generator import generate, longest
from milegpo_envs.sokoban.level import SPLITS, NoLevel, split_of
from milegpo_envs.sokoban.levels import COUNTS, GeneratedLevels
from milegpo_envs.sokoban.notation import rows_of
from milegpo_envs.sokoban.solver import Distances, plan
from tests.milegpo_envs.sokoban.boards import board

ROOT = Path(__file__).parents[3]
GOLDEN = ["######", "#   @#", "# #$##", "#   ##", "#  .##", "######"]  # of gen1


def drawn(size=(6, 6), boxes=1, split="train", number=0):
    level = generate(size, boxes, split, number)
    return rows_of(level.room, level.start)


def test_a_thousand_levels_can_all_be_solved_within_the_horizon():
    needed = []
    for number in range(1000):
        level = generate((6, 6), 1, "train", number)
        assert not level.start.boxes & level.room.targets
        needed.append(Distances(level.room).moves(level.start))
    assert None not in needed
    assert max(needed) <= longest((6, 6), 1) == 15
    assert len(set(needed)) > 10


@pytest.mark.parametrize(
    ("size", "boxes"), [((4, 7), 1), ((5, 5), 1), ((6, 6), 3), ((7, 9), 2), ((10, 10), 3)]
)
def test_other_sizes_and_numbers_of_boxes(size, boxes):
    for number in range(5):
        level = generate(size, boxes, "train", number)
        assert (level.room.height, level.room.width) == size
        assert level.start.boxes.bit_count() == level.room.targets.bit_count() == boxes
        moves = plan(level.room, level.start)
        assert 0 < len(moves) <= longest(size, boxes)


def test_the_first_level_is_what_it_was():
    assert drawn() == GOLDEN


def test_a_level_depends_on_its_id_alone():
    first = [drawn(number=n) for n in range(5)]
    random.seed(1)
    np.random.seed(1)  # the point: nothing reads it
    generate.cache_clear()
    state = random.getstate()
    assert [drawn(number=n) for n in reversed(range(5))] == first[::-1]
    assert random.getstate() == state


def test_a_level_is_the_same_in_other_processes():
    code = (
        "from milegpo_envs.sokoban.generator import generate\n"
        "from milegpo_envs.sokoban.notation import rows_of\n"
        "v = generate((6, 6), 1, 'train', 0)\n"
        "print('/'.join(rows_of(v.room, v.start)))"
    )
    for seed in ("0", "7"):
        out = subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert out.stdout.strip("\n") == "/".join(GOLDEN)


def test_however_long_it_tries_a_level_is_the_same():
    with pytest.raises(NoLevel, match="3000 attempts"):
        generate((6, 6), 4, "test", 1, patience=1)
    room = generate((6, 6), 4, "test", 1).room
    assert split_of(room) == "test"
    assert generate((6, 6), 1, "train", 0, patience=1) == generate((6, 6), 1, "train", 0)


def test_attempts_are_fewer_where_each_is_long():
    # 20,000,000 over 6 + 6 - 6 + 4 pulls times 16 cells is more than 3,000 ...
    assert generator.attempts((6, 6), 1) == generator.attempts((10, 10), 3) == 3000
    # ... but over 30 + 30 - 6 + 4 * 391 = 1,618 pulls times 784 cells only 15.
    assert generator.attempts((30, 30), 391) == 15


@pytest.mark.parametrize(
    ("size", "boxes"),
    [((3, 6), 1), ((6, 6), 0), ((6, 6), 8), ((31, 6), 1), ((4, 4), 1), ((5, 5), 4)],
)
def test_an_impossible_request_is_an_error_that_says_so(size, boxes):
    with pytest.raises(NoLevel, match=r"size|holds|attempts") as raised:
        GeneratedLevels(size, boxes, "train")
    assert isinstance(raised.value, EnvError | ValueError)


def test_no_two_splits_share_a_room():
    rooms = {s: {generate((6, 6), 1, s, n).room for n in range(250)} for s in SPLITS}
    assert not (rooms["train"] & rooms["test"] or rooms["train"] & rooms["validation"])
    assert not rooms["validation"] & rooms["test"]
    assert all(split_of(room) == s for s in SPLITS for room in rooms[s])


def test_no_board_of_the_test_panel_is_among_thousands_of_train():
    train = {"".join(drawn(number=n)) for n in range(2000)}
    test = {"".join(drawn(split="test", number=n)) for n in range(COUNTS["test"])}
    assert not train & test
    assert len(test) > 0.95 * COUNTS["test"]


def test_turned_mirrored_and_walled_in_rooms_are_one_room():
    rooms = [
        "######/#@  .#/# # ##/# $###/######",
        "######/#.  @#/## # #/###$ #/######",
        "#####/#@  #/# #$#/#  ##/#.###/#####",
        "########/########/##@  .##/## # ###/## $####/########",
    ]
    splits = {split_of(board(text)[0]) for text in rooms}
    assert len(splits) == 1


def test_ids_outside_the_list_are_refused():
    levels = GeneratedLevels((6, 6), 1, "test")
    assert levels.task_ids[42] == "gen1/6x6/1/test/00042"
    assert levels.level("gen1/6x6/1/test/00042").id == "gen1/6x6/1/test/00042"
    for name in ("gen1/6x6/1/test/00500", "gen1/6x6/1/train/00000", "gen0/6x6/1/test/00000", ""):
        with pytest.raises(UnknownName, match="gen1/6x6/1/test"):
            levels.level(name)
    assert generator.GENERATOR == "gen1"
