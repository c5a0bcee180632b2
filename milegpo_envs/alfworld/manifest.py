"""`manifest.json` of a folder of games: what its splits should hold.

    {"format": 1, "source": "generated", "made_by": "gen1/full",
     "splits": {"train": {"games": {"pick_and_place_simple": 790, ...}, "digest": "0123..."}}}

It lies beside the split folders. Official folders have none; for them the official numbers hold
(`games.COUNTS`).
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from milegpo_envs.alfworld.games import SPLITS, TASK_TYPES
from milegpo_envs.errors import DataMissing

MANIFEST = "manifest.json"
_FORMAT = 1


@dataclass(frozen=True)
class Split:
    """What one split should hold: games by task type, and `Listing.digest`."""

    games: Mapping[str, int]
    digest: str


@dataclass(frozen=True)
class Manifest:
    """source: as `ALFWorldEnv.source` gives it. made_by: for people."""

    source: str
    made_by: str
    splits: Mapping[str, Split]


def read_manifest(folder: Path) -> Manifest | None:
    """Read a folder's manifest; None if it has none.

    Raises:
        DataMissing: it is damaged or of another format.
    """
    path = folder / MANIFEST
    if not path.is_file():
        return None
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        if raw["format"] != _FORMAT:
            raise ValueError(f"format {raw['format']!r}, not {_FORMAT}")
        splits = {
            name: Split(
                {kind: int(split["games"][kind]) for kind in TASK_TYPES}, str(split["digest"])
            )
            for name, split in raw["splits"].items()
            if name in SPLITS
        }
        return Manifest(str(raw["source"]), str(raw["made_by"]), splits)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataMissing(
            f"{path} cannot be read ({error!r}). Make the folder anew, or delete this file; then "
            "nobody knows how many games there should be."
        ) from error


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write a folder's manifest, whole or not at all."""
    raw = {
        "format": _FORMAT,
        "source": manifest.source,
        "made_by": manifest.made_by,
        "splits": {
            name: {"games": dict(split.games), "digest": split.digest}
            for name, split in manifest.splits.items()
        },
    }
    unfinished = folder / f"{MANIFEST}.unfinished-{os.getpid()}"
    unfinished.write_text(json.dumps(raw, indent=1) + "\n", encoding="utf-8")
    os.replace(unfinished, folder / MANIFEST)
