from pathlib import Path

import pytest

from milegpo_envs.caching import cache_folder


@pytest.mark.parametrize(
    ("own", "xdg", "folder"),
    [
        ("/own", "/xdg", "/own"),
        ("", "/xdg", "/xdg/milegpo"),
        ("", "relative", "/home/me/.cache/milegpo"),
        ("", "", "/home/me/.cache/milegpo"),
    ],
)
def test_the_folder_follows_the_variables(monkeypatch, own, xdg, folder):
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("XDG_CACHE_HOME", xdg)
    monkeypatch.setenv("MILEGPO_CACHE", own)
    assert cache_folder() == Path(folder)
