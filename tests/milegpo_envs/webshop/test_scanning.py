import json

import pytest

from milegpo_envs.errors import DataMissing
from milegpo_envs.webshop.scanning import entries

VALUES = [{"a": 'é]}[{\\"', "n": [1, {"x": None}]}, {"b": "日本"}, {}, {"c": "x" * 300}]


@pytest.mark.parametrize("window", [1, 7, 64, 1 << 20])
@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("indent", [None, 1])
def test_entries_are_found_whatever_the_window(tmp_path, window, ascii_only, indent):
    path = tmp_path / "list.json"
    path.write_text(json.dumps(VALUES, ensure_ascii=ascii_only, indent=indent), "utf-8")
    content = path.read_bytes()
    found = [json.loads(content[e.start : e.end]) for e in entries(path, window=window)]
    assert found == VALUES


def test_entries_of_an_object_have_names(tmp_path):
    path = tmp_path / "object.json"
    path.write_text(json.dumps({"B1": {"x": 1}, "B2": []}))
    assert [(e.name, e.value) for e in entries(path, window=3)] == [("B1", {"x": 1}), ("B2", [])]


@pytest.mark.parametrize("content", ["", "3", '[{"a": 1}, {"a"', '{"a": 1', '[{"a": 1} x]'])
def test_damaged_files_are_refused_by_name(tmp_path, content):
    path = tmp_path / "damaged.json"
    path.write_text(content)
    with pytest.raises(DataMissing, match=r"damaged\.json"):
        list(entries(path))
