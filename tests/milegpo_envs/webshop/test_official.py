import json
import pickle
import subprocess
import sys

import pytest

from milegpo_envs.errors import DataMissing, UnknownName
from milegpo_envs.webshop.catalogue import load_catalogue
from milegpo_envs.webshop.generated import GeneratedCatalogue, write_official
from milegpo_envs.webshop.official import OfficialCatalogue
from milegpo_envs.webshop.storage import beside, user_cache


@pytest.fixture
def folder(tmp_path):
    write_official(tmp_path, 40)
    return tmp_path


def change(folder, name, edit):
    path = folder / name
    content = json.loads(path.read_text())
    path.write_text(json.dumps(edit(content)))


def test_generated_products_come_back_from_official_files(folder):
    read = OfficialCatalogue(folder, "small")
    assert [read[i] for i in range(len(read))] == list(GeneratedCatalogue(40, None))


def test_products_are_found_by_asin(folder):
    read = OfficialCatalogue(folder, "small")
    for i in range(40):
        assert read.index_of(read[i].asin) == i
        assert read.by_asin(read[i].asin) is read[i]
    for asin in ("", "B0", "B000000000", "é", "x" * 99, "B0\0"):
        assert read.index_of(asin) is None
        assert read.by_asin(asin) is None


def test_what_the_official_loader_leaves_out_is_counted(folder):
    def edit(products):
        odd = [{**products[0], "asin": asin} for asin in ("nan", "", "B" * 11, products[5]["asin"])]
        none = [{**products[0], "asin": float("nan")}, {"name": "Tea"}]
        return [*odd[:3], *none, *products, odd[3]]

    change(folder, "items_shuffle_1000.json", edit)
    read = OfficialCatalogue(folder, "small")
    assert len(read) == 40
    assert read.dropped == {"no asin": 4, "asin too long": 1, "repeated asin": 1}


def test_a_limit_counts_products_of_the_file(folder):
    assert len(OfficialCatalogue(folder, "small", 7)) == 7
    assert OfficialCatalogue(folder, "small", 7).content_hash != content_of(folder)


def content_of(folder):
    return OfficialCatalogue(folder, "small").content_hash


def test_the_full_files_are_read_alike(folder):
    for name in ("items_shuffle", "items_ins_v2"):
        (folder / f"{name}_1000.json").rename(folder / f"{name}.json")
    full = OfficialCatalogue(folder, "full")
    assert [p.asin for p in map(full.__getitem__, range(40))] == [
        p.asin for p in GeneratedCatalogue(40, None)
    ]
    assert len(OfficialCatalogue(folder, "100k")) == 40


def test_other_content_is_another_catalogue_and_the_index_follows(folder):
    before = content_of(folder)
    assert content_of(folder) == before
    change(folder, "items_shuffle_1000.json", lambda products: products[::-1])
    assert content_of(folder) != before
    assert OfficialCatalogue(folder, "small")[0] == GeneratedCatalogue(40, None)[39]


def test_a_damaged_index_is_built_again(folder):
    OfficialCatalogue(folder, "small")
    [index] = (folder / ".milegpo").glob("products-*")
    for path in index.glob("*.npy"):
        path.write_bytes(b"nonsense")
    (folder / ".milegpo" / "contents.json").write_text("{")
    assert OfficialCatalogue(folder, "small")[3] == GeneratedCatalogue(40, None)[3]


def test_missing_files_name_the_command(tmp_path):
    with pytest.raises(DataMissing, match="download_data webshop --size full"):
        load_catalogue(tmp_path, size="full")
    with pytest.raises(UnknownName, match="small, 100k, full"):
        load_catalogue(tmp_path, size="medium")


def test_a_folder_that_cannot_be_written_is_indexed_in_the_cache(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: False)
    read = OfficialCatalogue(folder, "small")
    assert not (folder / ".milegpo").exists()
    assert read[0] == GeneratedCatalogue(40, None)[0]


@pytest.mark.parametrize("data", [None, "folder"])
def test_a_shop_has_a_product(folder, data):
    with pytest.raises(ValueError, match="at least one product"):
        load_catalogue(folder if data else None, products=0)
    assert len(load_catalogue(folder if data else None, products=1)) == 1


OPEN = """
import pickle, sys
from milegpo_envs.webshop.official import OfficialCatalogue
catalogue = OfficialCatalogue(__import__("pathlib").Path(sys.argv[1]), "small")
sys.stdout.buffer.write(pickle.dumps([catalogue[i] for i in range(len(catalogue))]))
"""


def test_processes_may_open_a_folder_at_the_same_time(folder):
    started = [
        subprocess.Popen([sys.executable, "-c", OPEN, folder], stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    found = [pickle.loads(process.communicate()[0]) for process in started]
    assert found == [list(GeneratedCatalogue(40, None))] * 3


def test_a_folder_that_is_not_to_be_written_is_left_alone(tmp_path):
    """Also by root, who could."""
    assert beside(tmp_path) == tmp_path / ".milegpo"
    tmp_path.chmod(0o555)
    assert beside(tmp_path) == user_cache()
    tmp_path.chmod(0o755)
    assert beside(tmp_path / "none") == user_cache()
