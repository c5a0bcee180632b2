import argparse
import io
import zipfile

import gymnasium as gym
import pytest

import milegpo_envs  # noqa: F401  # registers the environments
from milegpo_envs.alfworld import download, folder, games
from milegpo_envs.alfworld.folder import write_game
from milegpo_envs.alfworld.index import read_folder
from milegpo_envs.alfworld.old_wordings import in_old_words
from milegpo_envs.download import DownloadFailed, RemoteFile, WrongFile
from scripts import download_data
from tests.milegpo_envs.range_server import serving

FEW = dict.fromkeys(games.SPLITS, (1, 0, 1, 0, 0, 0))
NAMES = ("json_2.1.1_json.zip", "json_2.1.1_pddl.zip", "json_2.1.2_tw-pddl.zip")


def zipped(root, suffix):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(root.rglob(f"*{suffix}")):
            archive.write(path, path.relative_to(root).as_posix())
    return out.getvalue()


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    """What a release would be with two games a split."""
    new, old = tmp_path_factory.mktemp("new"), tmp_path_factory.mktemp("old")
    for split in games.SPLITS:
        for kind in ("pick_and_place_simple", "pick_clean_then_place_in_recep"):
            game = games.generate(games.task_ids(split, "small", [kind])[0])
            write_game(new, split, game)
            write_game(old, split, in_old_words(game))
    return {
        "json_2.1.1_json.zip": zipped(new, "traj_data.json"),
        "json_2.1.1_pddl.zip": zipped(new, "initial_state.pddl"),
        "json_2.1.2_tw-pddl.zip": zipped(new, "game.tw-pddl"),
        "json_2.1.1_tw-pddl.zip": zipped(old, "game.tw-pddl"),
    }


@pytest.fixture
def site(archives, monkeypatch):
    with serving(dict(archives)) as site:

        def remote(name):
            return RemoteFile(f"{site.url}/{name}")

        monkeypatch.setattr(download, "ARCHIVES", tuple(map(remote, NAMES[:2])))
        monkeypatch.setattr(
            download,
            "GAMES",
            {"2.1.2": remote(NAMES[2]), "2.1.1": remote("json_2.1.1_tw-pddl.zip")},
        )
        for module in (download, folder):
            monkeypatch.setattr(module, "COUNTS", FEW)
        read_folder.cache_clear()
        yield site
        read_folder.cache_clear()


def run(to, *options):
    parser = argparse.ArgumentParser()
    download.add_options(parser)
    return download.run(parser.parse_args(["--to", str(to), *options]), lambda *_: None)


def test_a_release_is_downloaded_counted_and_played(site, tmp_path, capsys):
    download_data.main(["alfworld", "--to", str(tmp_path / "data")])
    out = capsys.readouterr().out
    assert "valid_unseen" in out
    assert "2 of 0.4.2" in out
    assert len(site.seen) == 3
    for split in games.SPLITS:
        env = gym.make("milegpo/ALFWorld-v0", data=tmp_path / "data", split=split)
        assert env.unwrapped.source == "official"
        assert str(env.unwrapped.coverage) == "2/2"
        assert "Your task is to" in env.reset(seed=0)[0]
    assert sorted(p.name for p in (tmp_path / "data" / "logic").iterdir()) == [
        "alfred.pddl",
        "alfred.twl2",
    ]
    assert [p.name for p in (tmp_path / "data" / "downloads").iterdir()] == ["downloads.json"]


def test_what_is_complete_is_not_downloaded_again(site, tmp_path):
    run(tmp_path)
    assert "Nothing was downloaded" in run(tmp_path).notes[0]
    assert len(site.seen) == 3
    run(tmp_path, "--force")
    assert len(site.seen) == 6


def test_the_older_wording_replaces_the_newer(site, tmp_path):
    run(tmp_path)
    report = run(tmp_path, "--release", "2.1.1")
    assert [row[3] for row in report.rows] == ["2 of 2.1.1"] * 3
    env = gym.make("milegpo/ALFWorld-v0", data=tmp_path)
    env.reset(seed=0)
    assert env.unwrapped.game.grammar.count("in/on")


def test_files_copied_by_hand_serve_without_a_network(archives, site, tmp_path):
    (tmp_path / "zips").mkdir()
    for name in NAMES[:2]:
        (tmp_path / "zips" / name).write_bytes(archives[name])
    with pytest.raises(DownloadFailed, match=r"json_2\.1\.2_tw-pddl\.zip and put it there"):
        run(tmp_path / "data", "--source", str(tmp_path / "zips"))
    (tmp_path / "zips" / NAMES[2]).write_bytes(archives[NAMES[2]])
    run(tmp_path / "data", "--source", str(tmp_path / "zips"))
    assert site.seen == []
    assert len(list((tmp_path / "zips").iterdir())) == 3


def test_a_mirror_serves_files_under_their_names(archives, tmp_path, site):
    with serving(dict(archives)) as mirror:
        run(tmp_path, "--source", mirror.url)
    assert len(mirror.seen) == 3
    assert site.seen == []


def test_another_file_is_refused_and_the_first_download_remembered(site, tmp_path, monkeypatch):
    wrong = RemoteFile(f"{site.url}/{NAMES[0]}", "0" * 64)
    monkeypatch.setattr(download, "ARCHIVES", (wrong, download.ARCHIVES[1]))
    with pytest.raises(WrongFile, match="--other-checksums"):
        run(tmp_path)
    run(tmp_path, "--other-checksums")
    site.files[NAMES[0]] += b"x"
    with pytest.raises(WrongFile, match="SHA-256"):
        run(tmp_path, "--other-checksums", "--force")


def test_missing_games_are_an_error_that_counts_them(archives, site, tmp_path):
    whole = zipfile.ZipFile(io.BytesIO(archives[NAMES[2]]))
    less = io.BytesIO()
    with zipfile.ZipFile(less, "w") as archive:
        for member in whole.namelist()[1:]:
            archive.writestr(member, whole.read(member))
    site.files[NAMES[2]] = less.getvalue()
    with pytest.raises(DownloadFailed, match=r"train 1 of 2 \(1 no game file\)"):
        run(tmp_path)


def test_an_interrupted_run_is_made_good_by_the_next(archives, site, tmp_path):
    site.files[NAMES[2]] = archives[NAMES[2]][:-40]
    with pytest.raises(DownloadFailed, match="damaged"):
        run(tmp_path)
    (tmp_path / "downloads" / NAMES[2]).unlink()
    site.files[NAMES[2]] = archives[NAMES[2]]
    run(tmp_path)
    assert len(site.seen) == 4  # the first two archives were still there


def test_the_script_says_what_is_wrong_in_a_line(site, tmp_path):
    site.status = 404
    with pytest.raises(SystemExit, match="404"):
        download_data.main(["alfworld", "--to", str(tmp_path)])


def test_known_checksums_are_whole():
    for archive in (*download.ARCHIVES, *download.GAMES.values()):
        assert len(bytes.fromhex(archive.sha256)) == 32
        assert 30e6 < archive.size < 80e6
    assert {a.name for a in (*download.ARCHIVES, download.GAMES["2.1.2"])} == set(NAMES)


def test_the_folder_is_the_one_alfworld_looks_in(monkeypatch, tmp_path):
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path / "x"))
    assert download.default_folder() == tmp_path / "x"
    monkeypatch.delenv("ALFWORLD_DATA")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert download.default_folder() == tmp_path / ".cache" / "alfworld"
    assert list(tmp_path.iterdir()) == []
