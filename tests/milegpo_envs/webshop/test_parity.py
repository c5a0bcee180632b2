import argparse

import pytest

from milegpo_envs.errors import DataMissing
from milegpo_envs.webshop import parity
from tests.milegpo_envs.webshop.small_shop import SHARED


def options(*arguments):
    parser = argparse.ArgumentParser()
    parity.add_options(parser)
    return parser.parse_args(arguments)


@pytest.mark.skipif(not SHARED.exists(), reason=f"no recordings at {SHARED}")
def test_the_recordings_of_the_official_engine_are_repeated():
    said = []
    report = parity.run(
        options("--data", str(SHARED), "--every", "3"), lambda *what: said.append(what)
    )
    assert report.notes == ()
    assert [row[-1] for row in report.rows] == [0, 0, 0]
    assert all(row[1] > 200 for row in report.rows)
    assert said


def test_differences_are_counted_and_told():
    count = parity.Count("lists")
    count.check("query 'tea'", ["A"], ["A"])
    count.check("query 'pen'", ["A"], ["B"])
    assert (count.compared, len(count.mismatches)) == (2, 1)
    assert "query 'pen'" in count.mismatches[0]


def test_a_folder_without_recordings_is_refused(tmp_path):
    with pytest.raises(DataMissing, match="No recordings"):
        list(parity._lines(tmp_path / parity.LISTS))


def test_recordings_are_looked_for_in_the_data_folder_and_beside_the_project(tmp_path, monkeypatch):
    monkeypatch.setenv("WEBSHOP_DATA", str(tmp_path / "named"))
    monkeypatch.setattr(parity, "BESIDE", tmp_path / "beside")
    with pytest.raises(DataMissing, match=r"named or .*beside.*--data FOLDER"):
        parity.run(options(), lambda *_: None)
    for name in ("beside", "named"):
        (tmp_path / name).mkdir()
        (tmp_path / name / parity.EPISODES).touch()
        assert parity.recordings() == tmp_path / name
