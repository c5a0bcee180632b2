import itertools

import pytest

from milegpo_envs.sokoban import generator
from milegpo_envs.sokoban.board import MOVES, Position
from milegpo_envs.sokoban.notation import for_prompt, from_prompt, read_rows, rows_of
from milegpo_envs.sokoban.solver import Distances
from tests.milegpo_envs.sokoban.boards import board, play


def rows_after(text, moves):
    room, position = board(text)
    return "/".join(rows_of(room, play(room, position, moves)))


@pytest.mark.parametrize(
    ("before", "moves", "after"),
    [
        ("######/#@ $.#/######", "r", "######/# @$.#/######"),  # a step
        ("######/#@ $.#/######", "rr", "######/#  @*#/######"),  # a push onto a target
        ("######/#@ $.#/######", "rrr", "######/#  @*#/######"),  # no push into a wall
        ("######/#@$$.#/######", "r", "######/#@$$.#/######"),  # no push of two boxes
        ("######/#@ $.#/######", "ludl", "######/#@ $.#/######"),  # no step into a wall
        ("######/#@*. #/######", "r", "######/# +* #/######"),  # off one target, onto the next
        ("######/# .@$#/######", "l", "######/# + $#/######"),  # a player on a target
        ("######/#$@ .#/######", "r", "######/#$ @.#/######"),  # no pulling
        ("#####/#.  #/# $ #/# @ #/#####", "u", "#####/#.$ #/# @ #/#   #/#####"),
    ],
)
def test_moves(before, moves, after):
    assert rows_after(before, moves) == after


def test_a_level_is_solved_when_every_box_is_on_a_target():
    room, position = board("#######/#@$. *#/#######")
    assert not room.solved(position)
    assert room.solved(play(room, position, "r"))


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("######/#@  $#/#   .#/#    #/######", True),  # in a corner
        ("######/#@  *#/#  $.#/#    #/######", False),  # in a corner, on a target
        ("######/#@ $ #/# .  #/#    #/######", True),  # along a wall without a target
        ("######/#@ $ #/#   .#/#    #/######", True),  # the same: it cannot leave the top row
        ("######/#@$ .#/#    #/#    #/######", False),  # along a wall with one
        # Two boxes side by side along a wall hold each other, and so do four in a square.
        ("#######/#@ $$ #/#     #/# . . #/#     #/#######", True),
        ("########/#@     #/#  $$  #/#  $$  #/#......#/########", True),
        ("########/#@     #/#  $   #/#   $  #/#.    .#/########", False),
    ],
)
def test_deadlocks_by_rule(text, lost):
    room, position = board(text)
    assert room.deadlocked(position) is lost


@pytest.mark.parametrize("boxes", [1, 2, 3])
def test_a_rule_never_calls_a_position_lost_that_can_be_solved(boxes):
    known = 0
    for number in range(4):
        room = generator.generate((6, 6), boxes, "train", number).room
        exact = Distances(room)
        for cells in itertools.combinations(room.floor, boxes):
            mask = sum(1 << c for c in cells)
            if room.deadlocked(Position(0, mask)):
                known += 1
                players = [c for c in room.floor if c not in cells]
                assert all(exact.moves(Position(c, mask)) is None for c in players)
    assert known > 10


def test_every_move_is_a_step_a_push_or_nothing():
    room, start = board("#######/#. $  #/#  @$ #/# .   #/#######")
    seen, queue = {start}, [start]
    for position in queue:
        for move in MOVES:
            then = room.after(position, move)
            assert then.boxes.bit_count() == 2
            assert not room.walls & (then.boxes | 1 << then.player)
            assert not then.boxes >> then.player & 1
            if then not in seen:
                seen.add(then)
                queue.append(then)
    assert len(seen) > 500


def test_text_is_read_back():
    rows = ["#######", "#. $ +#", "#  *  #", "#######"]
    room, position = read_rows(rows)
    assert rows_of(room, position) == rows
    assert for_prompt(rows[1:2]) == " # \t O \t _ \t X \t _ \t S \t # \t"
    assert from_prompt(for_prompt(rows)) == rows


@pytest.mark.parametrize("rows", [[], [""], ["###", "##"], ["#x@"], ["###"], ["#@@"]])
def test_other_text_is_refused(rows):
    with pytest.raises(ValueError, match="board"):
        read_rows(rows)
