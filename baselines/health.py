"""What of Python, its packages and the accelerator works on this machine.

Requirements are those of `pyproject.toml`, or of the installed package's metadata: packages that
everything needs are required, those of the extras are not.
"""

import platform
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from milegpo_envs.reports import Check

_PROJECT = Path(__file__).parents[1] / "pyproject.toml"
_NAME = "milegpo"


def checks() -> Iterator[Check]:
    """Python, packages, then what takes longer to ask."""
    python, needed, extras = _declared()
    version = platform.python_version()
    fits = SpecifierSet(python).contains(version)
    yield Check(
        *("Python", fits, f"{version} (needed: {python})"),
        "" if fits else "make setup PYTHON=/path/to/python3.11",
        required=True,
    )
    for requirement in needed:
        yield package(requirement, required=True)
    for extra, requirements in extras.items():
        for requirement in requirements:
            yield package(requirement, required=False, extra=extra)
    yield accelerator()


def package(requirement: Requirement, required: bool, extra: str = "") -> Check:
    """Whether a package is installed in a version that fits; it is not imported."""
    name = f"{requirement.name} [{extra}]" if extra else requirement.name
    remedy = f'{_pip()} "{requirement.name}{requirement.specifier}"'
    try:
        version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return Check(
            name, False, f"not installed (needed: {_range(requirement)})", remedy, required
        )
    fits = requirement.specifier.contains(version, prereleases=True)
    found = f"{version} (needed: {_range(requirement)})"
    return Check(name, fits, found, "" if fits else remedy, required)


def accelerator() -> Check:
    """Whether torch sees a GPU; one that torch cannot use has a remedy, none at all has not."""
    name = "GPU"
    if find_spec("torch") is None:
        return Check(name, False, "not asked, as torch is not installed", f"{_pip()} torch")
    import torch  # seconds: only here

    if torch.cuda.is_available():
        devices = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
        return Check(name, True, f"{', '.join(devices)} (CUDA {torch.version.cuda})")
    if shutil.which("nvidia-smi") is None:
        return Check(name, False, f"none; torch {torch.__version__} runs on the CPU")
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True)
    return Check(
        *(name, False, f"torch {torch.__version__} cannot use it: {listed.stdout.strip()[:200]}"),
        f"{_pip()} --force-reinstall torch --index-url ADDRESS  # for your CUDA version, "
        "see pytorch.org/get-started",
    )


def _declared() -> tuple[str, Sequence[Requirement], Mapping[str, Sequence[Requirement]]]:
    """The range of Python, the packages needed, and those of each extra."""
    if _PROJECT.is_file():
        project = tomllib.loads(_PROJECT.read_text(encoding="utf-8"))["project"]
        extras = {
            extra: [Requirement(text) for text in texts if Requirement(text).name != _NAME]
            for extra, texts in project["optional-dependencies"].items()
        }
        return project["requires-python"], list(map(Requirement, project["dependencies"])), extras
    about = metadata.metadata(_NAME)
    needed: list[Requirement] = []
    optional: dict[str, list[Requirement]] = {
        extra: [] for extra in about.get_all("Provides-Extra") or ()
    }
    for requirement in map(Requirement, metadata.requires(_NAME) or ()):
        marker = requirement.marker
        if marker is None or marker.evaluate({"extra": ""}):
            needed.append(requirement)
            continue
        for extra, listed in optional.items():
            if marker.evaluate({"extra": extra}) and requirement.name != _NAME:
                listed.append(requirement)
    return about["Requires-Python"], needed, optional


def _range(requirement: Requirement) -> str:
    return str(requirement.specifier) or "any"


def _pip() -> str:
    return f"{Path(sys.executable)} -m pip install"
