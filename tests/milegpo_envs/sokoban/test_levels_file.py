import pytest

from milegpo_envs.errors import DataMissing, EnvError, UnknownName
from milegpo_envs.sokoban.canonical import canonical
from milegpo_envs.sokoban.levels import FileLevels
from milegpo_envs.sokoban.levels_file import FaultyLevels, read_levels
from milegpo_envs.sokoban.notation import rows_of
from milegpo_envs.state import state_id

ONE = ["######", "#@ $.#", "######"]


@pytest.fixture
def read(tmp_path):
    def reading(text):
        file = tmp_path / "mine.txt"
        file.write_text(text, encoding="utf-8")
        return read_levels(file)

    return reading


def rows(level):
    return rows_of(level.room, level.start)


def test_several_levels_with_titles_and_comments(read):
    first, second, third = read(
        "My levels, a collection\n; by somebody\n\n"
        "; First\n######\n#@ $.#\n######\n\n"
        "######\n#@ $.#\n######\nTitle: Second\nAuthor: nobody\n\n"
        "Third\n\n######\n#@ $.#\n######\n"
    )
    assert rows(first) == rows(second) == rows(third) == ONE
    board = state_id(canonical(ONE))[:8]
    assert [v.id for v in (first, second, third)] == [f"mine/{n:04d}/{board}" for n in (1, 2, 3)]
    assert [v.title for v in (first, second, third)] == ["First", "Second", "Third"]


@pytest.mark.parametrize(
    ("text", "titles"),
    [
        ("Title: A\n{0}\nTitle: B\n{0}", ["A", "B"]),
        ("Title: A\n\n{0}Author: me\n\nTitle: B\n\n{0}", ["A", "B"]),
        ("{0}Title: A\nAuthor: me\n\n{0}Title: B\n", ["A", "B"]),
        ("{0}\nTitle: A\n\n{0}\nTitle: B\n", ["A", "B"]),
        ("Title: All of mine\n\n{0}Title: A\n\n{0}Title: B\n", ["A", "B"]),
        ("; All of mine\n\n{0}\nTitle: A\n\n{0}\nTitle: B\n", ["A", "B"]),
        ("; A\n{0}; B\n{0}", ["A", "B"]),
    ],
)
def test_titles_stand_before_or_after_their_levels(read, text, titles):
    assert [v.title for v in read(text.format("######\n#@ $.#\n######\n"))] == titles


@pytest.mark.parametrize("line", ["#1", "# 1", "  ## 12  ", "\n####\n", "\n####\n####\n\n"])
def test_numbered_headings_and_rules_of_walls_are_no_levels(read, line):
    both = read(f"{line}\n######\n#@ $.#\n######\n{line}\n######\n#@ $.#\n######\n{line}")
    assert [rows(level) for level in both] == [ONE, ONE]


@pytest.mark.parametrize(
    "text",
    [
        "######\n#@ $.#\n######",
        "######\r\n#@ $.#\r\n######\r\n",
        "######\n#@-$.#\n######",
        "######\n#@_$.#\n######",
        "  ######   \n  #@ $.#\n  ######",
        "--######--\n--#@-$.#--\n--######--",
        "######\n#p bo#\n######",
        "6#|#@-$.#|6#",
        "6#\n#@-$.#|6#|",
        "2(3#)|#@-$.#|2(##)2#",
        "\ufeff######\n#@ $.#\n######",
        "########\n#@ $.# #\n########",
        "   ######\n####@ $.#\n#  ######\n####",
    ],
)
def test_variants_of_one_level(read, text):
    (level,) = read(text)
    assert rows(level) == ONE


def test_an_uneven_outline_is_filled_with_walls(read):
    (level,) = read("  ####\n###  #\n#@ $.#\n######\n")
    assert rows(level) == ["######", "###  #", "#@ $.#", "######"]


def test_boxes_on_targets_and_a_player_on_one(read):
    (level,) = read("#######\n#+$ *$#\n#.    #\n#######\n")
    assert rows(level) == ["#######", "#+$ *$#", "#.    #", "#######"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("#####\n#.$ #\n#####", r":1: a level has one player .* not 0"),
        ("#####\n#@$.#\n#@  #\n#####", r":3: a level has one player .* not 2"),
        ("#####\n#@$ #\n#####", r":1: as many boxes as targets are needed: 1 and 0"),
        ("#####\n#@  #\n#####", r":1: no box"),
        ("#####\n#@ *#\n#####", r":1: solved before the first move"),
        ("#####\n#@$.\n#####", r":2: the walls around the player have a gap"),
        ("#@$.#\n#####", r":1: the walls around the player have a gap"),
        ("#####\n##X@$.#\n#####", r":2: not a symbol of a level: X"),
        ("#####\n#@ ###\n###$.#\n  ####", r":3: a box or target that the player cannot reach"),
        ("9999#\n#@$.#\n#####", r"at most 100"),
        ("99(99(99(99(#))))\n#@$.#", r"at most 100|symbol"),
        ("nothing here\n", r":1: no level in this file"),
        ("", r":1: no level in this file"),
    ],
)
def test_a_fault_is_named_with_its_line(read, text, said):
    with pytest.raises(FaultyLevels, match=said) as raised:
        read(text)
    assert isinstance(raised.value, EnvError)


def test_all_faults_of_a_file_are_reported_at_once(read):
    with pytest.raises(FaultyLevels) as raised:
        read("; a\n#####\n#.$ #\n#####\n\n#####\n#@$.#\n#####\n\n#####\n#@  #\n#####\n")
    first, second = str(raised.value).split("\n")
    assert "mine.txt:2: " in first
    assert "mine.txt:10: no box" in second


def test_a_missing_file_is_missing_data(tmp_path):
    with pytest.raises(DataMissing, match="levels=None"):
        read_levels(tmp_path / "none.txt")
    with pytest.raises(DataMissing, match="levels=None"):
        read_levels(tmp_path)


def test_a_split_of_a_file_holds_the_levels_whose_rooms_belong_to_it(tmp_path):
    file = tmp_path / "many.txt"
    file.write_text("\n\n".join(f"{n + 4}#\n#@{'-' * n}$.#\n{n + 4}#" for n in range(80)))
    whole = FileLevels(file, None)
    parts = [FileLevels(file, split).task_ids for split in ("train", "validation", "test")]
    assert len(whole.task_ids) == 80
    assert whole.size == (3, 84)
    assert sorted(sum(parts, ())) == sorted(whole.task_ids)
    with pytest.raises(UnknownName, match="many/0001"):
        whole.level("many/0081")
    with pytest.raises(UnknownName, match="validation"):
        FileLevels(file, "dev")


def test_a_split_without_levels_is_missing_data(tmp_path):
    file = tmp_path / "one.txt"
    file.write_text("######\n#@ $.#\n######")
    empty = 0
    for split in ("train", "validation", "test"):
        try:
            FileLevels(file, split)
        except DataMissing:
            empty += 1
    assert empty == 2
