import pytest

from milegpo_envs.sokoban import generator, solver
from milegpo_envs.sokoban.board import MOVES
from milegpo_envs.sokoban.solver import Distances, TooLarge, distance, plan
from tests.milegpo_envs.sokoban.boards import board


def forward(room, start):
    """Fewest moves to a solution, by brute force from the front."""
    seen, layer, moves = {start}, [start], 0
    while layer:
        if any(room.solved(p) for p in layer):
            return moves
        layer = [p for p in {room.after(p, m) for p in layer for m in MOVES} if p not in seen]
        seen.update(layer)
        moves += 1
    return None


@pytest.mark.parametrize(
    ("text", "moves", "pushes"),
    [
        ("######/#@ $.#/######", 2, 1),
        ("######/#@$ .#/######", 2, 2),
        ("######/#  @*#/######", 0, 0),
        ("######/#$@ .#/######", None, None),
        ("######/#    #/#.$@ #/#    #/######", 1, 1),
        ("######/#    #/# @$.#/#    #/######", 1, 1),
        ("######/#    #/#@$ .#/#    #/######", 2, 2),
        # Under the box, up, and a push to the left.
        ("######/#    #/#.$ #/#@   #/######", 4, 1),
    ],
)
def test_distances_counted_by_hand(text, moves, pushes):
    room, position = board(text)
    assert distance(room, position, "moves") == moves
    assert distance(room, position, "pushes") == pushes


@pytest.mark.parametrize("boxes", [1, 2])
def test_table_search_and_brute_force_agree(boxes):
    for number in range(25):
        level = generator.generate((6, 6), boxes, "test", number)
        table = Distances(level.room)
        moves = plan(level.room, level.start)
        position, pushes = level.start, 0
        for move in moves:
            assert table.moves(position) is not None
            then = level.room.after(position, move)
            position, pushes = then, pushes + (then.boxes != position.boxes)
        assert level.room.solved(position)
        assert len(moves) == table.moves(level.start) == forward(level.room, level.start)
        fewest = plan(level.room, level.start, by="pushes")
        assert table.pushes(level.start) <= pushes
        assert len(fewest) >= len(moves)
        assert distance(level.room, level.start, "pushes") == table.pushes(level.start)


def test_without_a_table_a_search_says_the_same(monkeypatch):
    levels = [generator.generate((6, 6), 2, "train", n) for n in range(15)]

    def found():
        return [distance(v.room, v.start, by) for v in levels for by in ("pushes", "moves")]

    exact = found()
    monkeypatch.setattr(solver, "TABLE_LIMIT", 0)
    solver.distances.cache_clear()
    assert found() == exact


def test_searching_ends(monkeypatch):
    monkeypatch.setattr(solver, "SEARCH_LIMIT", 50)
    level = generator.generate((10, 10), 3, "train", 0)
    with pytest.raises(TooLarge, match="50"):
        plan(level.room, level.start)
    with pytest.raises(TooLarge):
        Distances(generator.generate((13, 13), 5, "train", 0).room)


def test_the_best_move_leads_one_nearer():
    level = generator.generate((6, 6), 1, "train", 3)
    table, position = Distances(level.room), level.start
    left = table.moves(position)
    while left:
        position = level.room.after(position, table.best_move(position))
        left -= 1
        assert table.moves(position) == left
    assert table.best_move(position) is None


def test_solutions_are_short_by_something_known():
    with pytest.raises(ValueError, match="pushes"):
        plan(*board("######/#@ $.#/######"), by="time")
