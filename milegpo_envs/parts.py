"""What an environment's folder offers to the scripts, found by module name.

`milegpo_envs/alfworld/bench.py` is the part "bench" of alfworld. So a new environment needs no line
in any script. Parts that scripts run (bench, parity, download) have the three names of `Command`.
"""

import argparse
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, Protocol

import milegpo_envs
from milegpo_envs.errors import unknown_name


class Command(Protocol):
    """A module that a script can run as its subcommand.

    run: called with the parsed options; what else it takes and returns is the script's affair.
    """

    HELP: str

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options on the subcommand's own parser."""

    run: Any


def offering(part: str) -> tuple[str, ...]:
    """Names of the environment folders that have this part, sorted; nothing is imported."""
    folders = (m.name for m in iter_modules(milegpo_envs.__path__) if m.ispkg)
    return tuple(sorted(name for name in folders if find_spec(f"milegpo_envs.{name}.{part}")))


def part(environment: str, name: str) -> ModuleType:
    """Import one part of an environment's folder.

    Raises:
        UnknownName: no environment of that name offers it; the message lists those that do.
    """
    known = offering(name)
    if environment not in known:
        raise unknown_name(f"environment with {name}", environment, known)
    return import_module(f"milegpo_envs.{environment}.{name}")
