import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from milegpo_envs.alfworld import games, index
from milegpo_envs.alfworld.folder import write_game
from milegpo_envs.alfworld.index import index_folder

TASKS = games.task_ids("train", "small")
MANY = 70  # more than are worth keeping


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    data = tmp_path_factory.mktemp("data")
    for task in TASKS[:MANY]:
        write_game(data, "train", games.generate(task))
    root = data / "json_2.1.1" / "train"
    long_ago = 1_600_000_000
    for path in root.rglob("*.*"):
        os.utime(path, (long_ago, long_ago))
    return root


@pytest.fixture
def settled(monkeypatch):
    """Files written a moment ago count as settled, as they do two seconds later."""
    monkeypatch.setattr(index, "_SETTLED", -60.0)


@pytest.fixture
def reads(monkeypatch):
    """The games that are read."""
    seen = []
    judge = index.judge
    monkeypatch.setattr(index, "judge", lambda root, id: seen.append(id) or judge(root, id))
    return seen


def test_an_index_is_built_once_and_then_looked_up(written, tmp_path, settled, reads):
    built = index_folder(written, cache=tmp_path)
    assert len(reads) == MANY
    assert index_folder(written, cache=tmp_path) == built
    assert len(reads) == MANY
    assert list(built.entries) == sorted(built.entries)
    assert built.releases == {"0.4.2": MANY}


def test_one_changed_game_costs_one_reading(written, tmp_path, settled, reads):
    built = index_folder(written, cache=tmp_path)
    reads.clear()
    [path] = (written / next(iter(built.task_types))).glob("game*")
    text = path.read_text()
    try:
        path.write_text(text.replace("true", "fals"))  # the same size
        changed = index_folder(written, cache=tmp_path)
        assert reads == [next(iter(built.task_types))]
        assert changed.skipped == {"unreadable game file": 1}
        assert changed.digest != built.digest
    finally:
        path.write_text(text)
    assert index_folder(written, cache=tmp_path).digest == built.digest


def test_files_still_changing_are_read_again(written, tmp_path, reads, monkeypatch):
    monkeypatch.setattr(index, "_SETTLED", 1e6)
    index_folder(written, cache=tmp_path)
    index_folder(written, cache=tmp_path)
    assert len(reads) == 2 * MANY


def test_removed_games_leave_the_index(written, tmp_path, settled):
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-r", written, copy], check=True)
    built = index_folder(copy, cache=tmp_path)
    gone = next(iter(built.task_types))
    for path in (copy / gone).iterdir():
        path.unlink()
    left = index_folder(copy, cache=tmp_path)
    assert len(left.task_types) == MANY - 1
    assert gone not in left.entries


def test_a_digest_is_of_the_contents_not_of_place_or_time(written, tmp_path):
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-r", written, copy], check=True)
    assert index_folder(copy, cache=tmp_path).digest == index_folder(written).digest


@pytest.mark.parametrize("damage", [b"", b"{", b"1 0123456789abcdef\n{}", b"\xff\xfe\n", None])
def test_a_damaged_cache_is_made_anew(written, tmp_path, settled, reads, damage):
    built = index_folder(written, cache=tmp_path)
    [file] = tmp_path.iterdir()
    good = file.read_bytes()
    file.write_bytes(good.replace(b"0.4.2", b"0.4.3", 1) if damage is None else damage)
    assert index_folder(written, cache=tmp_path) == built
    assert len(reads) == 2 * MANY
    assert file.read_bytes() == good


def test_without_a_place_to_keep_it_the_index_is_built_each_time(written, tmp_path, caplog):
    (tmp_path / "file").write_text("")
    assert len(index_folder(written, cache=tmp_path / "file" / "below").task_types) == MANY
    assert "cannot be kept" in caplog.text


def test_builders_side_by_side_leave_a_whole_cache(written, tmp_path, settled):
    with ThreadPoolExecutor(6) as threads:
        built = list(threads.map(lambda _: index_folder(written, cache=tmp_path), range(6)))
    assert all(listing == built[0] for listing in built)
    [file] = tmp_path.iterdir()
    assert len(index._load(file)) == MANY


