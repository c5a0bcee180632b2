"""The official ALFWorld games, from the files that alfworld's authors released on GitHub.

    python -m scripts.download_data alfworld
    python -m scripts.download_data alfworld --release 2.1.1     # "put X in/on Y"
    python -m scripts.download_data alfworld --source FOLDER     # the zip files, copied by hand

Fills the folder named by $ALFWORLD_DATA, else ~/.cache/alfworld, as `alfworld-download` does, less
the detector's weights. Afterwards every split is counted: 3,553, 140 and 134 games, or an error.

The authors publish no checksums. Those in `ARCHIVES` and `GAMES` were written down by people who
downloaded the files: two or more independent records agree on all but the game files of 2.1.1 and
2.1.2, for which one was found. `--other-checksums` goes by the first download instead.
"""

import argparse
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from milegpo_envs.alfworld.folder import RELEASE, write_logic
from milegpo_envs.alfworld.games import COUNTS
from milegpo_envs.alfworld.index import Listing, index_folder, read_folder
from milegpo_envs.download import (
    DownloadFailed,
    Ledger,
    RemoteFile,
    WrongFile,
    check,
    fetch,
    unpack,
)
from milegpo_envs.reports import Advance, Cell, Report

HELP = "the official ALFWorld games: 145 MB to download, 2 GB unpacked"
BASE = "https://github.com/alfworld/alfworld/releases/download"

ARCHIVES = (
    RemoteFile(
        f"{BASE}/0.2.2/json_2.1.1_json.zip",
        "25171f16e20ad7b048c47275c45b0babf3aa1cbab29cec97387922350a9844bc",
        72_018_818,
    ),
    RemoteFile(
        f"{BASE}/0.2.2/json_2.1.1_pddl.zip",
        "913942ebed06659ea0da2f8122512d98bc6add30d84961ca803132d8fbcad585",
        34_881_784,
    ),
)
"""What goes with the game files of every release."""

GAMES: Mapping[str, RemoteFile] = {
    "2.1.2": RemoteFile(
        f"{BASE}/0.4.0/json_2.1.2_tw-pddl.zip",
        "eea90499df27b9cb3147d1d1927264146d38194b575e25f70a82875545742dcb",
        36_493_542,
    ),
    "2.1.1": RemoteFile(
        f"{BASE}/0.2.2/json_2.1.1_tw-pddl.zip",
        "d376c4bbb097c068528a2a9805e358e4cd14bc75c4d68a24e5141aebd234ef67",
        45_059_629,
    ),
    "2.1.3": RemoteFile(
        f"{BASE}/0.4.2/json_2.1.3_tw-pddl.zip",
        "5df77ea759f2211a4106082839ddbbb790f1ba4e7d097ed732cf453f72aa36cf",
        36_507_267,
    ),
}
"""Game files by release, first the one that alfworld 0.4.2 downloads."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Where from, where to, which wording."""
    parser.add_argument("--to", type=Path, default=default_folder(), help="default: %(default)s")
    parser.add_argument(
        "--release",
        choices=tuple(GAMES),
        default=next(iter(GAMES)),
        help='2.1.1 says "put X in/on Y", the later ones "move X to Y" (default: %(default)s)',
    )
    parser.add_argument(
        "--source", help="a mirror's URL, or a folder, that has the zip files under their names"
    )
    parser.add_argument(
        "--other-checksums", action="store_true", help="take files of other size and checksum"
    )
    parser.add_argument("--force", action="store_true", help="download also what seems complete")
    parser.add_argument("--keep-archives", action="store_true", help="keep the zip files")


def default_folder() -> Path:
    """Where alfworld looks for its data; it is not made here."""
    return Path(os.environ.get("ALFWORLD_DATA") or "~/.cache/alfworld").expanduser()


def run(options: argparse.Namespace, advance: Advance) -> Report:
    """Download, unpack and count; nothing is downloaded where all games are there already.

    Raises:
        DownloadFailed: a file cannot be had or is another, or games are missing at the end.
    """
    folder: Path = options.to.expanduser()
    if not options.force and _complete(folder, options.release):
        return _report(folder, "Nothing was downloaded: all games were there.", advance)
    archives = [*ARCHIVES, GAMES[options.release]]
    kept = folder / "downloads"
    paths = [_obtained(a, kept, options.source, options.other_checksums, advance) for a in archives]
    for path in paths:
        unpack(path, folder, advance, wanted=lambda name: name.startswith(f"{RELEASE}/"))
    write_logic(folder)
    report = _report(folder, f"Release {options.release} of the game files.", advance)
    if not options.keep_archives:
        for path in paths:
            if path.parent == kept:
                path.unlink()
    return report


def _obtained(
    archive: RemoteFile, kept: Path, source: str | None, other: bool, advance: Advance
) -> Path:
    """An archive on this machine, checked."""
    if source is not None and "://" in source:
        archive = replace(archive, url=f"{source.rstrip('/')}/{archive.name}")
    kept.mkdir(parents=True, exist_ok=True)
    ledger = Ledger(kept)
    if other:
        archive = replace(archive, size=None, sha256=ledger.sha256(archive.name))
    try:
        if source is not None and "://" not in source:
            path = Path(source).expanduser() / archive.name
            if not path.is_file():
                raise DownloadFailed(f"No {path}. Download it from {archive.url} and put it there.")
            check(path, archive)
        else:
            path = fetch(archive, kept, advance)
    except WrongFile as error:
        raise WrongFile(
            f"{error} If the authors have replaced it, --other-checksums takes what comes."
        ) from error
    ledger.record(archive, path)
    return path


def _listings(folder: Path, advance: Advance) -> dict[str, Listing]:
    base = folder / RELEASE
    return {s: index_folder(base / s, advance) for s in COUNTS if (base / s).is_dir()}


def _complete(folder: Path, release: str) -> bool:
    """Whether every split has its games, in the wording asked for."""
    listings = _listings(folder, lambda done, total, what: None)
    whole = all(
        split in listings and len(listings[split].task_types) >= sum(counts)
        for split, counts in COUNTS.items()
    )
    old = {"2.1.1" in listing.releases for listing in listings.values()}
    return whole and old == {release == "2.1.1"}


def _report(folder: Path, note: str, advance: Advance) -> Report:
    """Count the games of every split.

    Raises:
        DownloadFailed: fewer than officially.
    """
    read_folder.cache_clear()  # what this process may have seen of the folder before
    listings = _listings(folder, advance)
    rows: list[tuple[Cell, ...]] = []
    lacking = []
    for split, counts in COUNTS.items():
        listing = listings.get(split)
        have = len(listing.task_types) if listing else 0
        if have < sum(counts):
            reasons = (
                ", ".join(f"{n} {why}" for why, n in listing.skipped.items()) if listing else ""
            )
            lacking.append(f"{split} {have:,} of {sum(counts):,} ({reasons or 'no other games'})")
        wordings = (
            ", ".join(f"{n:,} of {r}" for r, n in listing.releases.items()) if listing else ""
        )
        digest = listing.digest if listing else ""
        rows.append((split, have, sum(counts), wordings, digest))
    if lacking:
        raise DownloadFailed(
            f"Games are missing in {folder}: {'; '.join(lacking)}. Run this again with --force, or "
            "pass allow_partial=True to play what is there."
        )
    return Report(
        title=f"ALFWorld in {folder}",
        columns=("split", "games", "officially", "wording", "digest"),
        rows=tuple(rows),
        notes=(note, f"Play them: gym.make('milegpo/ALFWorld-v0', data={str(folder)!r}, ...)"),
    )
