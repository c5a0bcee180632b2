"""What holds for every test module."""

import os

import pytest


@pytest.fixture(scope="module", autouse=True)
def environment_is_left_as_it_was():
    """A variable left behind (RANK, say) makes later tests run otherwise than they do alone."""
    before = dict(os.environ)
    yield
    after = dict(os.environ)
    os.environ.clear()
    os.environ.update(before)
    here = "PYTEST_CURRENT_TEST"  # pytest's own
    left = {name for name in {*before, *after} - {here} if before.get(name) != after.get(name)}
    assert not left, f"left changed by this module: {sorted(left)}"
