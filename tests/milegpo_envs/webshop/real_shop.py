"""The official 1,000 products and recordings of the official engine, where they are."""

import gzip
import json
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[4] / "shared" / "data" / "webshop"

needs_real_shop = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="no ../shared/data/webshop: real products are not in the project"
)


def recorded(name):
    with gzip.open(FOLDER / name, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]