def test_a_small_folder_leaves_no_cache(tmp_path):
    write_game(tmp_path / "data", "train", games.generate(TASKS[0]))
    assert index_folder(tmp_path / "data", cache=tmp_path / "cache").releases == {"0.4.2": 1}
    assert not (tmp_path / "cache").exists()


def test_workers_find_what_one_process_finds_and_tell_their_progress(written, tmp_path):
    seen = []
    found = index_folder(written, lambda *a: seen.append(a), tmp_path / "a", workers=3)
    assert found == index_folder(written, cache=tmp_path / "b", workers=1)
    assert [done for done, _, _ in seen] == list(range(1, MANY + 1))
    assert {total for _, total, _ in seen} == {MANY}


def test_games_of_a_worker_that_died_are_read_here(written, tmp_path, monkeypatch, reads):
    monkeypatch.setattr(index, "_WORKER", "import os; os._exit(3)")
    assert len(index_folder(written, cache=tmp_path, workers=2).task_types) == MANY
    assert len(reads) == MANY


def test_an_index_can_be_built_by_a_program_without_a_main_guard(written, tmp_path):
    script = (
        "import sys\nfrom pathlib import Path\n"
        "from milegpo_envs.alfworld.index import index_folder\nprint('once')\n"
        "found = index_folder(Path(sys.argv[1]), cache=Path(sys.argv[2]), workers=2)\n"
        "print(len(found.task_types))\n"
    )
    (tmp_path / "script.py").write_text(script)
    env = {**os.environ, "PYTHONPATH": os.getcwd()}
    for number, how in enumerate((["-c", script], [str(tmp_path / "script.py")])):
        out = subprocess.run(
            [sys.executable, *how, str(written), str(tmp_path / f"cache{number}")],
            env=env,
            capture_output=True,
            text=True,
            check=True,
        )
        assert out.stdout.split() == ["once", str(MANY)]


def test_every_wording_is_told_apart(tmp_path):
    from milegpo_envs.alfworld.old_wordings import in_old_words, with_plain_help

    game = games.generate(TASKS[0])
    for number, other in enumerate((game, in_old_words(game), with_plain_help(game))):
        write_game(tmp_path / str(number), "train", other)
    write_game(tmp_path / "3", "train", game)
    [path] = (tmp_path / "3").rglob("game.tw-pddl")
    raw = json.loads(path.read_text())
    path.write_text(
        json.dumps(raw | {"grammar": raw["grammar"].replace("not carrying", "free of")})
    )
    found = index_folder(tmp_path)
    assert [entry.release for entry in found.entries.values()] == [
        "0.4.2",
        "2.1.1",
        "2.1.2",
        "unknown",
    ]


def test_contents_that_no_parser_likes_are_reasons(tmp_path):
    contents = (
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"pddl_domain": 1, "grammar": 2, "pddl_problem": 3, "solvable": true}',
    )
    for number, content in enumerate(contents):
        folder = write_game(tmp_path, "train", games.generate(TASKS[number]))
        (folder / "game.tw-pddl").write_bytes(content)
    folder = write_game(tmp_path, "train", games.generate(TASKS[9]))
    (folder / "game.tw-pddl").unlink()
    (folder / "game.tw-pddl").symlink_to("nowhere")
    found = index_folder(tmp_path)
    assert found.task_types == {}
    assert found.skipped == {"no game file": 1, "unreadable game file": 3}


@pytest.mark.parametrize(
    "lost", ["task_type", "pddl_params", "scene", ("pddl_params", "toggle_target")]
)
def test_a_game_whose_task_cannot_be_read_whole_is_left_out_of_the_index(lost, tmp_path):
    kept = write_game(tmp_path, "train", games.generate(TASKS[0]))
    folder = write_game(tmp_path, "train", games.generate(TASKS[1]))
    raw = json.loads((folder / "traj_data.json").read_text())
    *way, last = (lost,) if isinstance(lost, str) else lost
    inner = raw[way[0]] if way else raw
    del inner[last]
    (folder / "traj_data.json").write_text(json.dumps(raw))
    found = index_folder(tmp_path)
    assert found.skipped == {"unreadable traj_data.json": 1}
    [listed] = found.task_types
    assert tmp_path / listed == kept
