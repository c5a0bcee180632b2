import argparse
import json

import pytest

from milegpo_envs.download import DownloadFailed, WrongFile
from milegpo_envs.webshop import download
from milegpo_envs.webshop.generated import write_official
from milegpo_envs.webshop.official import FILES
from milegpo_envs.webshop.text_env import WebShopEnv


def quiet(done, total, what):
    pass


def options(*arguments):
    parser = argparse.ArgumentParser()
    download.add_options(parser)
    return parser.parse_args(arguments)


def test_every_file_has_a_published_checksum():
    names = {name for files in FILES.values() for name in files.names}
    assert names == set(download.PUBLISHED)


def test_a_folder_of_files_works_and_says_that_they_are_others(tmp_path, monkeypatch):
    write_official(tmp_path / "here", 20)
    monkeypatch.setattr("milegpo_envs.webshop.download.tag_titles", lambda *_: None)
    chosen = options(
        "--to", str(tmp_path / "to"), "--source", str(tmp_path / "here"), "--other-checksums"
    )
    report = download.run(chosen, quiet)
    assert {row[3] for row in report.rows[:3]} == {"another version"}
    assert report.rows[3][:2] == ("products", 20)
    assert download.run(chosen, quiet) == report


def test_files_other_than_published_are_refused(tmp_path):
    write_official(tmp_path / "here", 20)
    with pytest.raises(WrongFile, match=r"items_shuffle_1000.*--other-checksums"):
        download.run(
            options("--to", str(tmp_path / "to"), "--source", str(tmp_path / "here")), quiet
        )
    assert not (tmp_path / "to").exists()


def test_the_second_mirror_serves_where_the_first_does_not(tmp_path, monkeypatch):
    asked = []

    def fetch(file, folder, advance):
        asked.append(file.url)
        if file.url.startswith(download.MIRRORS[0]):
            raise DownloadFailed("gone")
        return folder / file.name

    monkeypatch.setattr(download, "fetch", fetch)
    found = download.obtain("items_ins_v2.json", tmp_path, None, False, quiet)
    assert found == tmp_path / "items_ins_v2.json"
    assert asked == [f"{mirror}/items_ins_v2.json" for mirror in download.MIRRORS]


def test_no_mirror_at_all_is_said_once(tmp_path, monkeypatch):
    def fetch(file, folder, advance):
        raise DownloadFailed(f"no {file.url}.")

    monkeypatch.setattr(download, "fetch", fetch)
    with pytest.raises(DownloadFailed, match=r"YWZBrandon.*HongbangYuan"):
        download.obtain("items_ins_v2.json", tmp_path, None, False, quiet)


def test_other_files_that_are_in_the_folder_already_are_refused_by_the_same_words(tmp_path):
    write_official(tmp_path, 20)
    with pytest.raises(WrongFile, match=r"items_shuffle_1000.*--other-checksums"):
        download.run(options("--to", str(tmp_path)), quiet)


def test_products_read_with_a_flag_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr("milegpo_envs.webshop.download.tag_titles", lambda *_: None)
    write_official(tmp_path, 20)
    path = tmp_path / "items_shuffle_1000.json"
    products = json.loads(path.read_text())
    products[0]["pricing"] = "Currently unavailable"
    products[1]["pricing"] = products[2]["pricing"] = 9.5
    products[3]["customization_options"] = {"Size": [{"value": 7}]}
    path.write_text(json.dumps(products))
    report = download.run(options("--to", str(tmp_path), "--other-checksums"), quiet)
    assert "Products read with a flag: 3 for their price, 1 for their options." in report.notes
    env = WebShopEnv(tmp_path)
    for task in range(len(env.task_ids())):
        env.reset(options={"task": task})
